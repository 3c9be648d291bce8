from __future__ import annotations

import pytest

from dprepro.experiment.config import config_names, config_titles, load_config
from dprepro.runtime.errors import DpreproError
from tests.commands import dprepro

TITLES = {"wine-white": "DP-EBM on white wines", "quick": "A first run", "adult": "Wine or census"}


def test_every_config_has_a_title() -> None:
    titles = config_titles()
    assert list(titles) == config_names()
    assert titles["quickstart"] == load_config("quickstart").title != ""
    assert all(titles.values())


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprepro.experiment.config.config_titles", lambda: TITLES)


@pytest.mark.usefixtures("_few")
def test_the_list_is_aligned() -> None:
    assert dprepro("configs").splitlines() == [
        "wine-white  DP-EBM on white wines",
        "quick       A first run",
        "adult       Wine or census",
    ]


@pytest.mark.usefixtures("_few")
def test_a_word_selects_by_name_and_title() -> None:
    assert [line.split()[0] for line in dprepro("configs", "WINE").splitlines()] == [
        "wine-white",
        "adult",
    ]
    with pytest.raises(DpreproError, match=r"no config has 'adul-t'.*; did you mean 'adult'"):
        dprepro("configs", "adul-t")
