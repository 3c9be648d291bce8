"""Small changes of an input, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

TOKENS = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\n", b",", b":", b"'", b'"', b"{", b"}", b"[", b"]",
    b"-1", b"0", b"010", b"1:30", b"1e-400", b"1e400", b"1e308", b"-1e308", b"9" * 30, b"9" * 5000,
    b"NaN", b"Infinity", b".nan", b".inf", b"nan", b"true", b"null", b"~", b"&a ", b"*a", b"<<: ",
    b"!!float ", b"!!timestamp ", b"2024-02-30", b"? ", b"|\n", b"%", b"@data", b"{1..1000000}",
    "\u2028é\U0001f600".encode(), b"\\ud800", b"\\u0000", b"[" * 60, b"FILL_IN", b"\x1f\x8b",
)  # fmt: skip


def mutated(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """Return `data` after one to four changes; some take a part of another input."""
    for _ in range(draw.randint(1, 4)):
        data = draw.choice(_CHANGES)(data, draw.choice(others), draw)
    return data


def _place(data: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randint(0, len(data))
    return start, min(len(data), start + draw.choice((1, 2, 4, 8, 30, 200)))


def _flip(data: bytes, other: bytes, draw: random.Random) -> bytes:
    if not data:
        return other
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :]


def _cut(data: bytes, other: bytes, draw: random.Random) -> bytes:
    start, stop = _place(data, draw)
    return data[:start] + data[stop:]


def _end(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: _place(data, draw)[0]]


def _repeat(data: bytes, other: bytes, draw: random.Random) -> bytes:
    start, stop = _place(data, draw)
    return data[:stop] + data[start:stop] * draw.choice((1, 2, 50)) + data[stop:]


def _token(data: bytes, other: bytes, draw: random.Random) -> bytes:
    start, stop = _place(data, draw)
    return data[:start] + draw.choice(TOKENS) + data[draw.choice((start, stop)) :]


def _swap_line(data: bytes, other: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, two = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


def _number(data: bytes, other: bytes, draw: random.Random) -> bytes:
    """Replace a run of digits by a token, where there is one."""
    places = [k for k, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return data
    start = stop = draw.choice(places)
    while stop < len(data) and data[stop : stop + 1].isdigit():
        stop += 1
    return data[:start] + draw.choice(TOKENS) + data[stop:]


def _splice(data: bytes, other: bytes, draw: random.Random) -> bytes:
    return data[: _place(data, draw)[0]] + other[_place(other, draw)[0] :]


_CHANGES = (_flip, _cut, _end, _repeat, _token, _token, _swap_line, _number, _number, _splice)
