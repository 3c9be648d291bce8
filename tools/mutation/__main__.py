"""Which small faults in a module does no test notice? CONTRIBUTING.md says how to use it.

All runs in forks of one process that has collected the tests, so that a mutant costs little more
than the tests that enter its function.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import math
import multiprocessing
import os
import random
import resource
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
import yaml

from tools.mutation.mutants import Mutant, mutants

NOTES = Path(__file__).with_name("equivalent.yaml")
# Of tests for one mutant, by how long they take without it: first the quickest, then others.
ROUNDS = (3.0, 30.0)
Entered = tuple[str, str, int]  # file, name and first line of a function
OPTIONS = ["-q", "-x", "-s", "--timeout=0", "-pno:cacheprovider", "-pno:xdist"]


def in_fork(call: Callable[[], Any], seconds: float) -> Any:
    """Return what a call returns in a silent fork of this process.

    "stopped" if it does not, as after so many seconds of its processor. Raises `pytest.UsageError`
    if the fork is killed from outside, which says nothing of the tests.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        # At the first limit SIGXCPU comes; SIGKILL would look like one from outside.
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        sender.send(call())

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(20 * seconds) else "stopped"
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGKILL:
            raise pytest.UsageError(
                "the tests of a mutant were killed from outside, as where memory is short"
            ) from None
        return "stopped"
    finally:
        process.kill()
        process.join()


