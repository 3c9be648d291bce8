"""What a page would load from elsewhere is found; what a reader can click is not."""

from __future__ import annotations

import importlib.util
import json

import pytest

from tests.docs.notebooks import NOTEBOOKS, renewed
from tests.docs.pages import ROOT


def hook(name):
    """Return a module of .ci, which is no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://a.example/b.js"></script>',
        '<script src="//a.example/b.js"></script>',
        '<link rel="stylesheet" href="http://a.example/b.css">',
        '<link rel="preconnect" href="https://a.example">',
        '<img alt="" src="HTTPS://a.example/b.png">',
        "<style>@import 'https://a.example/b.css';</style>",
        '<p style="background: url(https://a.example/b.png)">words</p>',
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(tmp_path, html):
    (tmp_path / "page.html").write_text(html)
    found = hook("outside").outside(tmp_path)
    assert len(found) == 1
    assert found[0].lower().startswith("page.html: ")
    assert "//a.example" in found[0].lower()


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://a.example">words</a>',
        '<link rel="canonical" href="https://a.example">',
        '<script src="../assets/b.js"></script>',
        "<style>p { background: url(b.png) }</style><p>url(https://a.example)</p>",
    ],
)
def test_what_is_clicked_or_lies_beside_is_not(tmp_path, html):
    (tmp_path / "page.html").write_text(html)
    assert hook("outside").outside(tmp_path) == []


def test_styles_are_read(tmp_path):
    (tmp_path / "a.css").write_text('@font-face { src: url("https://a.example/b.woff2") }')
    assert hook("outside").outside(tmp_path) == ["a.css: https://a.example/b.woff2"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_has_the_results_that_its_cells_have(path, data_dir, monkeypatch):
    monkeypatch.setenv("DPREPRO_DATA", str(data_dir))
    assert renewed(path) == path.read_text(encoding="utf-8")


def test_a_notebook_is_a_page_with_code_and_results():
    cells = [
        {"cell_type": "markdown", "source": ["# A\n", "words"]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": [{"data": {"text/plain": ["2"]}}]},
    ]
    page = hook("notebook").as_markdown(json.dumps({"cells": cells}))
    assert page == "# A\nwords\n\n```python\n1 + 1\n```\n\n```text\n2\n```"


def test_the_gallery_has_every_picture_that_it_draws():
    drawn = [name for name, _ in hook("gallery").drawn()]
    there = {path.name for path in (ROOT / "docs" / "figures" / "gallery").iterdir()}
    assert set(drawn) == there
    assert len(drawn) == len(set(drawn)) >= 3
