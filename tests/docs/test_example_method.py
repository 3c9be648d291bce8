"""The method that CONTRIBUTING.md shows as an example keeps the rules of the methods here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dprepro.data.domain import Domain, NumericFeature
from dprepro.methods import registry
from dprepro.methods.registry import Setting
from dprepro.privacy.private import Private
from dprepro.privacy.release import Curator, SensitivityError
from dprepro.privacy.sensitivity import REPLACE_ONE
from tests.docs.pages import blocks
from tests.privacy.curators import RANGE, Fit, table
from tests.privacy.test_reading import bare_uses
from tests.privacy.test_sealed import open_to_all
from tests.privacy.ways_in import ways_in

FOLDER = "my_methods/"
SOURCES = {b.name: b.text for b in blocks("CONTRIBUTING.md") if b.name.startswith(FOLDER)}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An unfitted estimator of the example, loaded as a plug-in."""
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path / FOLDER))
    registry.all_methods.cache_clear()
    yield registry.get("noisy-mean").build(Setting("regression", 1.0, 1e-6, RANGE, 0))
    registry.all_methods.cache_clear()


def curator_of(model: Any) -> type[Curator]:
    found: type[Curator] = vars(sys.modules[type(model).__module__])["MeanCurator"]
    return found


def test_it_has_two_modules_and_no_way_round_the_wall() -> None:
    assert [Path(name).name for name in SOURCES] == ["curator.py", "__init__.py"]
    for text in SOURCES.values():
        assert ways_in(text, "my_methods.noisy_mean") == []
    assert bare_uses(SOURCES[f"{FOLDER}noisy_mean/__init__.py"]) == []


def test_its_curator_keeps_nothing_that_depends_on_a_row(model: Any) -> None:
    assert open_to_all(Fit(curator_of(model), model)) == set()


def test_it_predicts_the_mean_and_lists_what_it_read(model: Any) -> None:
    x = np.linspace(0, 1, 5000)[:, None]
    domain = Domain((NumericFeature("x", 0, 1),), (0.0, 1.0))
    fitted = clone(model).set_params(domain=domain, random_state=None).fit(x, x[:, 0])
    assert fitted.predict(x)[0] == pytest.approx(0.5, abs=0.01)
    assert fitted.ledger_.holds
    read = clone(model).set_params(domain=Domain(domain.features, domain.target, ("bounds",)))
    assert read.fit(x, x[:, 0]).ledger_.unpaid[0] == "bounds"
    assert "range of the target" not in read.ledger_.assumed_public


def test_it_works_for_no_other_neighbours(model: Any) -> None:
    fitted = model.fit(*table())
    fitted.ledger_.adjacency = REPLACE_ONE
    with pytest.raises(SensitivityError, match="state zero-out"):
        curator_of(model)(Private(None), RANGE, fitted.ledger_, 0)
