from __future__ import annotations

import pytest

from dprepro.cli.catalogue import select, show_list
from dprepro.runtime.errors import DpreproError

TEXTS = {"wine-white": "White wines", "quick": "A first run", "adult": "Wine or census"}


def test_all_words_must_be_there_in_name_or_title() -> None:
    assert select((), TEXTS, "config") == list(TEXTS)
    assert select(["WINE"], TEXTS, "config") == ["wine-white", "adult"]
    assert select(["wine", "census"], TEXTS, "config") == ["adult"]


def test_without_a_match_the_nearest_names_are_given() -> None:
    said = "no config has 'wine-whit_'.*; did you mean 'wine-white'.*all are listed"
    with pytest.raises(DpreproError, match=said):
        select(["wine-whit_"], TEXTS, "config")


def test_a_list_is_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    show_list([("a", "12", "some words to be wrapped"), ("bc", "3", "short")], figures=[1])
    assert capsys.readouterr().out.splitlines() == [
        "a   12  some words to be",
        "        wrapped",
        "bc   3  short",
    ]
