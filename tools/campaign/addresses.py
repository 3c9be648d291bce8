"""Limited memory: whole commands below limits on their addresses (`ulimit -v`).

    python -m tools.campaign.addresses [--commands ledger run] [--record out/addresses.txt]

Each command runs in a process of its own below each limit, with and without OPENBLAS_NUM_THREADS=1.
It must do its work, or end with 2 and a message: no bug (70), no crash, and no loop without end,
which a cap on processor time stops. Prints a line a command, and what ended otherwise.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.private_table import ROWS, rows_of, write_table

ROOT = Path(__file__).resolve().parents[2]
LIMITS = (300, 600, 900, 1000, 1125, 1250, 1500, 2000, 2500, 3000, 3500, 4000)
"""In units of 10^6 bytes, as the message of a command gives them."""
_SECONDS = 120
_ONE_THREAD = "OPENBLAS_NUM_THREADS"

COMMANDS: dict[str, tuple[str, ...]] = {
    "methods": ("methods", "dp-ebm-gdp"),
    "ledger": ("ledger", "quickstart", "--method", "dp-ebm-gdp", "--epsilon", "1"),
    "table": ("table", "--config", "quickstart", "--results", "{results}"),
    "check": ("check", "--paper", "replication-report-2025"),
    "predict": ("predict", "{model}", "{rows}", "--output", "{out}/predicted.csv"),
    "release": ("release", "{card}", "--epsilon", "1", "--yes", "-o", "{out}/released"),
    "run": ("run", "quickstart", "--splits", "1", "--jobs", "2", "--results", "{out}"),
    "data check": ("data", "check", "{card}", "--rows"),
    "audit": ("audit", "gaussian", "--trials", "200"),
}


def prepare(folder: Path) -> dict[str, str]:
    """Write what the commands need; return what stands for the names in their arguments."""
    write_table(folder, "binary", rows_of("binary"), f"expect: {{rows: {ROWS}}}\n")
    given = {
        "card": str(folder / "patients.yaml"),
        "rows": str(folder / "patients.csv"),
        "model": str(folder / "first" / "model.json"),
        "results": str(folder / "results"),
    }
    for command in (
        ("release", given["card"], "--epsilon", "1", "--yes", "-o", str(folder / "first")),
        ("run", "quickstart", "--splits", "2", "--results", given["results"]),
    ):
        _dprepro(command, folder, None, {}).check_returncode()
    return given


def ending(
    name: str, most: int, folder: Path, given: dict[str, str], one_thread: bool = False
) -> tuple[int, str]:
    """Run a command below a limit of `most` MB; return its exit code and last line of errors."""
    out = Path(tempfile.mkdtemp(dir=folder))
    arguments = [part.format(out=out, **given) for part in COMMANDS[name]]
    environment = {_ONE_THREAD: "1"} if one_thread else {}
    done = _dprepro(arguments, folder, most * 10**6, environment)
    shutil.rmtree(out)
    lines = done.stderr.strip().splitlines() or [""]
    return done.returncode, lines[-1]


def is_answered(code: int, said: str) -> bool:
    """Whether a command did its work, or said why it did not."""
    return code == 0 or (code == 2 and "error" in said)


def _dprepro(
    arguments: list[str] | tuple[str, ...], folder: Path, most: int | None, more: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 5))
        if most is not None:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

    environment = {key: value for key, value in os.environ.items() if key != _ONE_THREAD}
    # A book of its own: what is released here is not a user's.
    environment |= {"PYTHONPATH": str(ROOT), "DPREPRO_STATE": str(folder / "state"), **more}
    return subprocess.run(
        [sys.executable, "-m", "dprepro", *arguments],
        cwd=ROOT,
        env=environment,
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )


def main() -> None:
    """Run the grid and print it; the exit code is 1 if a command ended otherwise."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--commands", nargs="*", default=list(COMMANDS), choices=list(COMMANDS))
    options.add_argument("--limits", nargs="*", type=int, default=list(LIMITS))
    options.add_argument("--record", type=Path, help="write the lines to this file, too")
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp())
    given = prepare(folder)
    wrong = 0
    for name in chosen.commands:
        for one_thread in (False, True):
            ends = []
            for most in chosen.limits:
                code, said = ending(name, most, folder, given, one_thread)
                ends.append(f"{most}: {code}")
                if not is_answered(code, said):
                    wrong += 1
                    ends[-1] += f" WRONG ({said[:200]})"
            line = f"{name}{f' ({_ONE_THREAD}=1)' * one_thread}: {', '.join(ends)}"
            print(line, flush=True)
            if chosen.record:
                with chosen.record.open("a") as file:
                    file.write(line + "\n")
    shutil.rmtree(folder)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
