"""Draw the pictures of docs/gallery.md anew: `make gallery`.

A picture in `figures/gallery/` is followed by the command that draws it. Its name is that of the
file that this command writes to out/figures.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DRAWN = re.compile(r"!\[[^\]]*\]\(figures/gallery/(\S+)\)\s+`(dprepro [^`]+)`")


def drawn() -> list[tuple[str, str]]:
    """Return the name and the command of each picture that a command draws."""
    found = DRAWN.findall((ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    return [(name, " ".join(command.split())) for name, command in found]


def main() -> int:
    """Draw all; the first command that fails ends it."""
    folder = ROOT / "docs" / "figures" / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in drawn():
        print(command, flush=True)
        words = [sys.executable, "-m", *shlex.split(command)]
        subprocess.run(words, cwd=ROOT, check=True)
        shutil.copy(ROOT / "out" / "figures" / name, folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
