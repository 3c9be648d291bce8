"""What is private can be passed on, and opened by a curator only."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dprepro.privacy.private_rows import Private, PrivateRowsError, may_open

SECRET = 31415


def _opener(module: str) -> Callable[[Private[Any]], Any]:
    """Return a function that opens, as if it were defined in `module`."""
    names: dict[str, Any] = {"__name__": module}
    exec("def look(private):\n    return private.open()", names)
    look: Callable[[Private[Any]], Any] = names["look"]
    return look


@pytest.mark.parametrize(
    "module", ["dprepro.methods.dp_ebm_plus.curator", "dprepro.estimators.inputs"]
)
def test_curators_and_the_reader_open(module: str) -> None:
    assert _opener(module)(Private(SECRET)) == SECRET


@pytest.mark.parametrize(
    "module",
    [
        "dprepro.methods.dp_ebm_plus.booster",
        "dprepro.curator.booster",
        "dprepro.methods.dp_ebm",
        "?",
    ],
)
def test_nothing_else_does_and_the_error_names_the_module(module: str) -> None:
    with pytest.raises(PrivateRowsError, match="may not open") as error:
        _opener(module)(Private(SECRET))
    assert module in str(error.value)
    assert str(SECRET) not in str(error.value)
    assert not may_open(module)


@pytest.mark.parametrize(
    "use",
    [
        np.asarray, np.sum, len, list, bool, int, float, hash, copy.copy, copy.deepcopy,
        pickle.dumps, lambda p: p[0], lambda p: p == SECRET, lambda p: p < 0, lambda p: 1 in p,
        lambda p: np.add(p, 0) + 0, lambda p: f"{p:d}", vars,
    ],
)  # fmt: skip
def test_no_other_use_shows_anything(use: Callable[[Any], Any]) -> None:
    with pytest.raises((PrivateRowsError, TypeError)) as error:
        use(Private(SECRET))
    assert str(SECRET) not in str(error.value)


def test_a_representation_shows_nothing() -> None:
    private = Private(SECRET)
    assert repr(private) == str(private) == f"{private}" == "Private(...)"
    assert not hasattr(private, "value")
