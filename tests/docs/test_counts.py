"""Counts in the documents are those of the registry and of the recorded verdicts; no other page
counts methods or verdicts by hand.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from dprepro.methods.entry import Guarantee, Method
from dprepro.methods.registry import all_methods
from tests.docs import counts
from tests.docs.counts import SENTENCES, WORDS, counted, pattern, renewed
from tests.docs.pages import PAGES, ROOT

COUNTED = re.compile(
    rf"\b({'|'.join(WORDS[3:])}|[1-9]\d+)\s+(?:of\s+(?:the\s+)?\d+\s+)?"
    r"(?:private\s+|published\s+|built-in\s+)?(methods|documents|cards|commands|configs)\b",
    re.IGNORECASE,
)
JUDGED = re.compile(
    r"\b\d+\s+(?:(?:cells|figures|of them|are)\s+){0,2}(?:equivalent|inconclusive)\b"
    r"|\b\d+\s+(?:printed\s+)?(?:cells|figures)\s+(?:are\s+)?(?:different|better|worse|the same)\b"
)
LISTED = {("docs/evidence/reliability.md", "three private methods")}
"""Counts of what the same sentence lists."""


@pytest.mark.parametrize("page", dict.fromkeys(page for page, _ in SENTENCES))
def test_a_page_states_what_the_registry_has(page: str) -> None:
    """`make docs-outputs` writes it anew."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert renewed(page, text) == (text, [])


@pytest.mark.parametrize("page", PAGES)
def test_no_page_counts_by_hand(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    written = [pattern(said).search(text) for place, said in SENTENCES if place == page]
    for found in (*COUNTED.finditer(text), *JUDGED.finditer(text)):
        is_written = any(one and one.start() <= found.start() < one.end() for one in written)
        assert is_written or (page, " ".join(found[0].split())) in LISTED, found[0]


def test_methods_and_promises_that_change_change_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    before, text = counted(), (ROOT / "PRIVACY.md").read_text(encoding="utf-8")
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


def test_verdicts_that_change_change_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"dp-ebm-2021": Counter(equivalent=3, better=1, worse=2, inconclusive=4, impossible=9)}
    monkeypatch.setattr(counts, "recorded", lambda: before)
    readme, lost = renewed("README.md", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert not lost
    assert "Of the 10 cells of the DP-EBM paper that can be run, 3 are equivalent" in " ".join(
        readme.split()
    )
    page, lost = renewed(
        "docs/verdicts.md", (ROOT / "docs/verdicts.md").read_text(encoding="utf-8")
    )
    assert not lost
    assert "| dp-ebm-2021 | 10 | 3 | 1 | 2 | 4 |\n| **all** | 10 | 3 | 1 | 2 | 4 |\n\n<!--" in page
    assert "in a document of 10 cells" in page


def _copy(method: Method) -> Method:
    made = object.__new__(type(method))
    made.__dict__.update(method.__dict__)
    return made


def test_a_sentence_that_is_gone_is_named() -> None:
    text = (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .replace("compute their noise", "draw their noise")
    )
    assert renewed("README.md", text)[1] == [
        "{Floating} methods compute their noise in floating point"
    ]
