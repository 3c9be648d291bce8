"""No repr and no message shows a value of a private row: notebooks, logs and tracebacks print them.

Debuggers and notebooks in verbose mode print the repr of every local variable of a traceback, so
this holds for what passes rows on inside the package, too.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import traceback
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dprepro
from dprepro import (
    Dataset,
    Domain,
    DPEBMClassifier,
    DPEBMPlusClassifier,
    DpreproError,
    Ledger,
    NumericFeature,
)

PACKAGES = ("data", "estimators", "experiment", "release", "rows")
ROWS = ("DataFrame", "Series", "ndarray", "NDArray", "pa.Table", "SortedRows", "Rows", "bytes")
# Each with what it has of these types that is public.
PUBLIC = {
    "Job": "types of functions",
    "Line": "a line of a journal, which the user names",
    "Findings": "lines of a journal, which the user names",
    "RecordTable": "scores of journals",
    "Session": "a pickled function",
    "Seen": "a keyed digest",
    "BoostingRuns": "margins of made-up rows",
    "Source": "an iterable of chunks, whose repr is an address",
}


def _holders() -> Iterator[type]:
    for package in PACKAGES:
        parent = importlib.import_module(f"dprepro.{package}")
        for info in pkgutil.iter_modules(parent.__path__):
            module = importlib.import_module(f"{parent.__name__}.{info.name}")
            for name, kind in inspect.getmembers(module, inspect.isclass):
                is_here = kind.__module__ == module.__name__ and name not in PUBLIC
                if is_here and _of_rows(kind):
                    yield kind


def _of_rows(kind: type) -> list[str]:
    types = vars(kind).get("__annotations__", {})
    return [name for name, text in types.items() if any(word in str(text) for word in ROWS)]


@pytest.mark.parametrize(
    "kind", list(_holders()), ids=lambda kind: f"{kind.__module__}.{kind.__name__}"
)
def test_what_holds_rows_shows_none(kind):
    secret = pd.DataFrame({"a": ["Zanzibar", "41.5"]})
    if issubclass(kind, tuple):
        made = kind(*[secret] * len(kind._fields))
    else:
        made = object.__new__(kind)
        if dataclasses.is_dataclass(kind):
            others = {field.name: {} for field in dataclasses.fields(kind)}
            vars(made).update(others | dict.fromkeys(_of_rows(kind), secret))
    assert "Zanzibar" not in repr(made)
    assert "41.5" not in repr(made)


WORDS = st.text("abcdefghij", min_size=12, max_size=16)
NUMBERS = st.floats(1e6, 1e9).map(lambda value: round(value, 6))


@settings(deadline=None)  # The first example imports what fits.
@given(st.lists(WORDS, min_size=2, max_size=4, unique=True), st.lists(NUMBERS, min_size=3))
def test_neither_reprs_nor_messages_show_values_of_rows(words, numbers):
    size = max(len(words), len(numbers))
    frame = pd.DataFrame({"age": np.resize(numbers, size), "city": np.resize(words, size)})
    y, values = np.arange(size) % 2, [*words, *map(repr, numbers), *map(str, numbers)]
    observed = Domain.observe(frame, y, "binary")
    stated = Domain((NumericFeature("age", 0, 1), NumericFeature("city", 0, 1)), ("no", "yes"))
    shown = [
        repr(observed),
        repr(Domain.observe(frame, np.resize(numbers, size), "regression")),
        repr(Dataset("d", frame, y, "binary", observed, "s", "", units=frame["city"].to_numpy())),
        repr(DPEBMClassifier(1, domain=observed)),
        *map(_refused, (
            lambda: Domain.from_frame(frame, target=("no", "yes")),
            lambda: Domain.from_frame(frame, target=("no", "yes"), bounds={"city": (0, 1)}),
            lambda: Domain.from_frame(frame, target=frame, bounds=frame, categories={}),
            lambda: Domain(frame, ("no", "yes")),
            lambda: Ledger(frame, 0, "replace-one"),
            lambda: NumericFeature("age", frame["city"], 1),
            lambda: Dataset("d", frame, frame["age"], "binary", None, "s", ""),
            lambda: dprepro.load(frame),
            lambda: DPEBMPlusClassifier(1, domain=stated).fit(frame, y),
            lambda: DPEBMPlusClassifier(1, domain=stated).fit(frame, frame["city"]),
            lambda: DPEBMClassifier(1, domain=stated).fit(frame, y),
        )),
    ]  # fmt: skip
    for text in shown:
        assert not [value for value in values if value in text]


def _refused(call) -> str:
    """Return what a terminal shows of the error, the errors behind it included."""
    with pytest.raises((ValueError, TypeError, DpreproError)) as raised:
        call()
    return "".join(traceback.format_exception_only(raised.value)) + _behind(raised.value)


def _behind(error: BaseException) -> str:
    other = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "" if other is None else f"{other}{_behind(other)}"
