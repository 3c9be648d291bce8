import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.mutation.__main__ import NOTES, in_fork
from tools.mutation.mutants import mutants

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("a < b", ["a < b -> a <= b", "a < b -> a >= b"]),
        ("a == b", ["a == b -> a != b"]),
        ("a + b", ["a + b -> a - b"]),
        ("a and b", ["a and b -> a or b"]),
        ("x = not a", ["not a -> a"]),
        ("x = 2", ["2 -> 3", "2 -> 1"]),
        ("x = 0.5", ["0.5 -> 1.0"]),
        ("x = True", ["True -> False"]),
        ("x = min", ["min -> max"]),
        ("x = a[:b]", [":b -> :b + 1"]),
        ("x = a if b else c", ["a if b else c -> a if not b else c"]),
        ("raise a", ["raise a -> pass"]),
        ("a()", ["a() -> pass"]),
        ("x: 'a < b' = y", []),
        ("'text'", []),
        ("zip(a, strict=True)", ["zip(a, strict=True) -> pass"]),
        ("x = f(fontsize=9, bins=4)", ["4 -> 5", "4 -> 3"]),
    ],
)
def test_one_fault_at_a_time(tmp_path, source, changes):
    path = tmp_path / "small.py"
    path.write_text(f"# a comment\n{source}\n")
    found = mutants(path)
    assert [m.change for m in found if m.change != f"{source} -> pass" or m.change in changes] == (
        changes
    )
    assert {(m.line, m.text, m.function) for m in found} <= {(2, source, None)}


def test_faults_know_the_function_around_them(tmp_path):
    path = tmp_path / "small.py"
    path.write_text("class A:\n    @property\n    def f(self, b=1):\n        return lambda: b\n")
    assert {(m.line, m.change): m.function for m in mutants(path)} == {
        (3, "1 -> 2"): None,
        (3, "1 -> 0"): None,
        (4, "return lambda: b -> return None"): ("f", 2),
    }


def test_what_survives_is_named(tmp_path):
    (tmp_path / "small.py").write_text(
        "LEAST = 3\n\n\ndef larger(a, b):\n    if b < LEAST:\n        b = LEAST\n"
        "    return a if a > b else b\n\n\ndef in_thread(a):\n    return a\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_threads.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\nfrom small import in_thread\n\n\n"
        "def test_in_thread():\n    with ThreadPoolExecutor() as pool:\n"
        "        assert pool.submit(in_thread, 3).result() == 3\n"
    )
    # Frozen objects are in no list of the garbage collector, so no function was found to change.
    (tmp_path / "tests" / "conftest.py").write_text(
        "import gc\n\n\ndef pytest_collection_finish():\n    gc.freeze()\n"
    )
    (tmp_path / "tests" / "test_small.py").write_text(
        "from small import larger\n\n\ndef test_larger():\n    assert larger(5, 3) == 5\n"
        "    assert larger(1, 4) == 4\n    assert larger(1, 0) == 3\n"
    )
    note = {"module": "small.py", "line": "return a if a > b else b", "change": "a > b -> a >= b"}
    (tmp_path / "notes.yaml").write_text(yaml.safe_dump([{**note, "why": "the same number"}]))
    given = ["small.py", "--notes", "notes.yaml", "--tests", "tests"]
    done = subprocess.run(
        [sys.executable, "-m", "tools.mutation", *given],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert "small.py:5: b < LEAST -> b <= LEAST" in lines, done.stdout + done.stderr
    assert lines[-1] == "small.py: 8 mutants: 6 killed, 1 equivalent, 1 survive"
    assert done.returncode == 1


def test_notes_name_lines_that_are_there_with_a_reason():
    notes = yaml.safe_load(NOTES.read_text(encoding="utf-8"))
    for note in notes:
        lines = (ROOT / note["module"]).read_text(encoding="utf-8").splitlines()
        assert note["line"] in [line.strip() for line in lines], note
        assert len(note["why"].split()) > 3, note


def test_a_fault_that_never_ends_is_stopped():
    def never():
        while True:
            pass

    assert in_fork(never, 1) == "stopped"
    assert in_fork(lambda: "done", 1) == "done"


def test_tests_that_are_killed_from_outside_do_not_count():
    with pytest.raises(pytest.UsageError, match="killed from outside"):
        in_fork(lambda: os.kill(os.getpid(), signal.SIGKILL), 1)
