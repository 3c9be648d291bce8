"""How much time and memory bad input takes at most.

    python -m tools.campaign.limits [PARSER ...]

Each parser reads its corpus, and inputs that are as large, as deep or as wide as they can be. Each
input is read in a fork of a process that has loaded all modules. Its seconds are of the processor;
its memory is all that the process holds, libraries included.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools.campaign.parsers import CORPUS, PARSERS, UnclearError, answer

MEGABYTE = 10**6
LARGE = 100 * MEGABYTE
_MOST_ADDRESSES = 8 * 2**30
_LIMIT = 120


def _filled(part: bytes, size: int, before: bytes = b"", after: bytes = b"") -> bytes:
    return before + part * ((size - len(before) - len(after)) // len(part)) + after


def _any(parser: str) -> Iterator[tuple[str, bytes]]:
    """Yield inputs of 100 MB for every parser."""
    ordinary = (CORPUS / parser).joinpath(f"ordinary{Path(PARSERS[parser][0]).suffix}")
    start = ordinary.read_bytes()
    yield "100 MB of zeros", _filled(b"\0", LARGE)
    yield "100 MB in one line", _filled(b"x", LARGE)
    yield "100 MB of line ends", _filled(b"\n", LARGE)
    yield "100 MB of digits", _filled(b"9", LARGE)
    yield "100 MB of brackets", _filled(b"[", LARGE)
    yield "100 MB of quotes and commas", _filled(b'",', LARGE)
    yield "100 MB behind what is good", _filled(b"\xff\n", LARGE, start)
    yield "good 100 MB over", _filled(start, LARGE)


def _yaml(parser: str) -> Iterator[tuple[str, bytes]]:
    start = (CORPUS / parser / "ordinary.yaml").read_bytes() + b"\n"
    size = 4 * 2**20
    for times, what in (
        (24_000, "just few enough"),
        (60_000, "too many"),
        (400_000, "far too many"),
    ):
        yield f"nodes, {what}", start + b"more: [" + b"[1],[2]," * times + b"]\n"
        yield (
            f"keys, {what}",
            start + b"".join(b"k%d: 1\n" % n for n in range(min(times * 2, 300_000))),
        )
        yield (
            f"epsilons, {what}",
            start.replace(b"epsilons: [1]", b"epsilons: [" + b"1.5," * times + b"]"),
        )
        yield (
            f"methods, {what}",
            start.replace(b"methods: [ebm]", b"methods: [" + b"ebm," * times + b"]"),
        )
    yield "one text of 4 MiB", _filled(b"x", size, start + b"title: ")
    yield "one key of 4 MiB", _filled(b"x", size, start, b": 1\n")
    yield "one number of 4 MiB", _filled(b"9", size, start + b"splits: ")
    yield "comments of 4 MiB", _filled(b"# x\n", size, start)
    yield "escapes of 4 MiB", _filled(b"\\u0041", size, start + b'title: "', b'"\n')
    yield "50 deep", start + b"more: " + b"[" * 49 + b"]" * 49
    yield "10,000 deep", start + b"more: " + b"[" * 10_000 + b"]" * 10_000
    yield "10,000 deep by indents", start + b"".join(b" " * n + b"a:\n" for n in range(2_000))
    rows = b"a0: &a0 [1,1,1,1,1,1,1,1,1]\n" + b"".join(
        b"a%d: &a%d [" % (n, n) + b",".join([b"*a%d" % (n - 1)] * 9) + b"]\n" for n in range(1, 30)
    )
    yield "aliases that double 30 times", start + rows
    merged = b"m0: &m0 {a: 1, b: 2}\n" + b"".join(
        b"m%d: &m%d {<<: [%s]}\n" % (n, n, b",".join([b"*m%d" % (n - 1)] * 9)) for n in range(1, 12)
    )
    yield "merges that double 12 times", start + merged
    axes = b", ".join(b"p%d: [1,2,3,4,5,6,7,8,9]" % n for n in range(200))
    grid = b"methods: [{method: ebm, grid: {" + axes + b"}}]"
    yield "a grid of 9^200", start.replace(b"methods: [ebm]", grid)
    yield "splits of 10^9", start.replace(b"splits: 2", b"splits: 1000000000")
    features = (
        b"features: {" + b"".join(b"f%d: {numeric: [0, 1]}, " % n for n in range(12_000)) + b"}\n"
    )
    yield "12,000 features", start + features
    yield "range of 10^6 columns", start + b"features: {'f{1..1000000}': {numeric: [0, 1]}}\n"
    yield (
        "1,000 ranges of 1,000",
        start
        + b"features: {"
        + b"".join(b"'f%d_{1..1000}': {numeric: [0, 1]}, " % n for n in range(1_000))
        + b"}\n",
    )


def _json(parser: str) -> Iterator[tuple[str, bytes]]:
    for size, name in ((16 * 2**20 - 10, "16 MiB"), (64 * 2**20 - 10, "64 MiB")):
        yield f"{name} of a list of numbers", _filled(b"1,", size, b"[", b"1]")
        yield f"{name} of a list of lists", _filled(b"[],", size, b"[", b"1]")
        yield f"{name} of a list of objects", _filled(b"{},", size, b"[", b"1]")
        yield f"{name} of a list of texts", _filled(b'"a",', size, b"[", b"1]")
        yield f"{name} of one text", _filled(b"a", size, b'"', b'"')
        yield f"{name} of escapes", _filled(b"\\u0041", size, b'"', b'"')
        yield f"{name} of keys", b"{" + b",".join(b'"%d":1' % n for n in range(size // 11)) + b"}"
        yield f"{name} of depth", b"[" * (size // 2) + b"]" * (size // 2)
        yield f"{name} of depth in objects", b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6)
        yield f"{name} of digits", _filled(b"9", size)
    good = (CORPUS / parser).joinpath("ordinary" + Path(PARSERS[parser][0]).suffix).read_bytes()
    keys = b",".join(b'"%d":1' % n for n in range(290_000))
    yield "290,000 keys behind the first", good.replace(b",", b"," + keys + b",", 1)
    places = good.count(b"[")
    for place in range(min(places, 40)):
        parts = good.split(b"[")
        parts[place + 1] = b"1," * 900_000 + parts[place + 1]
        yield f"list {place + 1} of 900,000 numbers", b"[".join(parts)


def _csv(parser: str) -> Iterator[tuple[str, bytes]]:
    yield "10^6 columns", b",".join(b"c%d" % n for n in range(10**6)) + b"\n" + b"1," * 10**6
    yield "10^7 columns without names", b"," * 10**7 + b"\n" + b"," * 10**7
    yield "10^6 columns of one name", b"x," * 10**6 + b"\n"
    yield "a quote that never ends", _filled(b"1,2,3\n", LARGE, b'x,c,y\n"')
    yield "a bad last line", _filled(b"1,a,1\n", LARGE, b"x,c,y\n", b"oops\n")
    yield "a bad last value", _filled(b"1,a,1\n", LARGE, b"x,c,y\n", b"x,a,1\n")
    yield "lines of different lengths", _filled(b"1,a,1\n1\n", LARGE, b"x,c,y\n")


def _arff(parser: str) -> Iterator[tuple[str, bytes]]:
    names = b"".join(b"@attribute a%d numeric\n" % n for n in range(300_000))
    yield "300,000 attributes", b"@relation r\n" + names + b"@data\n"
    values = b"@attribute c {" + b",".join(b"v%d" % n for n in range(1_000_000)) + b"}\n"
    yield "10^6 values", b"@relation r\n" + values + b"@data\nv1\n"
    head = b"@relation r\n@attribute x numeric\n@attribute y {0,1}\n@data\n"
    yield "a bad last line", _filled(b"1,1\n", LARGE, head, b"oops\n")
    yield "an index of 10^9", head + b"{1000000000 1}\n"
    yield "100 MB without data", _filled(b"% x\n", LARGE, b"@relation r\n")


def _svmlight(parser: str) -> Iterator[tuple[str, bytes]]:
    yield "an index of 10^12", b"1 1:2 1000000000000:1\n0 1:1\n"
    yield "an index of 10^9", b"1 1:2 1000000000:1\n0 1:1\n"
    yield "an index of 10^7", b"1 1:2 10000000:1\n" * 5
    yield "10^6 indices", b"1 " + b" ".join(b"%d:1" % n for n in range(1, 10**6)) + b"\n"
    yield "a bad last line", _filled(b"1 1:2 2:3\n", LARGE, after=b"oops\n")


def _npy(shape: str, kind: str = "<f8") -> bytes:
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117)
    return b"\x93NUMPY\x01\0" + struct.pack("<H", 118) + head.encode() + b"\n"


def _npz(parser: str) -> Iterator[tuple[str, bytes]]:
    def zipped(**arrays: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in arrays.items():
                archive.writestr(f"{name}.npy", data)
        return file.getvalue()

    bomb = _npy("(1000, 125000)") + bytes(10**9)
    yield "a zip of 10^9 zeros", zipped(X=bomb)
    yield "a zip of 10^9 zeros, and labels", zipped(X=bomb, y=_npy("(1000,)") + bytes(8000))
    yield "a shape of 10^12", zipped(X=_npy("(1000000, 1000000)"), y=_npy("(1000000,)"))
    yield "a shape of 10^30", zipped(X=_npy("(10**30, 1)"), y=_npy("(2,)"))
    yield "a shape of 10^9 texts", zipped(X=_npy("(1000000000, 1)", "<U100"), y=_npy("(2,)"))
    yield "10^5 members", zipped(**{f"a{n}": b"x" for n in range(100_000)})


def _idx(parser: str) -> Iterator[tuple[str, bytes]]:
    head = b"\0\0\x08\x03" + struct.pack(">III", 10_000, 1_000, 100)
    yield "a zip of 10^9 zeros", gzip.compress(head + bytes(10**9), 6)
    yield "a zip of 10^9 zeros, unasked", gzip.compress(b"\0\0\x08\x01\0\0\0\x01" + bytes(10**9), 6)
    yield "a size of 2^96", b"\0\0\x08\x03" + b"\xff" * 12
    yield "255 axes", b"\0\0\x08\xff" + struct.pack(">I", 2) * 255
    yield "100 MB of one pixel", b"\0\0\x08\x03" + struct.pack(">III", 10**8, 1, 1) + bytes(10**8)


_MORE = {
    "config": _yaml, "card": _yaml, "model": _json, "journal": _json, "audits": _json, "csv": _csv,
    "table": _csv, "columns": _csv, "codebook": _csv, "verdicts": _csv, "arff": _arff,
    "svmlight": _svmlight, "npz": _npz, "idx": _idx,
}  # fmt: skip


def inputs(parser: str) -> Iterator[tuple[str, bytes]]:
    """Yield the inputs of a parser, with what each is."""
    for path in sorted((CORPUS / parser).iterdir()):
        yield path.name, path.read_bytes()
    yield from _MORE[parser](parser) if parser in _MORE else ()
    yield from _any(parser)


def measured(parser: str, path: Path) -> tuple[float, float, str]:
    """Return the processor seconds, the megabytes, and the first words of the answer."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
            signal.alarm(_LIMIT)
            try:
                said.write(answer(parser, path) or "taken")
            except UnclearError as error:
                said.write(f"UNCLEAR {error}")
            finally:
                said.flush()
                os._exit(0)
        _, status, used = os.wait4(child, 0)
        said.seek(0)
        text = said.read() if status == 0 else f"ended with {os.waitstatus_to_exitcode(status)}"
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MEGABYTE, text


def main() -> None:
    """Print each input that takes more than a third of a second or 400 MB, and the largest."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parsers", nargs="*", help="default: all")
    folder = Path(tempfile.mkdtemp())
    for parser in options.parse_args().parsers or PARSERS:
        path = folder / PARSERS[parser][0]
        most, largest, number = 0.0, 0.0, 0
        for name, data in inputs(parser):
            path.write_bytes(data)
            del data  # else the fork would hold it
            seconds, size, said = measured(parser, path)
            number, most, largest = number + 1, max(most, seconds), max(largest, size)
            if seconds > 1 / 3 or size > 400 or "UNCLEAR" in said or "ended" in said[:5]:
                print(f"  {parser}, {name}: {seconds:.2f} s, {size:.0f} MB: {said[-150:]!r}")
        print(f"{parser}: {number} inputs, at most {most:.2f} s, {largest:.0f} MB", flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
