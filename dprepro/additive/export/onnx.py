"""A model as an ONNX graph in double precision."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dprepro.additive.export.plain import (
    NO_CELL,
    UNKNOWN,
    CategoricalTerm,
    NumericTerm,
    PairTerms,
    PlainModel,
    free_name,
    plain,
    plain_of_classes,
)
from dprepro.additive.model import AdditiveClassifier, AdditiveModel
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.extras import needs_extra
from dprepro.runtime.files import appearing_complete

# Old enough for the runtimes of 2022, new enough for all that the graph needs.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8


def to_onnx(model: AdditiveModel, missing: Collection[str] = MISSING_TEXTS) -> Any:
    """Return an `onnx.ModelProto`.

    Inputs, one for each feature and of its name, (n, 1): double, NaN where missing; or string,
    where the empty string and the texts in `missing` stand for a missing value unless they are
    categories. One of `missing` that reads as a number stands for the number in inputs of numbers,
    too. ONNX cannot remove blanks around a text, nor tell a number from a text: give texts as the
    categories are written.

    Outputs, (n, 1): classification "log_odds" and "probability" (of the second class), double, and
    "prediction", string; regression "prediction", double. Also "notes", int64 (n, K): what of each
    feature's value the model does not know, as its position in `UNKNOWN`, 0 where all is known. The
    metadata of the model have both lists as JSON, "notes" and "features". If a feature has such a
    name, the output gets a _ more. Of S classes "log_odds" and "probability" are (n, S), in the
    order of "classes" in the metadata. A graph cannot refuse a row: where a number is infinite, the
    outputs are NaN, and "prediction" is the empty string.

    Raises DpreproError if onnx is not installed, or a name cannot be one of ONNX.
    """
    onnx = import_onnx()
    if isinstance(model, AdditiveClassifier) and model.several_classes:
        return ClassGraph(onnx, plain_of_classes(model, missing), model.class_names).proto()
    return Graph(onnx, plain(model, missing)).proto()


def save_onnx(model: AdditiveModel, path: Path) -> None:
    """Write `to_onnx` to a file, which appears complete.

    Raises DpreproError as `to_onnx`, and if the file cannot be written.
    """
    data = to_onnx(model).SerializeToString()
    with appearing_complete(path) as unfinished:
        unfinished.write_bytes(data)


def import_onnx() -> Any:
    """Return the module onnx. Raises `DpreproError` if it is not installed."""
    with needs_extra("onnx", "export to ONNX needs onnx"):
        import onnx
    return onnx


class Graph:
    """The nodes of a graph on the way."""

    name = "additive_model"

    def __init__(self, onnx: Any, model: PlainModel) -> None:
        self._onnx, self._make, self._model = onnx, onnx.helper, model
        names = self._model.names
        if not all(names):
            raise DpreproError("a feature without a name cannot be an input of ONNX: name it")
        # What the graph computes by the way has names that no feature begins with.
        self._own = free_prefix(names)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._known: set[str] = set()
        self._outputs: list[Any] = []
        self._notes: list[str] = []
        self._listed: dict[str, Sequence[str]] = {}

    def proto(self) -> Any:
        """Return the model, checked."""
        self._finish([self._term(term) for term in self._model.terms])
        if self._notes:
            notes = self._node("Concat", self._notes, axis=1)
            self._output("notes", notes, self._onnx.TensorProto.INT64, len(self._notes))
        graph = self._make.make_graph(
            self._nodes, self.name, self._inputs, self._outputs, self._constants
        )
        opsets = [self._make.make_opsetid(name, version) for name, version in _OPSETS.items()]
        made = self._make.make_model(
            graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="dprepro"
        )
        listed = {"notes": UNKNOWN, "features": self._model.names, **self._listed}
        self._make.set_model_props(made, {name: json.dumps(each) for name, each in listed.items()})
        self._onnx.checker.check_model(made, full_check=True)
        return made

    def _total(self, parts: Sequence[str]) -> str:
        """Add nodes that add up; return the name of the sums, (n, 1)."""
        table = self._node("Concat", list(parts), axis=1)
        return self._node("ReduceSum", [table, self._constant([1], np.int64)], keepdims=1)

    def _finish(self, parts: Sequence[str]) -> None:
        """Add the outputs; `parts` are the contributions of features."""
        pairs = [self._pair(pair) for pair in self._model.pairs]
        total = self._total([*parts, *pairs])
        score = self._node("Add", [total, self._constant([[self._model.intercept]])])
        double, string = self._onnx.TensorProto.DOUBLE, self._onnx.TensorProto.STRING
        if self._model.labels is None:
            if self._model.log_link:
                score = self._node("Exp", [score])
            if self._model.limits is not None:
                clipped = self._node("Clip", [score, *map(self._constant, self._model.limits)])
                is_refused = self._node("IsNaN", [score])
                score = self._node("Where", [is_refused, score, clipped])
            self._output("prediction", self._node("Identity", [score]), double)
            return
        self._output("log_odds", score, double)
        self._output("probability", self._node("Sigmoid", [score]), double)
        is_positive = self._node("Greater", [score, self._constant([[0.0]])])
        code = self._node("Cast", [is_positive], to=self._onnx.TensorProto.INT64)
        is_refused = self._node("IsNaN", [score])
        code = self._node("Where", [is_refused, self._constant([[-1]], np.int64), code])
        label = self._node(
            "LabelEncoder", [code], domain="ai.onnx.ml",
            keys_int64s=[0, 1], values_strings=list(self._model.labels), default_string="",
        )  # fmt: skip
        self._output("prediction", label, string)

    def _term(self, term: NumericTerm | CategoricalTerm, infinite: float = np.nan) -> str:
        """Add the nodes of a feature, also of its notes unless it is one of a pair.

        Return the name of its contribution, (n, 1). That of an infinite number is `infinite`.
        """
        is_noted = np.isnan(infinite)
        if isinstance(term, CategoricalTerm):
            return self._categorical(term, is_noted)
        x = self._input(term.name, self._onnx.TensorProto.DOUBLE)
        is_absent = self._node("IsNaN", [x])
        if term.missing_numbers:
            is_mark = self._node("Equal", [x, self._constant([term.missing_numbers])])
            is_absent = self._node("Or", [is_absent, self._node("Greater", [
                self._sum(is_mark), self._constant([[0]], np.int64)
            ])])  # fmt: skip
        if term.cuts:
            position = self._sum(self._node("GreaterOrEqual", [x, self._constant([term.cuts])]))
        else:
            position = self._constant([[0]], np.int64)
        size = len(term.values)
        absent, refused = (self._constant([[k]], np.int64) for k in (size, size + 1))
        place = self._node("Where", [is_absent, absent, position])
        place = self._node("Where", [self._node("IsInf", [x]), refused, place])
        if is_noted:
            self._note_number(term, x, is_absent)
        return self._value(term, lambda t: [*t.values, t.missing, infinite], place)

    def _value(
        self,
        term: NumericTerm | CategoricalTerm,
        numbers: Callable[[Any], Sequence[float]],
        place: str,
    ) -> str:
        """Add the node that takes the number of a place; return the name of the result, (n, 1)."""
        return self._node("Gather", [self._constant(numbers(term)), place], axis=0)

    def _note_number(self, term: NumericTerm, x: str, is_absent: str) -> None:
        code, (lower, upper) = self._constant([[0]], np.int64), term.bounds
        for flag, what in (
            (self._node("Less", [x, self._constant([[lower]])]), "below its bounds"),
            (self._node("Greater", [x, self._constant([[upper]])]), "above its bounds"),
            (self._node("IsInf", [x]), "infinite"),
            (is_absent, "missing" if term.notes_missing else ""),
        ):
            found = self._constant([[UNKNOWN.index(what)]], np.int64)
            code = self._node("Where", [flag, found, code])
        self._notes.append(code)

    def _sum(self, flags: str) -> str:
        """Add nodes that count what is true in each row; return the name of counts, (n, 1)."""
        ones = self._node("Cast", [flags], to=self._onnx.TensorProto.INT64)
        return self._node("ReduceSum", [ones, self._constant([1], np.int64)], keepdims=1)

    def _pair(self, pair: PairTerms) -> str:
        """Add the nodes of a pair; return the name of its contribution, (n, 1)."""
        # Where a number is infinite, the term of its own feature makes the score NaN.
        sides = [self._term(side, NO_CELL) for side in (pair.first, pair.second)]
        cell = self._node("Add", sides)
        is_none = self._node("Less", [cell, self._constant([[0.0]])])
        number = self._node("Cast", [cell], to=self._onnx.TensorProto.INT64)
        none = self._constant([[len(pair.values)]], np.int64)
        place = self._node("Where", [is_none, none, number])
        return self._node("Gather", [self._constant([*pair.values, 0.0]), place], axis=0)

    def _categorical(self, term: CategoricalTerm, is_noted: bool) -> str:
        values = self._by_text(term)
        x = self._input(term.name, self._onnx.TensorProto.STRING)
        place = self._node(
            "LabelEncoder", [x], domain="ai.onnx.ml", keys_strings=list(values),
            values_int64s=list(range(len(values))), default_int64=len(values),
        )  # fmt: skip
        if is_noted:
            absent = UNKNOWN.index("missing") if term.notes_missing else 0
            codes = [0 if name in term.categories else absent for name in values]
            table = self._constant([*codes, UNKNOWN.index("unknown category")], np.int64)
            self._notes.append(self._node("Gather", [table, place], axis=0))
        return self._value(term, lambda t: [*self._by_text(t).values(), t.other], place)

    @staticmethod
    def _by_text(term: CategoricalTerm) -> dict[str, float]:
        """Return the values of the texts that a term knows."""
        values = dict.fromkeys(("", *term.missing_texts), term.missing)
        values |= zip(term.categories, term.values, strict=True)
        return values

    def _input(self, name: str, kind: int) -> str:
        if name not in self._known:  # a pair has the inputs of its features
            self._known.add(name)
            self._inputs.append(self._make.make_tensor_value_info(name, kind, ["n", 1]))
        return name

    def _output(self, name: str, made: str, kind: int, columns: int = 1) -> None:
        free = free_name(name, self._model.names)
        self._nodes.append(self._make.make_node("Identity", [made], [free]))
        self._outputs.append(self._make.make_tensor_value_info(free, kind, ["n", columns]))

    def _constant(self, values: Any, dtype: type = np.float64) -> str:
        name = f"{self._own}constant{len(self._constants)}"
        array: np.ndarray = np.asarray(values, dtype=dtype)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def _node(self, kind: str, inputs: list[str], **attributes: Any) -> str:
        name = f"{self._own}{len(self._nodes)}"
        self._nodes.append(self._make.make_node(kind, inputs, [name], **attributes))
        return name


class ClassGraph(Graph):
    """The nodes of the graph of several classes; their `models` differ in values alone."""

    def __init__(self, onnx: Any, models: Sequence[PlainModel], labels: Sequence[str]) -> None:
        super().__init__(onnx, models[0])
        self._each, self._labels = models, labels
        self._listed = {"classes": labels}

    def _value(
        self,
        term: NumericTerm | CategoricalTerm,
        numbers: Callable[[Any], Sequence[float]],
        place: str,
    ) -> str:
        """Return the name of the numbers of all classes, (n, 1, S)."""
        k = self._model.names.index(term.name)
        of_classes = [numbers(model.terms[k]) for model in self._each]
        table = self._constant(np.stack(of_classes, axis=1))
        return self._node("Gather", [table, place], axis=0)

    def _finish(self, parts: Sequence[str]) -> None:
        size, one = len(self._labels), self._constant([1], np.int64)
        table = self._node("Concat", list(parts), axis=1)
        total = self._node("ReduceSum", [table, one], keepdims=0)
        levels = self._constant([[model.intercept for model in self._each]])
        scores = self._node("Add", [total, levels])
        double, string = self._onnx.TensorProto.DOUBLE, self._onnx.TensorProto.STRING
        self._output("log_odds", scores, double, size)
        self._output("probability", self._node("Softmax", [scores], axis=1), double, size)
        place = self._node("ArgMax", [scores], axis=1, keepdims=1)
        is_refused = self._node("IsNaN", [self._node("ReduceSum", [scores, one], keepdims=1)])
        place = self._node("Where", [is_refused, self._constant([[-1]], np.int64), place])
        label = self._node(
            "LabelEncoder", [place], domain="ai.onnx.ml",
            keys_int64s=list(range(size)), values_strings=list(self._labels), default_string="",
        )  # fmt: skip
        self._output("prediction", label, string)


def free_prefix(names: list[str]) -> str:
    """Return a prefix that no name begins with."""
    prefix = "_"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix
