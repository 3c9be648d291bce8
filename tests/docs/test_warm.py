"""A command whose libraries are loaded ahead does what it does without."""

import os
import signal
import subprocess
import sys

import pytest

from tests.docs.warm import start

SCRIPT = """#!{python}
import atexit, json, os, sys
atexit.register(print, "at the end")
name = sys.modules["__main__"].__file__
given = [sys.argv[1:], os.getcwd(), os.environ["WORD"], sys.stdin.read(), os.path.basename(name)]
print(json.dumps(given))
print("a mistake", file=sys.stderr)
{ends}
"""


@pytest.fixture
def script(tmp_path):
    """A function that writes a script with a last line beside an interpreter."""
    (tmp_path / "python").symlink_to(sys.executable)

    def write(ends):
        file = tmp_path / "command"
        file.write_text(SCRIPT.format(python=tmp_path / "python", ends=ends))
        file.chmod(0o755)
        return file

    return write


def called(script, folder):
    return subprocess.run(
        [script, "one", "two words"],
        cwd=folder,
        env={**os.environ, "WORD": "here"},
        input="from a pipe",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="such sockets are Linux's")
@pytest.mark.parametrize(
    "ends", ["", "sys.exit(3)", "sys.exit('a reason')", "sys.exit()", "raise KeyError('lost')"]
)
def test_it_says_and_ends_with_the_same(script, tmp_path, ends):
    file = script(ends)
    cold = called(file, tmp_path)
    server = start(file, dict(os.environ), libraries=["json"])
    try:
        warm = called(file, tmp_path)
        again = called(file, tmp_path)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate()
    assert warm.returncode == again.returncode == cold.returncode
    assert warm.stdout == again.stdout == cold.stdout
    assert warm.stdout.endswith("at the end\n")
    assert cold.stderr.splitlines()[-1] == warm.stderr.splitlines()[-1]