class Mutation:
    """A plugin of pytest that runs the collected tests against mutants, and prints what survives.

    `excused` has (module, line, change) of equivalent ones, `counts` how many of each module were
    killed, survive, or are equivalent.
    """

    def __init__(self, found: Sequence[Mutant], excused: set[tuple[str, str, str]]) -> None:
        self.mutants, self.excused = found, excused
        self.counts: dict[str, Counter[str]] = {}
        self.files = {str(mutant.path.resolve()) for mutant in found}
        self.at_import: set[Entered] = set()

    def pytest_collection(self) -> None:
        """Note what is called while tests are imported: its results may be kept."""
        sys.setprofile(noting(self.files, self.at_import))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests once, then those that concern each mutant."""
        sys.setprofile(None)
        gc.unfreeze()  # `in_function` looks for functions, which tests/conftest.py has frozen
        known = in_fork(lambda: unharmed(session, self.files), 999)
        if isinstance(known, str):
            raise pytest.UsageError(f"fails without a fault: {known}")
        for mutant in self.mutants:
            at_import = place_of(mutant) in {*self.at_import, None}
            attempts = [in_function] if mutant.function else []
            if at_import:
                attempts.append(in_module)
            is_noticed = any(
                in_fork(
                    partial(attempt, session, mutant, chosen),
                    4 + 5 * sum(known[item.nodeid][0] for item in chosen),
                )
                for chosen in choose(session.items, known, mutant, at_import)
                for attempt in attempts
            )
            module = str(mutant.path)
            is_same = (module, mutant.text, mutant.change) in self.excused
            state = "killed" if is_noticed else "equivalent" if is_same else "survive"
            self.counts.setdefault(module, Counter())[state] += 1
            if state == "survive":
                print(f"{module}:{mutant.line}: {mutant.change}\n    {mutant.text}", flush=True)
        return True


def place_of(mutant: Mutant) -> Entered | None:
    """Return the function of a mutant as `noting` has it."""
    return (str(mutant.path.resolve()), *mutant.function) if mutant.function else None


def noting(files: set[str], entered: set[Entered]) -> Callable[[FrameType, str, object], None]:
    """Return a function for `sys.setprofile` that adds what is called in these files."""

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename in files:
            entered.add((code.co_filename, code.co_name, code.co_firstlineno))

    return note


def unharmed(
    session: pytest.Session, files: set[str]
) -> dict[str, tuple[float, set[Entered]]] | str:
    """Return by test how long it takes, and which functions of the files it enters."""
    known = {}
    for item, following in itertools.zip_longest(session.items, session.items[1:]):
        entered: set[Entered] = set()
        start, note = time.process_time(), noting(files, entered)
        threading.setprofile(note)  # of threads that the test starts
        sys.setprofile(note)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        sys.setprofile(None)
        threading.setprofile(None)
        if session.testsfailed:
            return str(item.nodeid)
        known[item.nodeid] = time.process_time() - start, entered
    return known


def choose(
    items: Sequence[Any], known: dict[str, Any], mutant: Mutant, at_import: bool
) -> list[list[Any]]:
    """Return the tests to run: those of the mirrored file, and those that enter the function.

    For what runs at import, all tests of files that enter any function of the module. First the
    quickest that together take the first of `ROUNDS`, then what the next one has room for; in each
    round those of the mirrored file first.
    """
    path, own, place = str(mutant.path.resolve()), f"test_{mutant.path.name}", place_of(mutant)
    if not at_import:
        chosen = [item for item in items if place in known[item.nodeid][1]]
    else:
        touches = {i.path for i in items if any(e[0] == path for e in known[i.nodeid][1])}
        chosen = [item for item in items if item.path in touches]
    chosen += [item for item in items if item.path.name == own and item not in chosen]
    chosen.sort(key=lambda item: known[item.nodeid][0])
    spent = list(itertools.accumulate(known[item.nodeid][0] for item in chosen))
    rounds = [
        [item for item, total in zip(chosen, spent, strict=True) if low < total <= high]
        for low, high in itertools.pairwise((-math.inf, *ROUNDS))
    ]
    order = partial(sorted, key=lambda item: (item.path.name != own, str(item.path)))
    return [order(part) for part in rounds if part]


def in_function(session: pytest.Session, mutant: Mutant, chosen: Sequence[Any]) -> str:
    """Put the fault into the function where it is, and return the first test that fails."""
    place = place_of(mutant)

    def is_it(code: CodeType) -> bool:
        return (code.co_filename, code.co_name, code.co_firstlineno) == place

    codes = [mutant.code]
    for code in codes:
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    changed = [o for o in gc.get_objects() if isinstance(o, FunctionType) and is_it(o.__code__)]
    if not changed:
        return in_module(session, mutant, chosen)
    for function in changed:
        function.__code__ = next(filter(is_it, codes))
    for item, following in itertools.zip_longest(chosen, chosen[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return str(item.nodeid)
    return ""


def in_module(session: pytest.Session, mutant: Mutant, chosen: Sequence[Any]) -> str:
    """Import everything anew, with the fault, and collect the tests again."""
    name = ".".join(mutant.path.with_suffix("").parts).removesuffix(".__init__")
    own = {name.partition(".")[0], *(i.module.__name__.partition(".")[0] for i in chosen)}
    for module in [module for module in sys.modules if module.partition(".")[0] in own]:
        del sys.modules[module]
    sys.meta_path.insert(0, _Finder(name, mutant))  # type: ignore[arg-type]
    ended = pytest.main([*OPTIONS, *(item.nodeid for item in chosen)])
    return "" if ended == pytest.ExitCode.OK else "import"


class _Finder:
    """Finds the module of a mutant, and leaves all others to Python."""

    def __init__(self, name: str, mutant: Mutant) -> None:
        self.name, self.path, self.code = name, str(mutant.path.resolve()), mutant.code

    def find_spec(self, name: str, *_: object) -> Any:
        if name != self.name:
            return None
        loader = SourceFileLoader(name, self.path)
        loader.get_code = lambda _: self.code  # type: ignore[method-assign]
        return importlib.util.spec_from_file_location(name, self.path, loader=loader)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the mutants that survive and a line for each module; 1 where one survives."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=__doc__)
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--tests", nargs="+", default=[], help="beside the mirrored files")
    parser.add_argument("--sample", type=int, help="try this many mutants of a module, drawn")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--notes", type=Path, default=NOTES, help="which mutants are equivalent")
    options = parser.parse_args(arguments)
    draw, tried, tests = random.Random(options.seed), [], dict.fromkeys(options.tests)
    for path in options.modules:
        found = mutants(path)
        drawn = draw.sample(found, min(options.sample or len(found), len(found)))
        tried += sorted(drawn, key=lambda mutant: mutant.line)
        mirrored = Path("tests", *path.parts[1:-1], f"test_{path.name}")
        tests[str(mirrored if mirrored.is_file() else mirrored.parent)] = None
    notes = yaml.safe_load(options.notes.read_text(encoding="utf-8"))
    plugin = Mutation(tried, {(note["module"], note["line"], note["change"]) for note in notes})
    if pytest.main([*OPTIONS, *tests], plugins=[plugin]) or not plugin.counts:
        return 2
    for path, counts in plugin.counts.items():
        words = ", ".join(
            f"{counts[state]} {state}" for state in ("killed", "equivalent", "survive")
        )
        print(f"{path}: {counts.total()} mutants: {words}")
    return int(any(counts["survive"] for counts in plugin.counts.values()))


if __name__ == "__main__":
    sys.exit(main())
