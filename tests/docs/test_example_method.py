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
from dprepro.methods.entry import Setting
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.guarantee_status import Noise
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import SensitivityError
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
    assert read.fit(x, x[:, 0]).ledger_.unaccounted[0] == "bounds"
    assert "range of the target" not in read.ledger_.assumed_public


def total_of(model: Any, targets: np.ndarray) -> float:
    """Return the noisy sum of targets from 0 to 1, measured from their middle; noise by a seed."""
    x = np.linspace(0, 1, targets.size)[:, None]
    domain = Domain((NumericFeature("x", 0, 1),), (0.0, 1.0))
    fitted = clone(model).set_params(domain=domain, random_state=1).fit(x, targets)
    return float((fitted.mean_ - 0.5) * targets.size)


def test_its_sum_has_no_order_and_moves_by_a_part_in_whole_units(model: Any) -> None:
    targets = np.random.default_rng(0).random(2**12)
    targets[0] = 0.5  # adds nothing
    exact = total_of(model, targets)
    assert total_of(model, targets[::-1]) == exact
    for value, part in ((1.0, 2**20), (0.0, -(2**20)), (0.9, 838_860), (0.1, -838_860)):
        targets[0] = value
        assert (total_of(model, targets) - exact) * 2**21 == part


def test_it_declares_the_noise_that_its_ledger_has(model: Any) -> None:
    assert registry.get("noisy-mean").noise is Noise.EXACT
    assert model.fit(*table()).ledger_.floating_point == []


def test_it_works_for_no_other_neighbours(model: Any) -> None:
    fitted = model.fit(*table())
    fitted.ledger_.adjacency = REPLACE_ONE
    with pytest.raises(SensitivityError, match="state zero-out"):
        curator_of(model)(Private(None), RANGE, fitted.ledger_, 0)
