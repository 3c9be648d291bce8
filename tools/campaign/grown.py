"""What the fuzzer learned: inputs that together meet every branch it met, one archive a parser."""

from __future__ import annotations

import zipfile
from pathlib import Path

GROWN = Path(__file__).parent / "grown"
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of each entry, so that the same inputs are the same archive."""


def inputs(parser: str) -> list[bytes]:
    """Return the inputs, in the order of their names."""
    path = GROWN / f"{parser}.zip"
    if not path.exists():
        return []
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in sorted(archive.namelist())]


def unpack(parser: str, folder: Path) -> None:
    """Write each input into a file of a new folder."""
    folder.mkdir()
    for number, data in enumerate(inputs(parser)):
        (folder / str(number)).write_bytes(data)


def pack(parser: str, folder: Path) -> None:
    """Make the archive anew, of all files of a folder."""
    GROWN.mkdir(exist_ok=True)
    with zipfile.ZipFile(GROWN / f"{parser}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.writestr(
                zipfile.ZipInfo(path.name, _WHEN), path.read_bytes(), zipfile.ZIP_DEFLATED
            )
    print(f"KEPT {len(list(folder.iterdir()))} inputs", flush=True)
