from __future__ import annotations

import json
import zlib
from collections.abc import Callable

import pytest

from dprepro.experiment.record import (
    Chain,
    DamagedLineError,
    chained_anew,
    is_chained,
    parsed,
    written,
)
from tests.lab import of_format_1, of_format_2


def test_a_line_gives_back_its_fields() -> None:
    line = written({"kind": "x", "a": "ä"}).rstrip(b"\n")
    assert is_chained(line)
    assert parsed(line) == {"kind": "x", "a": "ä"}
    said = json.loads(line)
    assert (said["format"], said["after"]) == (3, "00000000")
    for old in (of_format_1, of_format_2):
        assert parsed(old(line + b"\n").rstrip(b"\n")) == {"kind": "x", "a": "ä"}
        assert not is_chained(old(line + b"\n").rstrip(b"\n"))


def _three() -> bytes:
    raw = b""
    for name in "abc":
        raw += written({"kind": name}, raw)
    return raw


def test_a_line_states_the_checksum_of_the_line_before() -> None:
    said = [json.loads(line) for line in _three().splitlines()]
    assert [line["after"] for line in said] == ["00000000", said[0]["crc32"], said[1]["crc32"]]


@pytest.mark.parametrize("old", [of_format_1, of_format_2])
def test_the_first_line_that_is_chained_covers_all_before_it(
    old: Callable[[bytes], bytes],
) -> None:
    before = old(_three())
    line = written({"kind": "d"}, before)
    assert json.loads(line)["after"] == f"{zlib.crc32(before):08x}"
    chain = Chain()
    assert all(chain.follows(line) for line in (before + line).splitlines())
    chain = Chain()
    follows = [chain.follows(line) for line in (before[1:] + line).splitlines()]
    assert follows == [True, True, True, False]


def test_lines_are_chained_anew_from_the_first_on_that_is() -> None:
    raw = _three()
    assert chained_anew(raw.splitlines()) == raw
    old = of_format_1(raw) + of_format_2(raw)
    assert chained_anew(old.splitlines()) == old
    _, two, three = raw.splitlines()
    mixed = [*old.splitlines(), three, two, *old.splitlines()]
    chain = Chain()
    made = chained_anew(mixed).splitlines()
    assert all(chain.follows(line) for line in made)
    assert [parsed(line) for line in made] == [parsed(line) for line in mixed]
    assert made[:6] == mixed[:6]
    assert all(map(is_chained, made[6:]))


def test_what_follows_a_damaged_line_is_not_held_against_it() -> None:
    chain = Chain()
    one, two, three = _three().splitlines()
    assert chain.follows(one)
    assert not chain.follows(three)
    chain.lose()
    assert chain.follows(two)
    assert chain.follows(three)


@pytest.mark.parametrize("line", [b'{"kind":"x"}]', b'{"kind":"x"} {}', b"[1]"])
def test_a_line_is_one_object_and_nothing_more(line: bytes) -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        parsed(line)


def test_a_changed_line_is_damaged() -> None:
    with pytest.raises(DamagedLineError):
        parsed(written({"kind": "x"}).rstrip(b"\n").replace(b'"x"', b'"y"'))
