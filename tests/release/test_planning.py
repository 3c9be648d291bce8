from __future__ import annotations

from pathlib import Path

import pytest

from dprepro.data.card import Card, load_card
from dprepro.experiment.config import load_config
from dprepro.privacy.ledger import Ledger
from dprepro.release.planning import (
    check_delta,
    check_method,
    default_delta,
    release_config,
    require_sound,
)
from dprepro.runtime.errors import DpreproError
from tests.private_table import rows_of, write_table
from tests.release.ledgers import gaussian_ledger


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_table(tmp_path, "binary", rows_of("binary", 4))


@pytest.fixture
def card(study: Path) -> Card:
    return load_card(study.with_name("patients.yaml"))


@pytest.mark.parametrize(
    ("rows", "delta"), [(32_561, 1e-6), (101_766, 1e-7), (1000, 1e-4), (999, 1e-4), (1001, 1e-5)]
)
def test_delta_is_the_largest_power_of_ten_below_a_tenth_of_one_over_n(
    card: Card, rows: int, delta: float
) -> None:
    stated = card.model_copy(update={"expect": card.expect.model_copy(update={"rows": rows})})
    assert default_delta(stated) == delta
    assert delta <= 1 / (10 * rows) < 10 * delta * (1 + 1e-9)


def test_without_a_public_number_of_rows_delta_must_be_given(card: Card) -> None:
    with pytest.raises(DpreproError, match=r"\(`expect: \{rows: N\}`\), .* choose --delta"):
        default_delta(card)


@pytest.mark.parametrize(
    ("rows", "silent", "warned", "refused"),
    [(None, 1e-4, 9e-3, 1e-2), (10**6, 1e-7, 9e-7, 1e-6), (20, 1e-4, 9e-3, 1e-2)],
)
def test_a_delta_is_held_against_the_rows_that_are_public(
    card: Card, rows: int | None, silent: float, warned: float, refused: float
) -> None:
    stated = card.model_copy(update={"expect": card.expect.model_copy(update={"rows": rows})})
    assert check_delta(stated, silent, False) == ""
    assert "is large" in check_delta(stated, warned, False)
    assert "is large" in check_delta(stated, refused, True)
    with pytest.raises(DpreproError, match="--allow-large-delta"):
        check_delta(stated, refused, False)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ebm", "has no privacy guarantee"),
        ("dp-logistic-fair", "floating point"),
        ("dp-random-forest", "makes no additive model"),
        ("dp-linear-fair", "is for regression, not for binary"),
        ("dp-ebm-pluss", "did you mean 'dp-ebm-plus'"),
    ],
)
def test_a_method_that_cannot_make_a_release_is_refused(card: Card, name: str, said: str) -> None:
    with pytest.raises(DpreproError, match=said) as caught:
        check_method(card, name, allows_floating_point=False)
    assert "dp-ebm-plus" in str(caught.value)
    assert check_method(card, "dp-ebm-sound", False).name == "dp-ebm-sound"


def test_a_release_has_no_seed_and_a_public_domain(card: Card, study: Path) -> None:
    found = release_config(card, str(study.with_name("patients.yaml")), "dp-ebm-plus", 0.7, 1e-5)
    assert (found.seed, found.domain, found.epsilons, found.delta) == (None, "public", (0.7,), 1e-5)
    assert load_card(found.card).name == "patients"


def test_a_card_without_a_domain_is_refused(card: Card) -> None:
    bare = card.model_copy(update={"features": None})
    with pytest.raises(DpreproError, match="gives no public domain"):
        release_config(bare, "patients.yaml", "dp-ebm-plus", 1, 1e-6)


def config(study: Path, **keys: object) -> Path:
    path = study.with_name("params.yaml")
    path.write_text(study.read_text())
    return write_table(study.parent, "binary", rows_of("binary", 4), **keys)


def test_parameters_come_from_a_config(card: Card, study: Path) -> None:
    entries = [{"method": "dp-ebm-plus", "label": "short", "params": {"n_epochs": 3}}, "ebm"]
    given = load_config(config(study, methods=entries, seed=5))
    place = str(study.with_name("patients.yaml"))
    found = release_config(card, place, "short", 1, 1e-6, given)
    assert (found.methods[0].params, found.seed) == ({"n_epochs": 3}, None)
    with pytest.raises(DpreproError, match="no entry called 'long'"):
        release_config(card, place, "long", 1, 1e-6, given)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"tuned_on": {"dataset": "patients"}}, "dprepro tune"),
        ({"domain": "observed"}, "domain: observed"),
        ({"rows_per_unit": ["row"]}, "rows_per_unit: a release protects whom the card says"),
        (
            {"methods": [{"method": "dp-ebm-plus", "rows_per_unit": [3]}]},
            "a release protects whom the card says",
        ),
        ({"methods": [{"method": "dp-ebm-plus", "grid": {"n_epochs": [1, 2]}}]}, "has a `grid`"),
    ],
)
def test_a_config_that_a_release_cannot_follow_is_refused(
    card: Card, study: Path, keys: dict[str, object], said: str
) -> None:
    given = load_config(config(study, **keys))
    with pytest.raises(DpreproError, match=said):
        release_config(card, str(study.with_name("patients.yaml")), "dp-ebm-plus", 1, 1e-6, given)


def test_only_a_ledger_that_holds_is_released() -> None:
    ledger = gaussian_ledger()
    assert require_sound(ledger, "", False) is ledger
    with pytest.raises(DpreproError, match="without a ledger: it failed"):
        require_sound(None, "it failed", False)
    with pytest.raises(DpreproError, match=r"does not hold: .*bounds of age"):
        require_sound(Ledger(1, 1e-6, "zero-out", ledger.entries, ["bounds of age"]), "", True)
    with pytest.raises(DpreproError, match=r"it spends epsilon 1 of 0\.5"):
        require_sound(Ledger(0.5, 1e-6, "zero-out", ledger.entries), "", True)
    rounded = Ledger(1, 1e-6, "zero-out", ledger.entries, floating_point=["sums"])
    with pytest.raises(DpreproError, match="noise in floating point: sums"):
        require_sound(rounded, "", False)
    assert require_sound(rounded, "", True) is rounded


def test_an_epsilon_beyond_the_samplers_names_the_largest() -> None:
    """It said "spends epsilon inf of 300", not why, nor that nothing was spent."""
    with pytest.raises(DpreproError, match="the largest epsilon is") as caught:
        require_sound(gaussian_ledger(300.0), "", False)
    assert str(caught.value).endswith("Nothing was spent")
    largest = int(str(caught.value).split("epsilon is ")[1].split(".")[0])
    assert 200 < largest < 300
    assert require_sound(gaussian_ledger(largest), "", False)
