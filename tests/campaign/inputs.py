"""Coverage-guided fuzzing of every parser: the long form of tests/campaign/test_inputs.py.

    python -m tests.campaign.inputs --runs 1000000 --seconds 600 config card

needs `pip install atheris`. Each parser runs in a process of its own, from the committed corpus.
What a parser did not answer clearly is written to out/campaign/inputs, one file for each kind of
fault; whoever mends it puts the file into the corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
OUT = Path("out/campaign/inputs")
_LEAST_ROOM = 512
"""Bytes. Inputs may be three times as long as the longest of the corpus that is taken."""
_LIBRARIES = {"config": ["yaml"], "card": ["yaml"], "arff": ["arff"]}
"""Whose branches count, too, by parser."""


def _fuzz(parser: str, runs: int, seconds: int) -> None:
    """Fuzz one parser; ends the process."""
    import atheris  # type: ignore[import-not-found]

    # What reads bytes, and nothing that is merely loaded with it: counting doubles its time.
    with atheris.instrument_imports(include=["dprepro", *_LIBRARIES.get(parser, ())]):
        from tests.campaign import parsers

    faults: set[str] = set()
    memory = Path("/dev/shm")  # no disk to wait for
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    found = OUT / parser
    found.mkdir(parents=True, exist_ok=True)

    def once(data: bytes) -> None:
        try:
            parsers.read(parser, data, folder)
        except parsers.UnclearError as error:
            if str(error)[:80] not in faults:
                faults.add(str(error)[:80])
                name = hashlib.sha256(data).hexdigest()[:12]
                (found / name).write_bytes(data)
                print(f"FAULT {error} ({found / name})", flush=True)

    grown = folder / "grown"
    grown.mkdir()
    with suppress(parsers.UnclearError):  # the first loads libraries, and can take too long
        parsers.read(parser, parsers.corpus(parser)[0], folder)
    taken = [data for data in parsers.corpus(parser) if parsers.read(parser, data, folder) == ""]
    longest = max([_LEAST_ROOM, *(3 * len(data) for data in taken)])
    options = [f"-runs={runs}", f"-max_total_time={seconds}", f"-max_len={longest}", "-timeout=60"]
    atheris.Setup([sys.argv[0], *options, str(grown), str(CORPUS / parser)], once)
    atheris.Fuzz()


def asked(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line. Imports no parser: what is imported before counts no branches."""
    names = sorted(path.name for path in CORPUS.iterdir())
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parsers", nargs="*", choices=[*names, []], help="default: all")
    options.add_argument("--runs", type=int, default=1_000_000, help="inputs for each parser")
    options.add_argument("--seconds", type=int, default=3600, help="longest time of each parser")
    options.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args(arguments)
    given.parsers = given.parsers or names
    return given


def main() -> None:
    """Fuzz the parsers that are named, or all, one after the other."""
    given = asked()
    if given.here:
        _fuzz(given.parsers[0], given.runs, given.seconds)
    for parser in given.parsers:
        command = [sys.executable, "-m", "tests.campaign.inputs", "--here", parser]
        command += ["--runs", str(given.runs), "--seconds", str(given.seconds)]
        done = subprocess.run(
            command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        lines = done.stdout.splitlines()
        told = [line for line in lines if line.startswith(("FAULT", "Done", "WARNING: no inter"))]
        told += [line for line in lines if "DONE" in line]  # how many branches were met
        print(f"{parser}: exit {done.returncode}; " + "\n  ".join(told), flush=True)


if __name__ == "__main__":
    main()
