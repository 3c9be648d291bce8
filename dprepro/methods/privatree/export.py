"""A tree for use without this package: SQL, ONNX, or Python alone, as additive models have them.

All treat a value as `PrivaTreeClassifier.predict` does, and say beside the label the number of the
leaf, from 0 on the left. Numbers beyond the bounds of the domain, missing values and unknown
categories, which are in the last bin of their feature, are in `notes`.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dprepro.additive.bins import FeatureBins, numeric_bins
from dprepro.additive.export import predictor
from dprepro.additive.export.dialects import DIALECTS, Dialect
from dprepro.additive.export.onnx import Graph, import_onnx
from dprepro.additive.export.plain import (
    CategoricalTerm,
    NumericTerm,
    PlainModel,
    free_name,
    term_of,
)
from dprepro.additive.export.sql import Query, check
from dprepro.data.card_parts import MISSING_TEXTS
from dprepro.data.domain import CategoricalFeature
from dprepro.methods.equal_width_bins import Bins
from dprepro.methods.privatree.bins import Tree
from dprepro.methods.privatree.estimator import PrivaTreeClassifier


def to_sql(
    model: PrivaTreeClassifier,
    table: str,
    dialect: str,
    missing: Collection[str] = MISSING_TEXTS,
) -> str:
    """Return a SELECT of ``prediction``, ``leaf``, ``notes`` and all columns of a table.

    Parameters, and what it raises, as `dprepro.additive.export.sql.to_sql`. Prediction and leaf of
    a row that `predict` refuses are NULL.
    """
    known, spoken = _plain(model, missing), DIALECTS[dialect]
    check(known, table, spoken)
    return _TreeQuery(known, model.tree_, spoken).text(table)


def to_onnx(model: PrivaTreeClassifier, missing: Collection[str] = MISSING_TEXTS) -> Any:
    """Return an `onnx.ModelProto` with outputs "prediction", string, and "leaf", int64, (n, 1).

    Inputs, "notes" and what it raises as `dprepro.additive.export.onnx.to_onnx`. Where a number is
    infinite, the prediction is the empty string and the leaf -1.
    """
    return _TreeGraph(import_onnx(), _plain(model, missing), model.tree_).proto()


def to_python(model: PrivaTreeClassifier) -> str:
    """Return the text of a module that needs Python alone; as for an additive model.

    ``python FILE.py new.csv`` writes prediction, leaf and notes as CSV.
    """
    source = inspect.getsource(predictor)
    source = source.replace(inspect.getsource(predictor.said), inspect.getsource(said))
    values = {
        "labels": [str(label) for label in model.domain_.target],
        "features": [_feature(bins) for bins in model.bins_],
        "tree": np.stack([model.tree_.feature, model.tree_.last], axis=1).tolist(),
        "leaves": model.tree_.label.tolist(),
    }
    # Of texts, numbers, lists and dicts the representation is Python, whatever the texts hold.
    lines = "".join(f"    {key!r}: {value!r},\n" for key, value in values.items())
    return f'{source}\n\nMODEL = {{\n{lines}}}\n\nif __name__ == "__main__":\n    main(MODEL)\n'


def said(model, found):  # type: ignore[no-untyped-def]
    """Return what a tree says of a row that was read."""
    node, inner = 0, len(model["tree"])
    while node < inner:
        k, last = model["tree"][node]
        feature = model["features"][k]
        place, _ = found[feature["name"]]
        place = feature["bins"] - 1 if place is None else place
        node = 2 * node + 1 + (place > last)
    leaf = node - inner
    notes = "; ".join(f"{name}: {what}" for name, (_, what) in found.items() if what)
    return {"prediction": model["labels"][model["leaves"][leaf]], "leaf": leaf, "notes": notes}


def _plain(model: PrivaTreeClassifier, missing: Collection[str]) -> PlainModel:
    """Return the features of a tree as terms whose values are the numbers of bins."""
    negative, positive = map(str, model.domain_.target)
    terms = tuple(
        term_of(as_additive(bins), np.arange(bins.count, dtype=float), missing, bins.count - 1.0)
        for bins in model.bins_
    )
    return PlainModel(0.0, terms, (negative, positive), None)


def as_additive(bins: Bins) -> FeatureBins:
    """Return bins as those of an additive model, in which an edge belongs to the bin above it."""
    feature = bins.feature
    missing_bin = bins.count - 1 if feature.missing else -1
    if not isinstance(feature, CategoricalFeature):
        return numeric_bins(feature, np.nextafter(bins.edges[:-1], np.inf), missing_bin)
    groups = np.arange(len(feature.categories))
    return FeatureBins(feature, np.empty(0), groups, feature.categories, missing_bin)


def _feature(bins: Bins) -> dict[str, Any]:
    """Return a feature as `dprepro.additive.export.predictor` reads it, with its number of bins."""
    feature, made = bins.feature, as_additive(bins)
    missing_bin = made.missing_bin if made.missing_bin >= 0 else None
    found = {"name": str(feature.name), "missing_bin": missing_bin, "bins": bins.count}
    if isinstance(feature, CategoricalFeature):
        listed = list(feature.categories)
        return {**found, "kind": "categorical", "categories": listed, "labels": [],
                "groups": made.groups.tolist()}  # fmt: skip
    lower, upper = float(feature.lower), float(feature.upper)
    return {**found, "kind": "numeric", "lower": lower, "upper": upper, "cuts": made.cuts.tolist()}


def _turn(term: NumericTerm | CategoricalTerm, last: int) -> NumericTerm | CategoricalTerm:
    """Return a term that is 1 where the number of the bin is above `last`, else 0."""
    right = [float(value > last) for value in term.values]
    changed = replace(term, values=tuple(right), missing=float(term.missing > last))
    if isinstance(changed, CategoricalTerm):
        return replace(changed, other=float(changed.other > last))
    return changed


class _TreeQuery(Query):
    """The parts of a query about a tree."""

    said_of = "a tree"

    def __init__(self, model: PlainModel, tree: Tree, dialect: Dialect) -> None:
        super().__init__(model, dialect)
        self._tree_of = tree

    @property
    def score_name(self) -> str:
        return "leaf"

    def _score(self) -> str:
        # NULL where a value of any feature is refused, also of one that no path asks for.
        none = [self._whole(k, _nothing(term)) for k, term in enumerate(self._model.terms)]
        return " + ".join([self._below(0), *none])

    def _below(self, node: int) -> str:
        inner = len(self._tree_of.feature)
        if node >= inner:
            return str(node - inner)
        left, right = (self._below(child) for child in (2 * node + 1, 2 * node + 2))
        k, last = int(self._tree_of.feature[node]), int(self._tree_of.last[node])
        turn = self._whole(k, _turn(self._model.terms[k], last))
        nested = textwrap.indent(f"THEN {left}\nELSE {right} END", " ")
        return f"CASE WHEN {turn} = 0\n{nested}"

    def _whole(self, k: int, term: NumericTerm | CategoricalTerm) -> str:
        return f"({self._at(k, term, lambda value: f'{value:.0f}')})"

    def _predictions(self, *scores: str) -> list[str]:
        (score,) = scores
        assert self._model.labels is not None
        negative, positive = map(self._sql.text, self._model.labels)
        chosen = ", ".join(map(str, np.flatnonzero(self._tree_of.label)))
        prediction = self._sql.name(free_name("prediction", self._model.names))
        of_chosen = f"WHEN {score} IN ({chosen}) THEN {positive} " if chosen else ""
        return [f"CASE {of_chosen}WHEN {score} >= 0 THEN {negative} END AS {prediction}"]


def _nothing(term: NumericTerm | CategoricalTerm) -> NumericTerm | CategoricalTerm:
    """Return a term that is 0 whatever the value, where it is not refused."""
    return _turn(term, len(term.values))


class _TreeGraph(Graph):
    """The nodes of a graph of a tree."""

    name = "tree"

    def __init__(self, onnx: Any, model: PlainModel, tree: Tree) -> None:
        super().__init__(onnx, model)
        self._tree_of = tree

    def _finish(self, parts: Sequence[str]) -> None:
        """Add the outputs; of each feature `parts` has the number of the bin, NaN if infinite."""
        self._places = parts
        total = self._total(parts)
        leaf = self._node("Where", [
            self._node("IsNaN", [total]), self._constant([[-1]], np.int64), self._below(0)
        ])  # fmt: skip
        labels = self._model.labels
        assert labels is not None
        prediction = self._node(
            "LabelEncoder", [leaf], domain="ai.onnx.ml", default_string="",
            keys_int64s=list(range(len(self._tree_of.label))),
            values_strings=[labels[code] for code in self._tree_of.label],
        )  # fmt: skip
        self._output("prediction", prediction, self._onnx.TensorProto.STRING)
        self._output("leaf", leaf, self._onnx.TensorProto.INT64)

    def _below(self, node: int) -> str:
        inner = len(self._tree_of.feature)
        if node >= inner:
            return self._constant([[node - inner]], np.int64)
        left, right = (self._below(child) for child in (2 * node + 1, 2 * node + 2))
        place, last = self._places[self._tree_of.feature[node]], self._tree_of.last[node]
        turns = self._node("Greater", [place, self._constant([[float(last)]])])
        return self._node("Where", [turns, right, left])
