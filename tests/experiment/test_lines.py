from __future__ import annotations

import json

import pytest

from dprepro.experiment.lines import DamagedLineError, is_sealed, parsed, sealed, written


def test_a_line_gives_back_its_fields() -> None:
    line = written({"kind": "x", "a": "ä"}).rstrip(b"\n")
    assert is_sealed(line)
    assert parsed(line) == {"kind": "x", "a": "ä"}
    assert json.loads(line)["format"] == 2
    assert not is_sealed(b'{"kind":"x"}')
    assert sealed(b'{"kind":"x"}') == written({"kind": "x"})


@pytest.mark.parametrize("line", [b'{"kind":"x"}]', b'{"kind":"x"} {}', b"[1]"])
def test_a_line_is_one_object_and_nothing_more(line: bytes) -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        parsed(line)


def test_a_changed_line_is_damaged() -> None:
    with pytest.raises(DamagedLineError):
        parsed(written({"kind": "x"}).rstrip(b"\n").replace(b'"x"', b'"y"'))
