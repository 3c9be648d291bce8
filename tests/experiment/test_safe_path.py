import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dprepro.experiment import environment as safe_path
from dprepro.experiment.environment import guarded

ROOT = Path(__file__).resolve().parents[2]
PLANTED = ("random", "numpy", "socket", "signal", "runpy", "threading", "json", "loky", "dprepro")
USE = """
import json, os, sys
from dprepro.experiment.local import LocalExecutor
executor = LocalExecutor(1, 120)
print(json.dumps([executor.submit(max, 2, 3).result(), executor.submit(os.getcwd).result()]))
executor.close()
"""


@pytest.fixture
def planted(tmp_path):
    """A working directory whose modules have the names of what workers import."""
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r} + '-{name}', 'w').close()\n"
            f"raise ImportError('planted {name}')\n"
        )
    return tmp_path


def _run(folder, code):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; del sys.path[0]\n{code}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("rewriting", [False, True], ids=["by variable", "as on Python 3.10"])
def test_workers_do_not_import_from_the_working_directory(planted, rewriting):
    if sys.version_info < (3, 11) and not rewriting:
        pytest.skip("Python 3.10 does not know the variable")
    before = (
        "import os, dprepro.experiment.environment as s, dprepro.experiment.local as l\n"
        "l.keep_working_directory_out = s._rewrite_commands\n"
        if rewriting
        else ""
    )
    assert _run(planted, before + USE) == [3, str(planted)]
    assert not list(planted.glob("ran-*"))


@pytest.mark.parametrize(
    "command",
    [
        ["-c", "import sys, random; print(sys.argv[1:])"],
        ["-m", "dprepro", "--version"],
        ["-B", "-m", "dprepro", "--version"],
    ],
)
def test_a_guarded_command_does_the_same_without_the_directory(planted, command):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONSAFEPATH", None)
    outputs = [
        subprocess.run(
            [*([sys.executable, *command] if at == ROOT else guarded([sys.executable, *command]))],
            capture_output=True,
            text=True,
            check=True,
            cwd=at,
            env=environment,
        ).stdout
        for at in (ROOT, planted)
    ]
    assert outputs[0] == outputs[1] != ""
    assert not list(planted.glob("ran-*"))


def test_other_commands_stay_as_they_are():
    assert guarded(["python", "script.py"]) == ["python", "script.py"]
    assert guarded(["python", "-I", "script.py"]) == ["python", "-I", "script.py"]


def test_commands_are_rewritten_once(monkeypatch):
    from multiprocessing import util

    from loky.backend import fork_exec as of_loky

    started = []
    monkeypatch.setattr(util, "spawnv_passfds", lambda path, args, fds: started.append(args))
    monkeypatch.setattr(of_loky, "fork_exec", lambda cmd, fds, env=None: started.append(cmd))
    safe_path._rewrite_commands()
    safe_path._rewrite_commands()
    util.spawnv_passfds("python", ["python", "-c", "pass"], ())
    of_loky.fork_exec(["python", "-m", "this"], (), env={})
    assert [command[1] for command in started] == ["-c", "-c"]
    assert all(command[2].count("import sys") == 1 for command in started)
