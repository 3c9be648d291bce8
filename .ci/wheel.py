"""Try the wheel where there is no source tree: the quickstart in bare virtual environments.

    python .ci/wheel.py              the newest Python here, and the oldest with the lowest versions
    python .ci/wheel.py --all        every Python here that the project allows
    python .ci/wheel.py --only 3.12  one of them; --lowest for the lowest versions alone

Each environment holds what pip, or uv where it is there, finds newest, and no extra: `report` must
say what it lacks. The one of the lowest versions has, on the oldest Python, the lower bound of each
dependency, and the extra `plot`: it draws. Wheel and sdist are built twice, and must be equal.
Standard library only. Exit code 1 if one fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from release import build  # beside this file

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
QUICKSTART = (
    ("table", "--metric", "auc"),  # of the shipped runs, which come with the wheel
    ("run", "quickstart"),
    ("results", "pack"),
    ("table", "breast-cancer", "--shipped"),  # both side by side
    ("check",),
    ("table", "--config", "quickstart", "--compare"),
)
DRAWN = ("plot", "curves", "--config", "quickstart", "--format", "svg")
REFUSED = ("report", "--results", "results")
LACKING = "error: pictures need Matplotlib: pip install 'dprepro[plot]'\n"
UV = shutil.which("uv")


def main() -> int:
    """Build the wheel, try it, print one line an environment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every Python that is here")
    parser.add_argument("--only", action="append", metavar="3.X", help="this Python; repeatable")
    parser.add_argument("--lowest", action="store_true", help="only the lowest versions")
    asked = parser.parse_args()
    found = {version: python for version in VERSIONS if (python := find(version))}
    if not found:
        found[f"{sys.version_info[0]}.{sys.version_info[1]}"] = sys.executable
    for version in VERSIONS:
        if version not in found:
            print(f"Python {version}: not installed here, skipped", flush=True)
    wanted = list(found) if asked.all else asked.only or [max(found, key=_order)]
    if missing := [version for version in wanted if version not in found]:
        parser.error(f"Python {', '.join(missing)} is not here; here are {', '.join(found)}")
    with tempfile.TemporaryDirectory(prefix="dprepro-wheel-") as folder:
        wheel, _ = build(Path(folder) / "built")
        runs = [] if asked.lowest else [(version, False) for version in wanted]
        if asked.lowest or not asked.only:
            runs.append((min(found, key=_order), True))
        # Installing waits for the disk, running for a processor: two at a time take turns.
        with ThreadPoolExecutor(max_workers=2) as pool:
            attempts = [
                pool.submit(attempt, found[v], v, wheel, lowest, Path(folder)) for v, lowest in runs
            ]
            results = [tried.result() for tried in attempts]
    return 0 if all(results) else 1


def find(version: str) -> str | None:
    """Return a Python of this version: this one, one of the PATH, one of pyenv."""
    folders = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    candidates = [sys.executable, shutil.which(f"python{version}"), *map(str, folders)]
    for candidate in filter(None, candidates):
        code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return candidate
    return None


def attempt(python: str, version: str, wheel: Path, lowest: bool, folder: Path) -> bool:
    """Install into a bare environment, run the quickstart in an empty folder; tell if it passed."""
    name = f"Python {version}, {'lowest' if lowest else 'newest'} versions"
    home = folder / name.replace(" ", "-")
    environment, empty = home / "venv", home / "empty"
    command = str(environment / "bin" / "dprepro")
    what, last = (f"{wheel}[plot]", DRAWN) if lowest else (str(wheel), REFUSED)
    empty.mkdir(parents=True)
    constraints = home / "constraints.txt"
    constraints.write_text("\n".join(lower_bounds(wheel)) if lowest else "")
    # Nothing of this checkout, nor of its caches, may help.
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DPREPRO", "NUMBA"))
    }
    clean |= {"DPREPRO_CACHE": str(home / "cache"), "COLUMNS": "120"}
    steps = [
        [python, "-m", "venv", *(["--without-pip"] if UV else []), str(environment)],
        [*installer(environment), "--constraint", str(constraints), what],
        *([command, *arguments] for arguments in QUICKSTART),
        [command, *last],
    ]
    seconds, said = [], []
    for step in steps:
        start = time.monotonic()
        done = subprocess.run(
            step, cwd=empty, env=clean, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        seconds.append(time.monotonic() - start)
        said.append(done.stdout)
        lacks = step == [command, *REFUSED]
        if done.returncode != 2 * lacks or (lacks and not done.stdout.endswith(LACKING)):
            print(
                f"{name}: FAILED ({done.returncode}): {' '.join(step)}\n{done.stdout}", flush=True
            )
            return False
    print(said[-2], flush=True)
    if not (empty / "results" / "quickstart.parquet").is_file():
        print(f"{name}: FAILED: the run left no journal", flush=True)
        return False
    times = f"install {seconds[1]:.0f} s, table {seconds[2]:.0f} s, run {seconds[3]:.0f} s"
    print(f"{name}: passed ({times})", flush=True)
    shutil.rmtree(home)
    return True


def installer(environment: Path) -> list[str]:
    """Return the command that installs: uv's where it is there, in a third of pip's time."""
    python = str(environment / "bin" / "python")
    if UV:
        return [UV, "pip", "install", "--quiet", "--python", python]
    # What is imported is compiled then; pip would compile all of every library.
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--prefer-binary"]
    return [python, "-m", "pip", "install", *options]


def lower_bounds(wheel: Path) -> list[str]:
    """Return ``name==lowest`` for each dependency that the wheel's metadata give a lower bound."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = archive.read(path).decode().splitlines()
    pattern = re.compile(r"Requires-Dist: ([\w.-]+)\s*[^;]*>=([\w.]+)")
    needed = [line for line in lines if "extra ==" not in line or "extra == 'plot'" in line]
    return [f"{m[1]}=={m[2]}" for line in needed if (m := pattern.match(line))]


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    sys.exit(main())
