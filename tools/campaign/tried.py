"""What came of each fault, kept in a file, so that a campaign can go on after it was killed."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tools.campaign.cases import ROOT, Case

OF_RUNS = ("cli", "data", "experiment", "methods", "rows", "runtime")
"""The folders of the package that bear what a fault can break; methods only compute."""
WRONG = ("lost", "doubled", "different", "tracebacks", "hangs", "not resumed", "left over")


def fingerprint(root: Path) -> str:
    """Return a checksum of what a run takes from the package under `root`, and of the campaign.

    The rest of the package may change while a campaign goes on.
    """
    found = hashlib.sha256()
    here = Path(__file__).parent
    mine = ("cases", "forks", "host", "real", "real_runs")
    sources = [here / f"{name}.py" for name in mine] + [here / "shim.c"]
    sources += [path for name in OF_RUNS for path in (root / "dprepro").glob(f"{name}/**/*.py")]
    sources += (root / "dprepro").glob("*.py")
    for path in sorted(sources, key=lambda path: (path.name, str(path))):
        found.update(path.read_bytes())
    return found.hexdigest()


class Tried:
    """The faults that were tried, in the order in which they were.

    Parameters
    ----------
    path
        A file with a line of JSON for each; None keeps them in memory. What it holds is not tried
        again. A last line that is torn is left out.
    head
        What the faults depend on, for a new file: its first line.
    source
        The `fingerprint` of what is tried.

    Raises
    ------
    SystemExit
        If the file is of another source.
    """

    def __init__(self, path: Path | None, source: str, head: dict[str, Any]) -> None:
        self.head = {"source": source, **head}
        self.answers: dict[Case, dict[str, Any]] = {}
        self._path = path
        lines = path.read_bytes().splitlines(keepends=True) if path and path.exists() else []
        whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
        if not whole:
            self._write("w", self.head)
            return
        if whole[0]["source"] != source:
            raise SystemExit(f"{path} is of another version: give another file, or delete it")
        self.head = whole[0]
        for answer in whole[1:]:
            self.answers[_case(answer.pop("case"))] = answer
        assert path is not None
        with path.open("r+b") as file:
            file.truncate(sum(len(line) for line in lines if line.endswith(b"\n")))

    def add(self, case: Case, answer: dict[str, Any]) -> None:
        """Keep what came of a fault."""
        self.answers[case] = answer
        self._write("a", {"case": case, **answer})

    def wrong(self) -> dict[Case, dict[str, Any]]:
        """Return the faults that were not survived, and what came of them."""
        return {case: answer for case, answer in self.answers.items() if answer["wrong"]}

    def table(self) -> str:
        """Return a line for each start and kind: how many were tried, and what went wrong.

        "met" counts the runs that the fault ended, or changed in their exit code.
        """
        tried: Counter[tuple[str, str]] = Counter()
        met: Counter[tuple[str, str]] = Counter()
        wrong: Counter[tuple[tuple[str, str], str]] = Counter()
        for case, answer in self.answers.items():
            tried[case[:2]] += len(answer["codes"])
            met[case[:2]] += answer.get("met", sum(code != 0 for code in answer["codes"]))
            wrong.update((case[:2], what) for what in answer["wrong"])
        lines = [f"{'start':9}{'fault':13}{'tried':>7}{'met':>7}" + "".join(map(_column, WRONG))]
        for kind, count in sorted(tried.items()):
            figures = "".join(_column(wrong[kind, what]) for what in WRONG)
            lines.append(f"{kind[0]:9}{kind[1]:13}{count:>7}{met[kind]:>7}{figures}")
        return "\n".join(lines)

    def _write(self, mode: str, record: dict[str, Any]) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open(mode) as file:
                file.write(json.dumps(record) + "\n")


def options(description: str | None, kills: int) -> argparse.ArgumentParser:
    """Return what the programs of the campaign take, with so many kills if none are asked for."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", type=Path, help="a file: a line for each case that was tried")
    parser.add_argument("--root", type=Path, default=ROOT, help="the package under test")
    parser.add_argument("--kills", type=int, default=kills, help="kills at random times, in all")
    return parser


def report(tried: Tried) -> bool:
    """Print the table, and the first cases in which something went wrong; return if any did."""
    print(tried.table())
    for case, answer in list(tried.wrong().items())[:12]:
        print("\n", case, answer["codes"], answer["wrong"], answer["said"], file=sys.stderr)
    return bool(tried.wrong())


def tell(done: int, number: int, seconds: float) -> None:
    """Say how far a campaign got, and how long the rest takes at so many seconds a case."""
    left = (number - done) * seconds / 60
    text = f"{done} of {number} tried, {seconds:.2f} s each, {left:.0f} min left"
    print(text, file=sys.stderr, flush=True)


def _column(text: object) -> str:
    return f"{text:>13}"


def _case(read: list[Any]) -> Case:
    start, kind, number, error, for_good = read
    return start, kind, tuple(number) if isinstance(number, list) else number, error, for_good
