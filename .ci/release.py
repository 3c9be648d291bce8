"""Make what a release consists of, in out/release: wheel, sdist, a list of all parts, checksums.

    python .ci/release.py            refused unless all is committed

Wheel and sdist are built twice, from two copies of the files that git tracks, and must be equal bit
for bit: whoever has the commit can make them again. The list of parts (an SBOM, in the JSON of
CycloneDX) names each package, with its version, that a bare environment gets with the wheel.
Standard library only; hatchling and cyclonedx-bom are installed into environments that are thrown
away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = shutil.which("uv")


def main() -> int:
    """Build, list and sum; print one line a file."""
    if _git("status", "--porcelain"):
        print("error: commit all changes first: a release is made from one commit", file=sys.stderr)
        return 2
    target = ROOT / "out" / "release"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="dprepro-release-") as name:
        folder = Path(name)
        built = build(folder)
        for file in built:
            shutil.copy(file, target)
        bare, tools = folder / "bare", folder / "lister"
        _environment(bare, str(built[0]))
        _environment(tools, "cyclonedx-bom")
        for place in bare.rglob("dprepro-*.dist-info/direct_url.json"):
            place.unlink()  # the list would name a folder of this machine
        parts = target / f"{built[0].name.removesuffix('-py3-none-any.whl')}.cdx.json"
        command = [str(tools / "bin" / "cyclonedx-py"), "environment", "--output-reproducible"]
        command += ["--output-file", str(parts), str(bare / "bin" / "python")]
        subprocess.run(command, check=True)
    files = sorted(target.iterdir())
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    (target / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    print(*lines, sep="\n")
    return 0


def build(folder: Path) -> tuple[Path, Path]:
    """Return wheel and sdist of the tracked files, built twice in `folder`; exit if they differ."""
    tools = folder / "builder"
    _environment(tools, "hatchling")
    date = _git("log", "-1", "--format=%ct").strip()
    found = []
    for copy, mask in (("one", 0o022), ("two", 0o077)):
        for name in filter(None, _git("ls-files", "-z").split("\0")):
            if (ROOT / name).is_file():  # else it was deleted, and that is not committed yet
                there = folder / copy / name
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, there)  # without its times
        command = [str(tools / "bin" / "python"), "-m", "hatchling", "build"]
        subprocess.run(
            [*command, "--directory", str(folder / f"dist-{copy}")],
            cwd=folder / copy, env={**os.environ, "SOURCE_DATE_EPOCH": date}, umask=mask,
            check=True, capture_output=True,
        )  # fmt: skip
        found.append(sorted((folder / f"dist-{copy}").iterdir()))
    for one, two in zip(*found, strict=True):
        if one.name != two.name or one.read_bytes() != two.read_bytes():
            sys.exit(f"error: {one.name}, built twice, differs")
    wheel, sdist = found[0]
    return wheel, sdist


def _environment(folder: Path, package: str) -> None:
    """Make a virtual environment with a package in it."""
    bare = ["--without-pip"] if UV else []
    subprocess.run([sys.executable, "-m", "venv", *bare, str(folder)], check=True)
    python = str(folder / "bin" / "python")
    pip = [UV, "pip", "install", "--python", python] if UV else [python, "-m", "pip", "install"]
    subprocess.run([*pip, "--quiet", package], check=True)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
