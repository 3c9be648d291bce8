"""A copy of the package that holds nothing but a few small kernels: they compile in seconds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3] / "dprepro"

CALLEE = """
import numpy as np
from dprepro.runtime.kernels import kernel

FACTOR = 1.0

@kernel("(float32[::1],)", fastmath=True, error_model="numpy")
def total(values):
    sum = np.float32(0)
    for i in range(values.size):
        sum += FACTOR / (np.float32(1) + values[i] * values[i])
    return sum

@kernel()
def inner(value):
    return 2 * value
"""

CALLER = """
import numpy as np
from dprepro.runtime.kernels import kernel
from dprepro.first.callee import inner, total

@kernel("(float32[::1], int64)")
def totals(values, parts):
    found = np.zeros(parts)
    for part in range(parts):
        found[part] = inner(total(values[part:]))
    return found
"""

USE = """
import hashlib, sys
import numpy as np
from dprepro.first.callee import inner, total
from dprepro.second.caller import totals
values = np.random.default_rng(0).random(5000).astype(np.float32)
for name in sys.argv[1:] or ["totals"]:
    result = totals(values, 50) if name == "totals" else np.float64(total(values))
    print(name, hashlib.sha256(result.tobytes()).hexdigest())
"""


class SmallPackage:
    """The copy in `folder`, with a cache folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.package = folder / "source" / "dprepro"
        (self.package / "runtime").mkdir(parents=True)
        of_runtime = ("__init__", "atomics", "errors", "files", "kernels", "locks")
        for name in ("__init__.py", *(f"runtime/{name}.py" for name in of_runtime)):
            shutil.copy(PACKAGE / name, self.package / name)
        for name, text in (("first/callee.py", CALLEE), ("second/caller.py", CALLER)):
            (self.package / name).parent.mkdir()
            (self.package / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace `old` in a source file."""
        path = self.package / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new))

    def start(self, code: str = USE, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start a process that runs `code`; return it."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DPREPRO_", "NUMBA_"))}
        environment = kept | {
            "PYTHONPATH": str(self.folder / "source"),
            "DPREPRO_CACHE": str(self.cache),
            "TMPDIR": str(self.folder),
            **variables,
        }
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import sys; sys.path[:] = filter(None, sys.path)\n{code}",
                *arguments,
            ],
            env=environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str = USE, *arguments: str, **variables: str) -> tuple[str, str]:
        """Run `code`; return what it wrote to stdout and stderr."""
        process = self.start(code, *arguments, **variables)
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        return out, err

    def bundles(self) -> list[Path]:
        """Return the files of machine code in the cache folder."""
        return sorted((self.cache / "kernels").glob("*.bin"))

    def files(self) -> dict[str, int]:
        """Return the inode of each of these files by its name; another where it was replaced."""
        return {path.name: path.stat().st_ino for path in self.bundles()}
