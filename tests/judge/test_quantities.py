import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.data.card import load_card
from dprepro.data.cleaning import public_domain
from dprepro.data.domain import sample_features
from dprepro.data.encode import BooleanEncoder
from dprepro.judge import quantities
from dprepro.judge.claim_kinds import Computed
from dprepro.judge.claims import load_claims
from dprepro.judge.quantities import QUANTITIES, compute
from dprepro.methods.lazybb.calibration import Budget, one_rule_rates, topdown_rates
from dprepro.methods.lazybb.sensitivity import smooth_distance
from dprepro.papers.published_cell import PublishedCell
from dprepro.runtime.errors import DpreproError


@pytest.mark.parametrize(
    ("quantity", "arguments", "expected"),
    [
        ("rows", {"dataset": "telco"}, 7043),
        ("donors_test_rows", {"dataset": "adult"}, 16281),
        ("features", {"dataset": "pol"}, 48),
        ("most_features", {"datasets": ["adult", "pol", "credit"]}, 48),
        ("positive_percent", {"dataset": "telco"}, 100 * 1869 / 7043),
        ("total", {"parts": [3, -2, 1]}, 6),
        ("combinations", {"outcomes": 3}, 8),
        ("mean_leaf_share", {"method": "dp-ebm-gdp"}, 1 / 3),
        ("clip_of_mean", {"config": "henan", "method": "dp-llm"}, 0.001),
        ("rounds_of_theorem_5", {"density": math.exp(-1), "advantage": 0.5}, 64),
        ("weak_percent", {"advantage": 0.05}, 55),
    ],
)
def test_quantities(quantity, arguments, expected):
    assert compute(quantity, arguments) == pytest.approx(expected, rel=1e-12)


def test_a_function_is_as_rough_as_it_varies_over_its_range(tmp_path, monkeypatch):
    monkeypatch.setattr(quantities, "builtin", lambda kind: tmp_path)
    (tmp_path / "models").mkdir()

    def save(name, *functions):
        parts = [
            {"name": feature, "values": values, "missing_bin": missing}
            for feature, values, missing in functions
        ]
        (tmp_path / "models" / f"{name}.json").write_text(json.dumps({"features": parts}))

    save("a", ("x", [0, 3, 1, 4, 100], 4), ("y", [0, 1, 2], None))
    save("b", ("x", [0, 2, 4], None), ("y", [5, 3, 1], None))
    assert quantities.roughness("a", "x") == pytest.approx((3 + 2 + 3) / 4)
    assert quantities.roughness("b", "y") == 1
    arguments = {"rough": "a", "smooth": "b", "features": ["x", "y"]}
    assert compute("rougher_functions", arguments) == 1  # y is no smoother
    with pytest.raises(DpreproError, match="no model 'c'"):
        quantities.roughness("c", "x")


def test_the_printed_noise_of_the_image_and_the_hospital_experiments():
    shared = {"epochs": 20, "accountant": "moments"}
    mnist = {"dataset": "mnist", "noise_multiplier": 1.3, "batch_size": 500, "delta": 1e-5}
    henan = {"dataset": "henan", "noise_multiplier": 1.25, "batch_size": 256, "delta": 2e-5}
    assert compute("sampled_epsilon", {**shared, **mnist}) == pytest.approx(1.93, abs=0.005)
    assert compute("sampled_epsilon", {**shared, **henan}) == pytest.approx(1.09, abs=0.01)
    # The notes of the claims say these two; `check` does not compute them.
    tight = {**shared, "accountant": "pld"}
    assert compute("sampled_epsilon", {**tight, **mnist}) == pytest.approx(1.47, abs=0.005)
    assert compute("sampled_epsilon", {**tight, **henan}) == pytest.approx(0.76, abs=0.005)


@pytest.mark.parametrize(("method", "spent"), [("dp-ebm-gdp", 0.437), ("dp-ebm-classic", 0.162)])
def test_what_dp_ebm_spends_at_epsilon_one_half(method, spent):
    arguments = {"method": method, "dataset": "adult", "epsilon": 0.5, "delta": 1e-6}
    assert compute("spent_epsilon", arguments) == pytest.approx(spent, abs=5e-4)


@pytest.mark.parametrize("dataset", ["adult", "cod-rna", "mushroom"])
def test_boolean_columns_are_those_of_the_encoder(dataset):
    domain = public_domain(load_card(dataset))
    encoded = BooleanEncoder(domain).transform(sample_features(domain, 5, np.random.default_rng(1)))
    assert compute("boolean_columns", {"dataset": dataset}) == encoded.shape[1]


@pytest.mark.parametrize(("splits", "share"), [(0, 0.5), (3, 1.0)])
def test_what_theorems_7_and_10_spend_is_what_the_calibration_says(splits, share):
    budget = Budget(2.0, 0.0, "pure", "paper", 40, 0.35)
    rates = topdown_rates(budget, splits, 0.5, 32561) if splits else one_rule_rates(budget, 32561)
    zeta = smooth_distance(0.35, 32561)
    choices = (splits or 1) * 2 * rates.choice.eta * rates.choice.sensitivity
    labels = rates.labels.eta * rates.labels.sensitivity if splits else 0.0
    arguments = {"dataset": "adult", "epsilon": 2, "density": 0.35, "rounds": 40}
    found = compute("vote_epsilon", {**arguments, "splits": splits})
    assert found == pytest.approx(2 * share, rel=1e-9)
    assert 40 * (choices + labels) == pytest.approx(found, rel=1e-3)
    assert zeta == pytest.approx(1 / (0.35 * 32561), rel=1e-6)


