"""Plant one fault after the other, and see who notices: curator, tests, audit, or nobody.

A fault is a replacement of text in one module (``tools/faults/*.yaml``). It is planted in a
copy of the package in a temporary folder, and tried in a process of its own. The curator notices a
fault if it refuses the fit that an audit asks for. The tests are those of a few files that concern
the module. The audit sees outputs alone: it notices what exceeds the stated epsilon.

Every fault that was tried is a line of ``benchmarks/outputs/planted_faults.jsonl``; the same
command goes on there. A fault whose text is changed is tried again.

Run: python tools/planted_faults.py --jobs 2
     python tools/planted_faults.py --only one-bin-bare --fresh
     python tools/planted_faults.py --table      # prints the table of what was tried
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
FAULTS = ROOT / "tools" / "faults"
JOURNAL = ROOT / "benchmarks" / "outputs" / "planted_faults.jsonl"
COPIED = ("dprepro", "tests")
SEED = 1
SECONDS = 420.0
QUICK_TRIALS = 200
LIBRARIES = (
    "numba", "numpy", "pandas", "pyarrow", "scipy.optimize", "scipy.stats", "sklearn", "yaml",
    "dp_accounting.pld", "loky", "matplotlib", "pydantic", "pytest", "typer",
)  # fmt: skip
"""Imported once; every fault is tried in a fork that has them, and nothing of the package, yet.

