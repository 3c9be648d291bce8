"""Counts in the documents are those of the registry, and no other page counts methods by hand."""

from __future__ import annotations

import re

import pytest

from dprepro.methods.registry import Guarantee, Method, all_methods
from tests.docs import counts
from tests.docs.counts import SENTENCES, WORDS, counted, pattern, renewed
from tests.docs.pages import PAGES, ROOT

COUNTED = re.compile(
    rf"\b({'|'.join(WORDS[3:])}|[1-9]\d+)\s+(?:of\s+(?:the\s+)?\d+\s+)?"
    r"(?:private\s+|published\s+|built-in\s+)?(methods|documents|cards|commands|configs)\b",
    re.IGNORECASE,
)
LISTED = {("docs/reliability.md", "three private methods")}
"""Counts of what the same sentence lists."""


@pytest.mark.parametrize("page", dict.fromkeys(page for page, _ in SENTENCES))
def test_a_page_states_what_the_registry_has(page: str) -> None:
    """`make docs-outputs` writes it anew."""
    text = (ROOT / page).read_text()
    assert renewed(page, text) == (text, [])


@pytest.mark.parametrize("page", PAGES)
def test_no_page_counts_by_hand(page: str) -> None:
    text = (ROOT / page).read_text()
    written = [pattern(said).search(text) for place, said in SENTENCES if place == page]
    for found in COUNTED.finditer(text):
        is_written = any(one and one.start() <= found.start() < one.end() for one in written)
        assert is_written or (page, " ".join(found[0].split())) in LISTED, found[0]


def test_methods_and_promises_that_change_change_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    before, text = counted(), (ROOT / "PRIVACY.md").read_text()
    methods: dict[str, Method] = dict(all_methods())
    del methods["dp-bag-sound"]
    object.__setattr__(moved := _copy(methods["ada-ssp"]), "guarantee", Guarantee.PURE)
    methods["ada-ssp"] = moved
    monkeypatch.setattr(counts, "all_methods", lambda: methods)
    assert counted()["private"] == before["private"] - 1
    changed, lost = renewed("PRIVACY.md", text.replace("| `dp-bag-sound` |", "| dp-bag-sound |"))
    assert not lost
    assert f"{before['exact'] - 1} of the {before['private'] - 1} methods with a" in changed
    assert f"in {before['exact'] - 1} of {before['private'] - 1} methods, whose" in changed
    assert "| `ada-ssp` | epsilon | add/remove-one |" in changed


def _copy(method: Method) -> Method:
    made = object.__new__(type(method))
    made.__dict__.update(method.__dict__)
    return made


def test_a_sentence_that_is_gone_is_named() -> None:
    text = (ROOT / "README.md").read_text().replace("compute their noise", "draw their noise")
    assert renewed("README.md", text)[1] == [
        "{Floating} methods compute their noise in floating point"
    ]
