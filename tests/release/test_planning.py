"""What a release may be, and planned ledgers: those of the real fits, without the real rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dprepro.data.card import Card, load_card
from dprepro.data.dataset import load
from dprepro.data.domain import CategoricalFeature, Domain, NumericFeature
from dprepro.experiment.config import load_config
from dprepro.experiment.plan import SPLIT, note_disclosures
from dprepro.methods import registry
from dprepro.methods.entry import Setting
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.sensitivity import REPLACE_ONE
from dprepro.release.planning import (
    check_delta,
    check_method,
    default_delta,
    draw_rows,
    planned_ledgers,
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
    path.write_text(study.read_text(encoding="utf-8"))
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


SPENT = {
    "dp-ebm-gdp": [0.437, 0.876, 1.757, 3.526, 7.080],
    "dp-ebm-classic": [0.162, 0.331, 0.678, 1.397, 2.916],
}
SPENT_UNDER_REPLACE_ONE = {
    "dp-ebm-gdp": [0.915, 1.848, 3.761, 7.752, 16.26],
    "dp-ebm-classic": [0.339, 0.693, 1.426, 2.975, 6.362],
}


@pytest.mark.parametrize("method", list(SPENT))
def test_what_the_published_adult_columns_really_spend(method):
    found = planned_ledgers(load_config("adult"), methods=(method,))
    assert [p.task.epsilon for p in found] == [0.5, 1, 2, 4, 8]
    assert [p.ledger.spent_epsilon() for p in found] == pytest.approx(SPENT[method], abs=1e-3)
    replaced = [p.ledger.spent_epsilon(REPLACE_ONE) for p in found]
    assert replaced == pytest.approx(SPENT_UNDER_REPLACE_ONE[method], rel=1e-3)


def test_a_planned_ledger_is_the_fitted_one(data_dir):
    config = load_config("telco")
    telco = load("telco", data_dir)
    domains = {"observed": Domain.observe(telco.X, telco.y, "binary"), "public": telco.domain}
    compared = set()
    for planned in planned_ledgers(config, epsilons=(1.0,)):
        method, kind = registry.get(planned.task.method), planned.task.domain
        if method.encoding != "frame":
            continue
        model = method.build(Setting("binary", 1.0, 1e-6, domains[kind], 0))
        note_disclosures(model.fit(telco.X, telco.y).ledger_, planned.task)
        assert model.ledger_ == planned.ledger
        compared.add(kind)
    assert compared == {"observed", "public"}


def test_methods_without_a_budget_have_no_ledger():
    labels = {p.task.label for p in planned_ledgers(load_config("adult"), epsilons=(1.0,))}
    assert "ebm" not in labels
    assert "dp-logistic-fair" in labels


def test_a_method_whose_extra_is_not_installed_is_named(monkeypatch):
    lacking = replace(registry.get("dp-cnn"), requires="surely_not_installed")
    monkeypatch.setattr("dprepro.methods.registry.get", lambda name: lacking)
    with pytest.raises(DpreproError, match="dp-cnn needs the module 'surely_not_installed'"):
        planned_ledgers(load_config("fashion-mnist-cnn"), methods=("dp-cnn",))


def test_without_a_public_domain_it_says_what_to_do(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,a\n2,b\n")
    (tmp_path / "card.yaml").write_text(
        "name: mine\ntask: binary\nfile: rows.csv\ntarget: y\npositive: a\n"
    )
    (tmp_path / "mine.yaml").write_text(
        "dataset: card.yaml\nmetric: auc\nsplits: 1\nseed: 1\nepsilons: [1]\ndelta: 1e-6\n"
        "methods: [dp-ebm-gdp]\n"
    )
    with pytest.raises(DpreproError, match="gives no public domain"):
        planned_ledgers(load_config(str(tmp_path / "mine.yaml")))


def test_drawn_rows_lie_in_the_domain_and_show_every_label():
    domain = Domain(
        (NumericFeature("x", -1, 3), CategoricalFeature("c", ("a", "b", "d"))), ("0", "1", "2")
    )
    X, y = draw_rows(domain, "multiclass", 90, np.random.default_rng(0))
    assert X["x"].between(-1, 3).all()
    assert set(X["c"]) == {"a", "b", "d"}
    assert set(y) == {0, 1, 2}
    X, y = draw_rows(
        Domain(domain.features, (5.0, 7.0)), "regression", 30, np.random.default_rng(0)
    )
    assert (y.min(), y.max()) == (5.0, 7.0)


def test_a_fit_to_all_rows_does_not_assume_which_rows_train(tmp_path):
    config = load_config(write_table(tmp_path, "binary", rows_of("binary", 4)))
    (of_split,) = planned_ledgers(config)
    (of_all,) = planned_ledgers(config, all_rows=True)
    assert SPLIT in of_split.ledger.assumed_public
    assert of_all.ledger.assumed_public == [
        text for text in of_split.ledger.assumed_public if text != SPLIT
    ]
