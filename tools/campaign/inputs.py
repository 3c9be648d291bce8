"""Coverage-guided fuzzing of every parser: the long form of tests/tools/test_inputs.py.

    python -m tools.campaign.inputs --runs 1000000 --seconds 600 config card

needs `pip install atheris`. Each parser runs in a process of its own, from the committed corpus and
from what earlier runs learned. The same command goes on where the last one ended. `--keep` takes
learned inputs that together meet all branches, short ones first, into tools/campaign/grown, to be
committed; `--table` prints what was done so far.

What a parser did not answer clearly is written to out/campaign/inputs, one file for each kind of
fault; whoever mends it puts the file into the corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tools.campaign import grown

CORPUS = Path(__file__).parent / "corpus"
OUT = Path("out/campaign/inputs")
_LEAST_ROOM = 512
"""Bytes. Inputs may be three times as long as the longest of the corpus that is taken."""
_LIBRARIES = {"config": ["yaml"], "card": ["yaml"], "arff": ["arff"]}
"""Whose branches count, too, by parser."""
_SAYS = re.compile(r"^#(\d+)\s+DONE\s+cov: (\d+)", re.M)


def _fuzz(parser: str, given: argparse.Namespace) -> None:
    """Fuzz one parser; ends the process."""
    import atheris  # type: ignore[import-not-found]

    # What reads bytes, and nothing that is merely loaded with it: counting doubles its time.
    with atheris.instrument_imports(include=["dprepro", *_LIBRARIES.get(parser, ())]):
        from tools.campaign import parsers

    memory = Path("/dev/shm")  # no disk to wait for
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        folder = Path(name)
        with suppress(parsers.UnclearError):  # the first loads libraries, and can take too long
            parsers.read(parser, parsers.corpus(parser)[0], folder)
        seeds = folder / "seeds"
        grown.unpack(parser, seeds)
        learned = OUT / parser / "learned"
        learned.mkdir(parents=True, exist_ok=True)
        folders = [str(learned), str(CORPUS / parser), str(seeds)]
        again = sys.argv[0]
        if given.of_libfuzzer:  # it starts this program anew to merge
            options, folders = given.of_libfuzzer, []
        elif given.keep:
            (folder / "kept").mkdir()
            options = ["-merge=1", "-use_counters=0", str(folder / "kept")]
            again = f"{sys.executable} -m tools.campaign.inputs --here --keep {parser}"
        else:
            left = given.runs - _done(parser)
            if left <= 0:
                return
            inputs = parsers.corpus(parser)
            taken = [data for data in inputs if parsers.read(parser, data, folder) == ""]
            longest = max([_LEAST_ROOM, *(3 * len(data) for data in taken)])
            options = [f"-runs={left}", f"-max_total_time={given.seconds}"]
            options += [f"-max_len={longest}", "-timeout=60"]
        atheris.Setup([again, *options, *folders], _Once(parser, folder))
        # It ends the process, without destructors.
        child = os.fork()
        if child == 0:
            atheris.Fuzz()
        _, status = os.waitpid(child, 0)
        if (folder / "kept").exists():
            grown.pack(parser, folder / "kept")
        sys.exit(os.waitstatus_to_exitcode(status))


class _Once:
    """Give a parser one input, and keep the first of each kind that it does not answer clearly."""

    def __init__(self, parser: str, folder: Path) -> None:
        self._parser, self._folder = parser, folder
        self._faults: set[str] = set()

    def __call__(self, data: bytes) -> None:
        from tools.campaign import parsers

        try:
            parsers.read(self._parser, data, self._folder)
        except parsers.UnclearError as error:
            if str(error)[:80] not in self._faults:
                self._faults.add(str(error)[:80])
                path = OUT / self._parser / hashlib.sha256(data).hexdigest()[:12]
                path.write_bytes(data)
                print(f"FAULT {error} ({path})", flush=True)


def _records(parser: str) -> list[dict[str, int]]:
    path = OUT / parser / "done.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _done(parser: str) -> int:
    return sum(line["runs"] for line in _records(parser))


def table() -> str:
    """Return a Markdown line for each parser: how many inputs it was given, branches met."""
    lines = ["| parser | executions | branches met |", "| --- | --- | --- |"]
    for parser in sorted(path.name for path in CORPUS.iterdir()):
        if records := _records(parser):
            lines.append(f"| {parser} | {_done(parser):,} | {records[-1]['branches']} |")
    return "\n".join(lines)


def asked(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line. Imports no parser: what is imported before counts no branches."""
    names = sorted(path.name for path in CORPUS.iterdir())
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("parsers", nargs="*", choices=[*names, []], help="default: all")
    options.add_argument("--runs", type=int, default=1_000_000, help="inputs for each parser")
    options.add_argument("--seconds", type=int, default=3600, help="longest time of each parser")
    options.add_argument("--keep", action="store_true", help="take learned inputs into the tests")
    options.add_argument("--table", action="store_true", help="print what was done so far")
    options.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given, given_on = options.parse_known_args(arguments)
    if given_on and not given.here:
        options.error(f"unknown: {' '.join(given_on)}")
    given.of_libfuzzer = given_on
    given.parsers = given.parsers or names
    return given


def main() -> None:
    """Fuzz the parsers that are named, or all, one after the other."""
    given = asked()
    if given.table:
        print(table())
        return
    if given.here:
        _fuzz(given.parsers[0], given)
        return
    for parser in given.parsers:
        command = [sys.executable, "-m", "tools.campaign.inputs", "--here", parser]
        command += ["--runs", str(given.runs), "--seconds", str(given.seconds)]
        command += ["--keep"] if given.keep else []
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not given.keep:
            _note(parser, done.stdout)
        wanted = ("FAULT", "Done", "WARNING: no inter", "KEPT")
        told = [line for line in done.stdout.splitlines() if line.startswith(wanted)]
        told += ["" if done.returncode == 0 else done.stdout[-2000:]]
        print(f"{parser}: exit {done.returncode}; " + "\n  ".join(told), flush=True)


def _note(parser: str, said: str) -> None:
    """Keep how many inputs a parser was given."""
    if ended := _SAYS.search(said):
        line = {"runs": int(ended[1]), "branches": int(ended[2])}
        with (OUT / parser / "done.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