diffprivlib is not among them: beside a new scikit-learn only the package's adapter can import it.
"""


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes
    ----------
    name, what
        What it is called, and what is wrong then, in words.
    module, old, new
        A path, the text in it that is replaced, and by what. `old` occurs once.
    seen
        Whether outputs alone can show it beyond the stated epsilon, on a pair that is audited.
    tests
        Test files that concern the module.
    audit
        "CASE[:TASK] EPSILON TRIALS" of audits that concern it.
    """

    name: str
    what: str
    module: str
    old: str
    new: str
    seen: bool
    tests: tuple[str, ...]
    audit: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tests", tuple(self.tests))
        object.__setattr__(self, "audit", tuple(self.audit))

    def planted(self, root: Path = ROOT) -> str:
        """Return the text of the module with the fault.

        Raises
        ------
        ValueError
            If the text to replace is not there exactly once, or what comes out is no Python.
        """
        text = (root / self.module).read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1 or self.old == self.new:
            raise ValueError(
                f"{self.name}: the text to replace is {found} times in {self.module}, not once: "
                "adapt the fault to the module"
            )
        changed = text.replace(self.old, self.new)
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise ValueError(f"{self.name}: {self.module} is no Python then: {error}") from error
        return changed

    def digest(self, quick: bool) -> str:
        """Return what the journal knows the fault by."""
        text = json.dumps([asdict(self), quick], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_faults(folder: Path = FAULTS) -> list[Fault]:
    """Return all faults, in the order of the files.

    Raises
    ------
    ValueError
        On a key that is unknown or missing, or a name that two faults have.
    """
    found: dict[str, Fault] = {}
    known = {field.name for field in fields(Fault)}
    for path in sorted(folder.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            unlike = ({*entry} ^ known) - {"audit"}  # no audit need concern a fault
            if unlike or entry["name"] in found:
                raise ValueError(f"{path.name}: {entry.get('name')}: wrong or repeated: {unlike}")
            found[entry["name"]] = Fault(**entry)
    return list(found.values())


# --- a process with the fault ---------------------------------------------------------------------


class Scratch:
    """A copy of the package and its tests, in which one module at a time is changed.

    `place` is the folder that it is made in, and `root` what is copied.
    """

    def __init__(self, place: str, root: Path = ROOT) -> None:
        self.root, self.folder = root, Path(tempfile.mkdtemp(dir=place))
        for path in root.iterdir():
            if path.name in COPIED:
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(path, self.folder / path.name, ignore=ignored)
            elif path.name != ".git":
                (self.folder / path.name).symlink_to(path)

    def plant(self, fault: Fault) -> None:
        """Write the module with the fault."""
        self._write(fault, fault.planted(self.root))

    def mend(self, fault: Fault) -> None:
        """Write the module as it is."""
        self._write(fault, (self.root / fault.module).read_text(encoding="utf-8"))

    def _write(self, fault: Fault, text: str) -> None:
        path = self.folder / fault.module
        path.write_text(text, encoding="utf-8")
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            stale.unlink()


def in_fork(call: Callable[[], Any], folder: Path, seconds: float) -> Any:
    """Return what a call returns in a fork of this process that imports from a folder.

    "stopped" if it does not within so many seconds, and an error's text if it raises one.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.chdir(folder)
        here = {str(ROOT), str(ROOT / "benchmarks"), ""}
        sys.path[:] = [str(folder), *(path for path in sys.path if path not in here)]
        os.environ["PYTHONPATH"] = str(folder)
        try:
            sender.send(call())
        except BaseException as error:
            sender.send(f"broken: {type(error).__name__}: {error} {traceback.format_exc()[-300:]}")

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(seconds) else "stopped"
    except EOFError:
        return "stopped"
    finally:
        process.kill()
        process.join()


def run_audits(specs: Iterable[str], quick: bool) -> dict[str, str]:
    """Audit, until one notices; return what the curator and the audit say, "" for nothing."""
    from dprepro.audit import audit, find_case
    from dprepro.privacy.private_rows import PrivateRowsError
    from dprepro.privacy.query import BudgetError, SensitivityError

    for spec in specs:
        subject, epsilon, trials = spec.split()
        name, _, task = subject.partition(":")
        number = min(int(trials), QUICK_TRIALS) if quick else int(trials)
        try:
            case: Any = find_case(name, task or None, epsilon=float(epsilon))  # type: ignore[arg-type]
            result = audit(case, number, seed=SEED)
        except (BudgetError, PrivateRowsError, SensitivityError) as error:
            return {"curator": type(error).__name__, "audit": ""}
        if result.unexplained:
            found = f"{subject} at epsilon {epsilon}: at least {result.refuting_bound:.3g}"
            return {"curator": "", "audit": found}
    return {"curator": "", "audit": ""}


def run_tests(files: Sequence[str]) -> str:
    """Return the first test that fails, "" if none does."""
    import pytest

    failed: list[str] = []

    class Failures:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                failed.append(report.nodeid)

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                failed.append(report.nodeid)

    options = ["-x", "-q", "-n0", "-pno:cacheprovider", "-pno:randomly"]
    code = pytest.main([*options, *files], plugins=[Failures()])
    if code != pytest.ExitCode.OK and not failed:
        return f"broken: pytest ends with {int(code)}"
    return failed[0] if failed else ""


# --- all of them ----------------------------------------------------------------------------------

_SCRATCH: list[Scratch] = []


def prepare(place: str) -> None:
    """Import what all faults need, and make this process's copy of the package in a folder."""
    import importlib

    for name in LIBRARIES:
        importlib.import_module(name)
    _SCRATCH.append(Scratch(place))


def attempt(fault: Fault, quick: bool, mended: bool = False) -> dict[str, Any]:
    """Plant a fault, and return a line of the journal; `mended` tries the same without it."""
    (scratch,) = _SCRATCH
    started = time.perf_counter()
    try:
        if not mended:
            scratch.plant(fault)
        audited = in_fork(lambda: run_audits(fault.audit, quick), scratch.folder, SECONDS)
        files = fault.tests[:1] if quick else fault.tests
        tested = in_fork(lambda: run_tests(files), scratch.folder, SECONDS)
    finally:
        scratch.mend(fault)
    if isinstance(audited, str):
        audited = {"curator": "", "audit": "", "error": audited}
    seconds = round(time.perf_counter() - started, 1)
    return {"name": fault.name, "digest": fault.digest(quick), "tests": tested, **audited} | {
        "seconds": seconds
    }


def read_journal() -> dict[str, dict[str, Any]]:
    """Return the last line of each fault, by name."""
    if not JOURNAL.is_file():
        return {}
    lines = JOURNAL.read_text(encoding="utf-8").splitlines()
    return {line["name"]: line for line in map(json.loads, lines)}


def who(line: dict[str, Any]) -> list[str]:
    """Return who noticed."""
    return [name for name in ("curator", "tests", "audit") if noticed(line.get(name, ""))]


def noticed(said: str) -> bool:
    """Whether something was said, other than that the attempt itself broke."""
    return bool(said) and not said.startswith(("broken", "stopped"))


def table(faults: Sequence[Fault], journal: dict[str, dict[str, Any]]) -> str:
    """Return a Markdown table of the faults that were tried, and what it adds up to."""
    tried = [(fault, journal[fault.name]) for fault in faults if fault.name in journal]
    rows = [
        "| fault | what is wrong | curator | tests | audit |",
        "| --- | --- | --- | --- | --- |",
    ]
    for fault, line in tried:
        marks = ["x" if name in who(line) else "" for name in ("curator", "tests", "audit")]
        if not marks[2] and not fault.seen:
            marks[2] = "(no)"
        rows.append(f"| {fault.name} | {fault.what} | {' | '.join(marks)} |")
    seen = [(fault, line) for fault, line in tried if fault.seen]
    reached = [line for _, line in seen if "curator" not in who(line)]
    counts = {name: sum(name in who(line) for _, line in tried) for name in ("curator", "tests")}
    by_audit = sum("audit" in who(line) for line in reached)
    nobody = [fault.name for fault, line in tried if not who(line)]
    rows += [
        "",
        f"{len(tried)} faults: {counts['tests']} caught by tests, {counts['curator']} refused by "
        f"the curator. Of {len(reached)} that outputs can show and no curator refuses, the audit "
        f"alone caught {by_audit}. Caught by nothing: {', '.join(nobody) or 'none'}.",
    ]
    if left := [fault.name for fault in faults if fault.name not in journal]:
        rows.append(f"Not tried yet: {', '.join(left)}.")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults that were not tried yet; 1 if one is caught by nothing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these faults alone")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--quick", action="store_true", help="few trials, one test file a fault")
    parser.add_argument("--fresh", action="store_true", help="try again what was tried")
    parser.add_argument("--table", action="store_true", help="print the table, try nothing")
    parser.add_argument("--control", action="store_true", help="the same without the faults")
    given = parser.parse_args(arguments)
    faults = load_faults()
    if unknown := {*given.only} - {fault.name for fault in faults}:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    chosen = [fault for fault in faults if not given.only or fault.name in given.only]
    for fault in faults:
        fault.planted()
    journal = read_journal()
    if given.control:
        return _run(chosen, given, lambda line: print(f"{line['name']}: {_said(line)}", flush=True))
    if not given.table:
        left = [
            fault
            for fault in chosen
            if given.fresh or journal.get(fault.name, {}).get("digest") != fault.digest(given.quick)
        ]
        _run(left, given, _keep)
        journal = read_journal()
    print(table(chosen, journal))
    return int(any(not who(journal[f.name]) for f in chosen if f.name in journal))


def _run(
    faults: Sequence[Fault], given: argparse.Namespace, done: Callable[[dict[str, Any]], None]
) -> int:
    """Try faults on several processes; return how many lines say anything."""
    context, saying = multiprocessing.get_context("fork"), 0
    with (
        tempfile.TemporaryDirectory(prefix="planted-") as place,
        ProcessPoolExecutor(
            given.jobs, mp_context=context, initializer=prepare, initargs=(place,)
        ) as pool,
    ):
        tries = [pool.submit(attempt, fault, given.quick, given.control) for fault in faults]
        for each in as_completed(tries):
            done(each.result())
            saying += bool(_said(each.result()))
    return saying


def _keep(line: dict[str, Any]) -> None:
    JOURNAL.parent.mkdir(parents=True, exist_ok=True)
    with JOURNAL.open("a", encoding="utf-8") as journal:
        journal.write(json.dumps(line) + "\n")
    print(f"{line['name']}: {_said(line) or 'NOTHING'} ({line['seconds']} s)", flush=True)


def _said(line: dict[str, Any]) -> str:
    names = ("curator", "tests", "audit", "error")
    return "; ".join(f"{name}: {line[name]}" for name in names if line.get(name))


if __name__ == "__main__":
    sys.exit(main())
