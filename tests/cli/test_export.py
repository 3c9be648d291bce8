"""`dprepro export` writes what the functions of `dprepro.additive.export` return, or nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dprepro.additive.export.plain import to_python
from dprepro.additive.export.sql import to_sql
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.commands import dprepro


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(small.file()))
    return path


def test_sql_names_the_table(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "model.sql"
    said = dprepro("export", model, "--to", "sql", "--table", "customers", "-o", out)
    assert said == f"{out}: the model, as an SQL query\n"
    assert out.read_text() == to_sql(small.model(), "customers")
    assert [path.name for path in out.parent.iterdir()] == ["model.sql"]


def test_python_can_go_to_standard_output(model: Path) -> None:
    assert dprepro("export", model, "--to", "python", "-o", "-") == to_python(small.model())


def test_onnx_is_a_file(model: Path, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    dprepro("export", model, "--to", "onnx", "--output", tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx").graph.name == "additive_model"
    with pytest.raises(DpreproError, match="name a file"):
        dprepro("export", model, "--to", "onnx", "-o", "-")


def test_for_interpret_it_says_what_to_do(model: Path, tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"load_model\(.*\).to_interpret\(\)"):
        dprepro("export", model, "--to", "interpret", "-o", tmp_path / "x")
    assert {path.name for path in tmp_path.iterdir()} == {"model.json"}


@pytest.mark.parametrize("form", ["sql", "python"])
def test_a_broken_model_or_the_model_itself_is_refused(
    model: Path, tmp_path: Path, form: str
) -> None:
    before = model.read_text()
    with pytest.raises(DpreproError, match="is the model file"):
        dprepro("export", model, "--to", form, "-o", model)
    assert model.read_text() == before
    model.write_text(before.replace('"cuts"', '"cut"'))
    with pytest.raises(DpreproError, match="cut"):
        dprepro("export", model, "--to", form, "-o", tmp_path / "x")
    assert {path.name for path in tmp_path.iterdir()} == {"model.json"}


def test_a_module_must_be_called_as_one(model: Path, tmp_path: Path) -> None:
    with pytest.raises(DpreproError, match=r"ends in \.py, such as out\.py"):
        dprepro("export", model, "--to", "python", "-o", tmp_path / "out.python")


def test_a_file_is_replaced_as_the_help_says(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.py"
    out.write_text("old")
    dprepro("export", model, "--to", "python", "-o", out)
    assert out.read_text() == to_python(small.model())
    for command in ("export", "predict"):
        assert "which is replaced if it exists" in " ".join(
            (re.sub(r"[^\w ,.-]", " ", dprepro(command, "--help"))).split()
        )


def test_what_is_no_model_file_is_told_what_writes_one(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(DpreproError, match=r"`dprepro release CARD` and `dprepro fit"):
        dprepro("export", tmp_path / "no.json", "--to", "sql", "-o", "-")
    for command in ("export", "predict", "show", "edit"):
        said = " ".join(re.sub(r"[^\w ,.-]", " ", dprepro(command, "--help")).split())
        assert "A model file, from dprepro release or dprepro fit" in said
