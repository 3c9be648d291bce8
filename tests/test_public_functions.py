"""What is public takes values of NumPy and pandas, and refuses others by the parameter's name."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from dataclasses import asdict
from enum import Enum
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dprepro
from dprepro import (
    CategoricalFeature,
    Dataset,
    Domain,
    DPEBMPlusRegressor,
    EBMRegressor,
    Ledger,
    NumericFeature,
    compare,
    load,
    load_domain,
    run,
    table,
    verdicts,
)
from dprepro.additive.editing import interpolate, level, set_value
from dprepro.privacy.ledger_entry import LedgerEntry
from dprepro.runtime.threads import Threads
from tests.docs.pages import blocks

NO_TEXT = [1, None, b"a", True, ["a"], np.nan]
NO_FLAG = [1, "yes", None, np.nan, pd.NA]
NO_NUMBER = [True, "1", None, pd.NA, 1j, [1], pd.Timestamp(0), 10**400]
NO_PATH = [1, None, b"a", True, ["a"]]
NO_TEXTS = ["a", b"a", 1, None, {"a": 1}, [1], [None]]

ENTRY = {
    "mechanism": "laplace", "releases": "a count", "sensitivity": 1, "norm": "l1", "scale": 2,
    "uses": 2, "budget": (1, 0),
}  # fmt: skip
X = pd.DataFrame({"a": [0.0, 1.0]})
DATASET = {
    "name": "d", "X": X, "y": np.arange(2), "task": "binary", "domain": None, "source": "s",
    "sha256": "",
}  # fmt: skip
NUMERIC, CATEGORICAL = {"name": "a", "lower": 0, "upper": 1}, {"name": "a", "categories": ["b"]}
DOMAIN = {"features": [NumericFeature("a", 0, 1)], "target": ["no", "yes"]}
LEDGER = {"epsilon": 1, "delta": 0, "adjacency": "replace-one"}


def _compare(methods, **more):
    return compare(*methods, **more)


REFUSED = [
    (NumericFeature, NUMERIC, {
        "name": [*NO_TEXT[1:], 1.5], "lower": NO_NUMBER, "upper": NO_NUMBER, "missing": NO_FLAG,
    }),
    (CategoricalFeature, CATEGORICAL, {
        "name": NO_TEXT[1:], "categories": NO_TEXTS, "missing": NO_FLAG, "ordered": NO_FLAG,
    }),
    (Domain, DOMAIN, {
        "features": [1, None, "a", ["a"], [1], {"a": 1}, [NumericFeature]],
        "target": [1, None, "no", [None], ["no", 1], [True, False], {"no": 1}, np.ones((2, 2))],
        "observed": NO_TEXTS,
    }),
    (Dataset, DATASET, {
        "name": NO_TEXT, "X": [np.ones((2, 1)), None, 1], "y": [[0, 1], None, pd.Series([0, 1])],
        "task": ["both", 1, None], "domain": [1, "a"], "source": NO_TEXT, "sha256": NO_TEXT,
        "test": [1, "a"], "units": [["a", "b"], 1],
    }),
    (Ledger, LEDGER, {
        "epsilon": [*NO_NUMBER, -1, math.nan], "delta": [*NO_NUMBER, -1, 1.1, math.nan],
        "adjacency": ["friends", 1, None], "entries": [1, None, "a", [1], [LedgerEntry]],
        **dict.fromkeys(["unaccounted", "assumed_public", "gaps", "floating_point"], NO_TEXTS),
        "post_processing": NO_TEXTS, "unit": [1, None, ""], "rows_per_unit": [*NO_NUMBER, 0, 1.0],
    }),
    (LedgerEntry, ENTRY, {
        "mechanism": ["magic", 1, None], "releases": NO_TEXT, "sensitivity": [*NO_NUMBER, -1],
        "norm": NO_TEXT, "scale": [*NO_NUMBER, -1, math.nan], "uses": [-5, 0, 1.0, True, "1", None],
        "budget": [1, None, (1,), (1, 2, 3), ("1", 0), (-1, 0), (True, 0), (1, 2)],
        "replace_one": [True, "1", -1], "sampling": [0, 2, True, "1", None], "exchanged": NO_FLAG,
    }),
    (load, {"name_or_path": "breast-cancer"}, {
        "name_or_path": NO_TEXT, "data_dir": [1, b"a", True], "online": NO_FLAG,
        "with_test": NO_FLAG,
    }),
    (run, {"config": "adult"}, {
        "config": NO_PATH, "results": NO_PATH, "splits": [0, 1.0, "1", True], "methods": NO_TEXTS,
        "epsilons": [1, "1", None, ["1"], [True]], "jobs": [0, 1.5, "1", True],
        "data_dir": [1, b"a", True],
    }),
    (table, {}, {
        "config": [1, b"a", True, ["a"]], "results": NO_PATH, "metric": [1, b"auc"],
        "dataset": [1, [1], True], "paper": [1, True], "shipped": NO_FLAG,
    }),
    (verdicts, {"results": "shipped", "paper": "dp-ebm"}, {
        "results": NO_PATH, "paper": [1, None, True],
    }),
    (Domain.from_frame, {"frame": X, "target": (0, 1), "bounds": {"a": (0, 1)}}, {
        "frame": [1, None, {"a": [0.0]}], "target": [1, None, "no"],
        "bounds": [1, ["a"], {"b": (0, 1)}, {"a": 1}, {"a": (0,)}],
        "categories": [1, {"b": ["c"]}], "missing": ["a", [1], ["b"]],
        "observed": NO_FLAG,
    }),
    (load_domain, {"name_or_path": "adult"}, {"name_or_path": [1, None, True]}),
    (_compare, {"methods": ["ebm", "logistic"]}, {
        "methods": [["ebm", name] for name in NO_TEXT], "results": NO_PATH, "configs": NO_TEXTS,
        "datasets": NO_TEXTS, "metric": [1, True, b"auc"], "epsilons": [1, "1", None, ["1"]],
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "arguments", "name", "values"),
    [
        pytest.param(function, arguments, name, values, id=f"{function.__name__}-{name}")
        for function, arguments, changes in REFUSED
        for name, values in changes.items()
    ],
)
def test_what_is_not_taken_is_refused_by_name(
    function, arguments, name, values, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for value in values:
        with pytest.raises(ValueError, match=f"{name}.* must|bounds must") as raised:
            function(**{**arguments, name: value})
        assert len(str(raised.value)) < 300
    assert list(tmp_path.iterdir()) == []


def test_a_domain_of_numpy_and_pandas_is_one_of_plain_values():
    text = Enum("Text", {"A": "a"}, type=str).A
    found = Domain(
        np.array([
            NumericFeature(np.str_("n"), np.int8(0), np.float32(0.5), np.True_),
            CategoricalFeature(text, pd.Categorical(["b", "c"]), np.array(False)),
        ], dtype=object),
        pd.Series(["no", "yes"], dtype="string[pyarrow]"), pd.Index(["bounds"]),
    )  # fmt: skip
    features = (NumericFeature("n", 0, 0.5, True), CategoricalFeature("a", ("b", "c")))
    expected = Domain(features, ("no", "yes"), ("bounds",))
    assert repr(asdict(found)) == repr(asdict(expected))
    assert hash(found) == hash(expected)
    assert repr(Domain([], np.array([0, 1])).target) == "(0, 1)"
    assert repr(Domain([], pd.array([0.5, 1], dtype="Float64")).target) == "(0.5, 1.0)"


def test_a_ledger_keeps_what_a_generator_gives():
    """It was empty after the first look, so that all held."""
    entry = LedgerEntry(**{**ENTRY, "uses": np.int64(2), "scale": np.float32(2)})
    ledger = Ledger(
        np.float64(0.5), np.float32(0), "replace-one", entries=(entry for _ in range(1)),
        gaps=(gap for gap in ["a gap"]), rows_per_unit=np.int64(1),
    )  # fmt: skip
    assert (ledger.entries, ledger.gaps) == ([entry], ["a gap"])
    assert round(ledger.spent_epsilon(), 9) == round(ledger.spent_epsilon(), 9) == 1.0
    assert not ledger.holds
    assert json.loads(json.dumps(asdict(ledger)))["entries"][0]["uses"] == 2


def test_a_ledger_of_its_own_lists_is_not_changed_through_them():
    gaps = ["a gap"]
    ledger = Ledger(1, 0, "replace-one", gaps=gaps)
    gaps.clear()
    assert ledger.gaps == ["a gap"]


def test_a_path_is_a_text_or_a_path(tmp_path):
    assert load("breast-cancer", str(tmp_path)).X.equals(load(Path("breast-cancer"), tmp_path).X)


@pytest.mark.parametrize("coverage", ["0.9", None, True, pd.NA, [0.9], 1j])
def test_a_coverage_that_is_no_number_is_refused_by_name(coverage):
    domain = Domain([NumericFeature("a", 0, 1)], (0, 1))
    rows = pd.DataFrame({"a": np.linspace(0, 1, 200)})
    model = DPEBMPlusRegressor(8, domain=domain, n_epochs=4, random_state=0).fit(rows, rows["a"])
    with pytest.raises(ValueError, match="coverage must be a number, got"):
        model.predict_interval(rows, coverage)
    plain = model.predict_interval(rows, 0.75)
    assert np.array_equal(model.predict_interval(rows, np.float32(0.75)), plain)


def test_thousands_of_jobs_are_few_threads():
    before = threading.active_count()
    rows = pd.DataFrame({"a": np.arange(8.0)})
    many = EBMRegressor(n_epochs=2, n_jobs=np.int64(2000), random_state=0).fit(rows, rows["a"])
    one = EBMRegressor(n_epochs=2, random_state=0).fit(rows, rows["a"])
    assert np.array_equal(many.predict(rows), one.predict(rows))
    assert threading.active_count() == before
    with Threads(2000) as threads:
        assert threads.number <= max(64, len(threads.map(id, range(64))))
    for wrong in (0, True, "2", 1.0):
        with pytest.raises(ValueError, match="n_jobs must"):
            Threads(wrong)


def test_an_edit_takes_numbers_of_numpy_and_refuses_others_by_name():
    rows = pd.DataFrame({"a": np.arange(40.0)})
    model = EBMRegressor(n_epochs=20, random_state=0).fit(rows, rows["a"])
    assert (
        set_value(model, "a", np.float32(3), np.float32(7)).after
        == (set_value(model, "a", 3, 8) and set_value(model, "a", 3, 7)).after
    )
    for wrong in NO_NUMBER:
        with pytest.raises(ValueError, match="value must be a number"):
            set_value(model, "a", 3, wrong)
        for edit in (interpolate, level):
            with pytest.raises(ValueError, match="start must be a number"):
                edit(model, "a", wrong, 10)
            with pytest.raises(ValueError, match="stop must be a number"):
                edit(model, "a", 1, wrong)
    for wrong in (1, None, "a", LedgerEntry):
        with pytest.raises(ValueError, match="entry must be a LedgerEntry"):
            Ledger(1, 0, "replace-one").add(wrong)


def test_the_package_says_that_it_is_typed():
    """Without the file, type checkers of users take every name for Any."""
    assert (Path(dprepro.__file__).parent / "py.typed").is_file()


def written_programs(folder):
    """Write the programs of the page on Python, and one with a wrong argument; return them."""
    shown = [b.text for b in blocks("docs/python.md") if b.language == "pycon"]
    assert len(shown) >= 4
    wrong = "import dprepro\nreveal_type(dprepro.table())\ndprepro.table(3)"
    programs = []
    for number, text in enumerate([*shown, ">>> " + wrong.replace("\n", "\n>>> ")]):
        lines = [line[4:] for line in text.splitlines() if line[:3] in (">>>", "...")]
        programs.append(folder / f"program{number}.py")
        programs[-1].write_text("\n".join(lines) + "\n")
    return programs


def test_programs_of_the_page_on_python_pass_a_strict_type_checker(tmp_path):
    """What users see of the package: as an installed one, with all rules of mypy."""
    programs = written_programs(tmp_path)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path]
    done = subprocess.run([*command, *programs], capture_output=True, text=True, cwd=tmp_path)
    said = done.stdout.splitlines()
    assert '"pandas.core.frame.DataFrame"' in said[0], done.stdout  # and not Any
    assert '"table" has incompatible type "int"' in said[1]
    assert said[2:] == [f"Found 1 error in 1 file (checked {len(programs)} source files)"]


def test_programs_of_the_page_on_python_pass_pyright(tmp_path):
    """The same with pyright's strict rules, by a build of it that needs no Node.js beside it."""
    pytest.importorskip("basedpyright", reason="it is large: `make pyright` installs it")
    programs = written_programs(tmp_path)
    # What stands alone is what the page shows the value of.
    rules = {"typeCheckingMode": "strict", "reportUnusedExpression": False}
    settings = {**rules, "extraPaths": [str(Path(dprepro.__file__).parents[1])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    found = json.loads(done.stdout)
    errors = [one for one in found["generalDiagnostics"] if one["severity"] == "error"]
    assert found["summary"]["filesAnalyzed"] >= len(programs)
    assert [Path(one["file"]) for one in errors] == programs[-1:], errors
    assert "Literal[3]" in errors[0]["message"]
    told = [one["message"] for one in found["generalDiagnostics"] if one not in errors]
    assert any('"DataFrame"' in message for message in told)  # and not Unknown
