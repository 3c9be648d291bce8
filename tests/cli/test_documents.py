from __future__ import annotations

import pytest

from dprepro.papers.document import load_documents
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro


def test_every_document_is_listed_with_its_printed_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = dprepro("documents").splitlines()
    assert len(lines) == len(load_documents())
    for line, (name, document) in zip(lines, load_documents().items(), strict=True):
        assert line.split()[:3] == [name, str(len(document.cells())), "cells"]
        assert line.endswith(document.title)


def test_a_word_selects_by_name_and_title() -> None:
    assert dprepro("documents", "boosted").split()[0] == "lazybb-2022"
    with pytest.raises(DpreproError, match="did you mean 'dp-ebm-2021'"):
        dprepro("documents", "dp-emb")