def test_a_gain_moves_by_the_change_over_the_distance():
    # The gain of a perfect split is g of the whole: 4 (1/2)(1/2) = 1, then 4 (0.6)(0.4) = 0.96.
    arguments = {"before": [[0.5, 0], [0, 0.5]], "after": [[0.6, 0], [0, 0.4]]}
    assert compute("gain_move", arguments) == pytest.approx(0.04 / 0.1)
    # Of parts that are not pure their own is taken off: 0.96 - 0.4 - 0.4, then 1 - 0.32 - 0.32.
    mixed = {"before": [[0.5, 0.125], [0.1, 0.275]], "after": [[0.4, 0.1], [0.1, 0.4]]}
    gains = [
        4 * 0.6 * 0.4 - 4 * 0.5 * 0.125 / 0.625 - 4 * 0.1 * 0.275 / 0.375,
        1 - 2 * 4 * 0.4 * 0.1 / 0.5,
    ]
    assert compute("gain_move", mixed) == pytest.approx(abs(gains[1] - gains[0]) / 0.125)
    # Without a difference between the parts there is no gain.
    even = {"before": [[0.3, 0.2], [0.3, 0.2]], "after": [[0.2, 0.3], [0.2, 0.3]]}
    assert compute("gain_move", even) == pytest.approx(0.0, abs=1e-12)


def test_the_network_of_the_paper_layer_by_layer():
    arguments = {"image": 28, "kernel": 5, "channels": [20, 50], "hidden": 500, "classes": 10}
    layers = (20 * 26, 50 * (20 * 25 + 1), 500 * (50 * 16 + 1), 10 * 501)
    assert compute("network_parameters", arguments) == sum(layers) == 431080


def test_what_trees_spend_follows_from_the_settings_of_a_config():
    arguments = {"config": "sbdt-abalone", "method": "s-bdt", "epsilon": 0.5, "delta": 5e-8}
    assert compute("renyi_epsilon_of_trees", {**arguments, "sigma": 17.3757}) == pytest.approx(
        0.499723, abs=1e-6
    )
    shared = {**arguments, "epsilon": 0.3, "sigma": 1e6}
    assert 0.03 < compute("renyi_epsilon_of_trees", shared) < 0.035  # a tenth, and hardly more


def test_wrong_percentages_are_counted():
    place = {"paper": "lazybb-2022"}
    assert compute("wrong_percentages", {**place, "table": 5, "columns": 162}) == 0
    assert compute("wrong_percentages", {**place, "table": 5, "columns": 163}) > 5
    assert compute("wrong_percentages", {**place, "table": 7, "columns": 117}) == 1
    with pytest.raises(DpreproError, match="no percentages of features in table 4"):
        compute("wrong_percentages", {**place, "table": 4, "columns": 1})


@pytest.mark.parametrize(("share", "wrong"), [(10.0, 0), (9.99, 0), (9.985, 1), (10.015, 1)])
def test_a_percentage_may_be_cut_off(monkeypatch, share, wrong):
    count = PublishedCell("p", "5", "adult", "m", 1.0, "n_features", 16.2, None)
    cells = [count, replace(count, metric="pct_features", mean=share)]
    monkeypatch.setattr("dprepro.judge.quantities.load_published", lambda paper: cells)
    assert compute("wrong_percentages", {"paper": "p", "table": 5, "columns": 162}) == wrong


def test_settings_other_than_the_printed_ones_are_counted(monkeypatch):
    arguments = {"dataset": "adult", "config": "lazybb-adult", "method": "lazybb-1r"}
    assert compute("other_settings", arguments) == 0
    assert compute("other_settings", {**arguments, "dataset": "mushroom"}) == 13
    with pytest.raises(DpreproError, match="no hyper-parameters are printed for dataset 'telco'"):
        compute("other_settings", {**arguments, "dataset": "telco"})
    found = quantities.found_params

    def changed(config, method, epsilon):
        more = {"rounds": 7} if epsilon == 3 else {}
        return {**found(config, method, epsilon), **more}

    monkeypatch.setattr(quantities, "found_params", changed)
    assert compute("other_settings", arguments) == 1


def test_every_quantity_says_what_it_takes():
    for name, function in QUANTITIES.items():
        assert function.__doc__, name
        with pytest.raises(DpreproError, match=f"quantity '{name}'.*It takes: "):
            compute(name, {"nonsense": 1})
    with pytest.raises(DpreproError, match="did you mean 'features'"):
        compute("feature", {"dataset": "adult"})


def test_every_quantity_is_in_use():
    claims = [claim for found in load_claims().values() for claim in found]
    computed = [claim for claim in claims if isinstance(claim, Computed)]
    used = {figure.quantity for claim in computed for figure in claim.figures.values()}
    assert used == set(QUANTITIES)


@pytest.mark.parametrize(
    ("quantity", "dataset", "message"),
    [
        ("donors_test_rows", "telco", "does not state its test rows"),
        ("positive_percent", "pol", "does not state its positives"),
        ("boolean_columns", "henan", "has no public domain"),
    ],
)
def test_what_a_card_does_not_say_is_an_error(quantity, dataset, message):
    with pytest.raises(DpreproError, match=message):
        compute(quantity, {"dataset": dataset})
