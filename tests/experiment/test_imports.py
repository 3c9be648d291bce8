"""Before its first task a run loads what plans need, not what trains and accounts."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["dprepro.experiment.run", "dprepro.cli.run"])
def test_planning_a_run_loads_no_library_that_only_tasks_need(module: str) -> None:
    code = f'import {module}, sys; print("\\n".join(sys.modules))'
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert module in loaded
    assert not loaded & {"dp_accounting", "sklearn", "scipy", "numba", "matplotlib", "openml"}
