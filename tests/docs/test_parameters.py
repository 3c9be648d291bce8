"""The reference gives each parameter its own type, also where an entry has several names."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from tests.docs.pages import ROOT


@pytest.fixture(scope="module")
def extension() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parameters", ROOT / ".ci" / "parameters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_entry_is_repeated_for_every_name(extension):
    text = "Do it.\n\nParameters\n----------\na, b : int\n    Both,\n    truly.\nc\n    One."
    assert extension.split_entries(text) == (
        "Do it.\n\nParameters\n----------\na : int\n    Both,\n    truly.\nb : int\n    Both,\n"
        "    truly.\nc\n    One."
    )


def test_names_on_two_lines(extension):
    assert extension.split_entries("a, b,\nc\n    Text.") == (
        "a\n    Text.\nb\n    Text.\nc\n    Text."
    )


def test_prose_stays_as_it_is(extension):
    text = "Sums, means, counts and more.\n\n    f(x) = 1\n"
    assert extension.split_entries(text) == text
