from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dprepro
from dprepro.cli import app
from dprepro.data.card import load_card
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import plan
from dprepro.methods import registry
from dprepro.release.scaffold import METHOD_TASKS, config_text, method_files, write_new
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro as command
from tests.private_table import rows_of, write_table


@pytest.mark.parametrize("task", ["binary", "regression", "multiclass", "counts"])
def test_a_new_config_makes_a_plan_without_rows(tmp_path: Path, task: str) -> None:
    card = write_table(tmp_path, task, rows_of(task, 4)).with_name("patients.yaml")
    (tmp_path / "patients.csv").unlink()
    path = tmp_path / "new.yaml"
    path.write_text(config_text(load_card(card), "patients.yaml", task == "counts"))
    config = load_config(path)
    planned = plan(config, identify=False)
    assert config.domain == "public"
    assert {p.task.method for p in planned if not p.skip} == {m.method for m in config.methods}


@pytest.mark.parametrize("task", ["binary", "regression", "multiclass"])
def test_a_new_config_of_several_rows_per_unit_can_be_run(tmp_path: Path, task: str) -> None:
    unit = "unit: person\nrows_per_unit: 3\n"
    card = write_table(tmp_path, task, rows_of(task, 4), unit).with_name("patients.yaml")
    path = tmp_path / "new.yaml"
    outcome = CliRunner().invoke(app, ["new", "config", str(card), "--output", str(path)])
    assert outcome.exit_code == 0, outcome.exception
    planned = plan(load_config(path), identify=False)  # what `run --dry-run` does
    rows = {p.task.method: p.task.rows_per_unit for p in planned if not p.skip}
    if task == "multiclass":
        assert rows == {"dp-ebm-plus": 3, "lightgbm": 3}
        return
    fair = "dp-logistic-fair" if task == "binary" else "dp-linear-fair"
    assert rows == {"dp-ebm-plus": 3, "dp-ebm-sound": 3, fair: 1, "ebm": 3}


CLASSES = ["dp-ebm-plus", "lightgbm"]


@pytest.mark.parametrize(
    ("task", "lacks", "labels"),
    [
        ("multiclass", True, CLASSES),  # random trees take no missing numbers
        ("multiclass", False, [*CLASSES, "dp-random-forest"]),
        ("counts", True, ["dp-ebm-plus", "as-numbers", "dp-linear-fair", "ebm"]),
    ],
)
def test_a_new_config_of_classes_or_counts_runs(
    tmp_path: Path, task: str, lacks: bool, labels: list[str]
) -> None:
    rows = [(age, dose or "9", *rest) for age, dose, *rest in rows_of(task, 300)]
    card = write_table(tmp_path, task, rows_of(task, 300) if lacks else rows)
    card = card.with_name("patients.yaml")
    if not lacks:
        card.write_text(card.read_text(encoding="utf-8").replace(", missing: true", ""))
    path, results = tmp_path / "new.yaml", tmp_path / "results"
    command("new", "config", card, "-o", path, *["--counts"][: task == "counts"])
    command("run", path, "--results", results, "--splits", 1, "--epsilon", 4, "--jobs", 1)
    lines = [json.loads(line) for line in (results / "new.jsonl").read_text().splitlines()]
    found = {line["task"]["label"]: line for line in lines if "task" in line}
    assert {name: line["status"] for name, line in found.items()} == dict.fromkeys(labels, "ok")
    name = "mean_poisson_deviance" if task == "counts" else "accuracy"
    assert found["dp-ebm-plus"]["metrics"][name] > 0


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_what_cannot_be_counts_is_refused(tmp_path: Path, task: str) -> None:
    card = write_table(tmp_path, task, rows_of(task, 4)).with_name("patients.yaml")
    with pytest.raises(DpreproError, match="--counts is for numbers from 0 to a public largest"):
        command("new", "config", card, "--counts")
    assert not list(tmp_path.glob("*-study.yaml"))


@pytest.fixture(params=METHOD_TASKS)
def task(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a new method, as DPREPRO_METHODS names it."""
    folder = tmp_path / "methods"
    files = method_files("noisy-mean-2", task)
    write_new({folder / "noisy_mean_2" / name: text for name, text in files.items()}, force=False)
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(folder))
    monkeypatch.syspath_prepend(str(folder))
    registry.all_methods.cache_clear()
    yield folder
    registry.all_methods.cache_clear()
    for name in [name for name in sys.modules if "noisy_mean_2" in name]:
        del sys.modules[name]


def test_the_tests_of_a_new_method_pass_as_written(folder: Path) -> None:
    tests = importlib.import_module("noisy_mean_2.test_noisy_mean_2")
    run = [name for name in vars(tests) if name.startswith("test_")]
    assert len(run) == 4
    for name in run:
        getattr(tests, name)()


CLIPPED = "np.clip(units, -LARGEST, LARGEST)"
NOISY = "self._noise.answer(exact, query)"


@pytest.mark.parametrize(
    ("task", "right", "wrong", "test"),
    [
        ("regression", CLIPPED, "np.clip(units, -LARGEST, 2 * LARGEST)", "no_row"),
        ("regression", CLIPPED, f"3 * {CLIPPED}", "an_audit"),
        ("binary", "places.ravel()", "places[:, [0, 0, 1]].ravel()", "no_row"),
        ("binary", NOISY, "NoisyAnswer(exact * 1.0, 1.0)", "an_audit"),
    ],
)
def test_the_tests_of_a_new_method_find_its_faults(
    folder: Path, right: str, wrong: str, test: str
) -> None:
    curator = folder / "noisy_mean_2" / "curator.py"
    assert right in curator.read_text(encoding="utf-8")
    curator.write_text(curator.read_text(encoding="utf-8").replace(right, wrong))
    tests = importlib.import_module("noisy_mean_2.test_noisy_mean_2")
    (name,) = [name for name in vars(tests) if name.startswith(f"test_{test}")]
    with pytest.raises(AssertionError):
        getattr(tests, name)()


def test_only_names_of_methods_are_taken() -> None:
    for name in ("Noisy", "a b", "-a", "../a", ""):
        with pytest.raises(DpreproError, match="small letters"):
            method_files(name)


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text("mine")
    with pytest.raises(DpreproError, match=r"old\.yaml: exists already"):
        write_new({new: "a", old: "b"}, force=False)
    assert (old.read_text(encoding="utf-8"), new.exists()) == ("mine", False)
    write_new({new: "a", old: "b"}, force=True)
    assert old.read_text(encoding="utf-8") == "b"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DpreproError, match="cannot write"):
        write_new({tmp_path / "file" / "card.yaml": "a"}, force=False)


@pytest.mark.parametrize("task", METHOD_TASKS)
def test_a_new_method_has_the_shape_of_ours(task: str) -> None:
    ours = {path.name for path in (Path(dprepro.__file__).parent / "methods/ada_ssp").glob("*.py")}
    assert set(method_files("ada-ssp", task)) == ours | {"test_ada_ssp.py"}
