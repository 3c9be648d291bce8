"""What only reads must work where numba cannot even be imported."""

import subprocess
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"
WITHOUT = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
from dprepro.cli import main
sys.argv[0] = "dprepro"
main()
"""


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (("--help",), {0}),
        (("methods",), {0}),
        (("methods", "dp-ebm-gdp"), {0}),
        (("data", "list"), {0}),
        (("table", "--config", "adult", "--results", RESULTS), {0}),
        (("check", "--results", RESULTS), {0, 1}),
        (("run", "quickstart", "--dry-run"), {0}),
    ],
    ids=lambda given: " ".join(map(str, given)) if isinstance(given, tuple) else None,
)
def test_commands_that_fit_nothing_need_no_numba(arguments, codes, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=None,
    )
    assert done.returncode in codes, done.stdout + done.stderr
    assert "internal error" not in done.stderr
    assert len(done.stdout) > 200
