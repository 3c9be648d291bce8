"""Before its first task a run loads what plans need, not what trains and accounts."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.mark.parametrize("module", ["dprepro.experiment.run", "dprepro.cli.run"])
def test_planning_a_run_loads_no_library_that_only_tasks_need(module: str) -> None:
    code = f'import {module}, sys; print("\\n".join(sys.modules))'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert module in loaded
    assert not loaded & {"dp_accounting", "sklearn", "scipy", "numba", "matplotlib", "openml"}


def test_a_finished_run_loads_no_library_that_tasks_need(tmp_path: Path) -> None:
    shutil.copy(RESULTS / "wine-white.parquet", tmp_path)
    code = f"""import sys
from typer.testing import CliRunner
from dprepro.cli import app
done = CliRunner().invoke(app, ["run", "wine-white", "--results", {str(tmp_path)!r}])
assert done.exit_code == 0, done.output
print(*sys.modules)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sklearn", "scipy", "pandas", "numba"} & set(done.stdout.split())
    assert [path.name for path in tmp_path.iterdir()] == ["wine-white.parquet"]
