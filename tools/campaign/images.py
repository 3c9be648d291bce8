"""What a crash of the machine can leave of a journal: writes after the last fsync in any state.

A recorder notes what a process asks of the file system. An image is made for a moment between two
of these calls: what was synced before is there; of what was not, each block of 512 bytes is there,
or zeros are; the file has any length between; and a name is old or new if its folder was not
synced since.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

BLOCK = 512


@dataclass
class State:
    """One file: its bytes on the disk for certain, and all that were written."""

    synced: bytes = b""
    written: bytes = b""


@dataclass
class Disk:
    """What is known of the disk at one moment.

    Attributes
    ----------
    files
        By inode.
    names
        By path the inode; `synced_names` are those on the disk for certain.
    done
        How many records had been acknowledged.
    """

    files: dict[int, State] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    synced_names: dict[str, int] = field(default_factory=dict)
    done: int = 0

    def copy(self) -> Disk:
        files = {inode: State(s.synced, s.written) for inode, s in self.files.items()}
        return Disk(files, dict(self.names), dict(self.synced_names), self.done)

    def image(self, path: Path, draw: random.Random) -> bytes | None:
        """Return what the file of that name may hold after a crash; None if it has no name."""
        names = draw.choice([self.names, self.synced_names])
        inode = names.get(str(path))
        return None if inode is None else _torn(self.files[inode], draw)


def _torn(state: State, draw: random.Random) -> bytes:
    if not state.written.startswith(state.synced):
        return draw.choice([state.synced, state.written])  # cut: done, or not yet
    common = len(state.synced)
    length = draw.choice([common, len(state.written), draw.randint(common, len(state.written))])
    image = bytearray(state.written[:length])
    for start in range(common - common % BLOCK, length, BLOCK):
        if draw.random() < 0.4:
            first = max(start, common)
            image[first : start + BLOCK] = bytes(min(start + BLOCK, length) - first)
    return bytes(image)


@contextmanager
def recorded(folder: Path) -> Iterator[list[Disk]]:
    """Record what happens in a folder: yield the list of moments, the first before anything."""
    disk = Disk()
    for path in folder.iterdir():
        inode, raw = path.stat().st_ino, path.read_bytes()
        disk.files[inode] = State(raw, raw)
        disk.names[str(path)] = disk.synced_names[str(path)] = inode
    moments = [disk.copy()]
    real_write, real_fsync, real_cut = os.write, os.fsync, os.ftruncate
    real_open, real_rename, real_unlink = os.open, os.rename, os.unlink

    def look() -> None:
        disk.names = {str(p): p.stat().st_ino for p in folder.iterdir()}
        for inode in disk.names.values():
            disk.files.setdefault(inode, State())
        moments.append(disk.copy())

    def write(file: int, data: Any) -> int:
        state = disk.files[os.fstat(file).st_ino]
        count = real_write(file, data)
        state.written += bytes(data)[:count]
        moments.append(disk.copy())
        return count

    def fsync(file: int) -> None:
        real_fsync(file)
        inode = os.fstat(file).st_ino
        if inode in disk.files:
            disk.files[inode].synced = disk.files[inode].written
        elif inode == folder.stat().st_ino:
            disk.synced_names = dict(disk.names)
        moments.append(disk.copy())

    def cut(file: int, size: int) -> None:
        real_cut(file, size)
        state = disk.files[os.fstat(file).st_ino]
        state.written = state.written[:size]
        moments.append(disk.copy())

    def opened(*given: Any, **more: Any) -> int:
        number = real_open(*given, **more)
        look()
        return number

    def rename(*given: Any, **more: Any) -> None:
        real_rename(*given, **more)
        look()

    def unlink(*given: Any, **more: Any) -> None:
        real_unlink(*given, **more)
        look()

    with pytest.MonkeyPatch.context() as patch:
        for name, fake in (
            ("write", write), ("fsync", fsync), ("ftruncate", cut), ("open", opened),
            ("rename", rename), ("replace", rename), ("unlink", unlink),
        ):  # fmt: skip
            patch.setattr(os, name, fake)

        class Moments(list[Disk]):
            def acknowledge(self) -> None:
                disk.done += 1
                self.append(disk.copy())

        moments = Moments(moments)
        yield moments
