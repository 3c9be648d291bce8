from __future__ import annotations

import pytest

from dprepro.config import config_names, load_config
from dprepro.errors import DpreproError
from tests.commands import dprepro


def test_every_config_is_listed_with_its_title() -> None:
    lines = dprepro("configs").splitlines()
    assert [line.split()[0] for line in lines] == config_names()
    title = load_config("quickstart").title
    assert title
    (line,) = [line for line in lines if line.startswith("quickstart ")]
    assert line.endswith(f"  {title}")
    assert len({len(line) - len(line.split(None, 1)[1]) for line in lines if " " in line}) == 1


def test_a_word_selects_by_name_and_title() -> None:
    found = dprepro("configs", "WINE").splitlines()
    assert "wine-white" in {line.split()[0] for line in found}
    assert all("wine" in line.lower() for line in found)
    with pytest.raises(DpreproError, match="no config has 'nothing-like-it'"):
        dprepro("configs", "nothing-like-it")
