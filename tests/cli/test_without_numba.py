"""What only reads must work without numba, and all but pictures without Matplotlib."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"
# One process for all commands: each would spend a second on starting.
WITHOUT = """
import contextlib, io, json, sys
sys.modules["numba"] = sys.modules["llvmlite"] = sys.modules["matplotlib"] = None
from dprepro.cli import main
said = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["dprepro", *arguments]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    heavy = {"pandas", "sklearn", "scipy.stats", "dp_accounting", "asyncio"}
    loaded = {name for name, module in sys.modules.items() if module}
    said.append([code, out.getvalue(), err.getvalue(), sorted(heavy & loaded)])
print(json.dumps(said))
"""
LIGHT = 7
"""The first so many load nothing that trains or reads rows: it would take longer than they do."""

COMMANDS = [
    (("--help",), {0}),
    (("methods",), {0}),
    (("cite", "adult", "dp-ebm-gdp"), {0}),
    (("data", "list"), {0}),
    (("table", "--config", "adult", "--metric", "auc", "--results", "results"), {0}),
    (("forensics", "--results", "results"), {0}),
    (("compare", "dp-ebm-gdp", "dpboost", "--results", "results"), {0}),
    (("methods", "dp-ebm-gdp"), {0}),
    (("check", "--results", "results"), {0, 1}),
    (("run", "quickstart", "--dry-run"), {0}),
    (("data", "describe", "breast-cancer"), {0}),
]
PICTURES = [
    ("report", "--results", "results"),
    ("plot", "curves", "--results", "results"),
    ("plot", "shapes", "adult-shapes"),
    ("plot", "filters", "mnist"),
    ("plot", "margins", "lazybb-figure1"),
    ("plot", "sweep", "n_maps"),
    ("compare", "--all", "--results", "results", "--output", "ranks.svg"),
    ("export-crate", "--results", "results"),
    ("audit", "gaussian", "--trials", "10", "--picture", "audit.svg"),
]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Exit code, output and errors by command."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "results").mkdir()
    shutil.copy(RESULTS / "adult.parquet", folder / "results")
    commands = [*(arguments for arguments, _ in COMMANDS), *PICTURES]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return dict(zip(commands, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize(
    ("arguments", "codes"),
    COMMANDS,
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else None,
)
def test_commands_that_fit_nothing_need_no_numba(said, arguments, codes):
    code, out, err, _ = said[arguments]
    assert code in codes, out + err
    assert "internal error" not in err
    assert len(out) > 200


@pytest.mark.parametrize("arguments", PICTURES, ids=" ".join)
def test_what_draws_says_at_once_what_it_needs(said, arguments):
    code, out, err, _ = said[arguments]
    assert (code, out) == (2, ""), err
    assert err.endswith("error: pictures need Matplotlib: pip install 'dprepro[plot]'\n")
    assert err.count("\n") <= 2  # before it, whose runs would be shown


def test_commands_that_only_look_things_up_load_no_large_library(said):
    assert [said[arguments][-1] for arguments, _ in COMMANDS[:LIGHT]] == [[]] * LIGHT
    assert said[COMMANDS[-1][0]][-1]  # which shows that the test would notice
