"""LazyBB as an estimator: calibration, ledger, the exact limit, what is shown of the model."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dprepro.data.dataset import load
from dprepro.data.domain import CategoricalFeature, Domain
from dprepro.data.encode import BooleanEncoder
from dprepro.methods.lazybb.estimator import LazyBBClassifier, OneRule, TopDownTree
from dprepro.privacy.ledger import TOLERANCE, spent_epsilon
from dprepro.privacy.sensitivity import REPLACE_ONE

RNG = np.random.default_rng(0)
N = 2000
X = RNG.integers(0, 2, (N, 12))
Y = np.where(X[:, :6].sum(axis=1) + RNG.normal(0, 1, N) > 3, "yes", "no")
BASES = pytest.mark.parametrize("base", ["1r", "topdown"])


def fit(base: str = "1r", **params: Any) -> LazyBBClassifier:
    defaults = {"rounds": 9, "density": 0.4, "epsilon": 1.0, "random_state": 0}
    return LazyBBClassifier(base, **{**defaults, **params}).fit(X, Y)


@pytest.mark.parametrize(("calibration", "factor"), [("paper", 4), ("tight", 2)])
def test_one_rules_have_the_eta_of_theorem_7_or_twice_it(calibration: str, factor: int) -> None:
    """zeta = 1 / (kappa n) is divided out once."""
    (entry,) = fit(calibration=calibration).ledger_.entries
    assert 1 / entry.scale == pytest.approx(1.0 * 0.4 * N / (factor * 9))
    assert entry.sensitivity == pytest.approx(1 / (0.4 * N))


@BASES
@pytest.mark.parametrize("composition", ["pure", "advanced", "zcdp"])
@pytest.mark.parametrize("epsilon", [200.0, 5000.0])
def test_very_large_epsilons_are_fitted(base: str, composition: str, epsilon: float) -> None:
    delta = 0.0 if composition == "pure" else 1e-5
    ledger = fit(base, composition=composition, epsilon=epsilon, delta=delta, rounds=5).ledger_
    assert 0.9 * epsilon < spent_epsilon(tuple(ledger.entries), delta) <= epsilon + TOLERANCE
    assert ledger.is_calibrated
    # The distance of the samplers leaves nothing of delta where epsilon is above 260.
    assert ledger.within_budget == (delta == 0 or epsilon < 260)


def test_trees_have_the_eta_of_theorem_10_and_its_labels() -> None:
    for calibration in ("paper", "tight"):
        splits, labels = fit("topdown", splits=3, calibration=calibration).ledger_.entries
        eta = 1.0 * 0.4 * N / (16 * 9 * 3)
        assert 1 / splits.scale == pytest.approx(eta)
        assert 1 / labels.scale == pytest.approx(4 * 3 * eta)
        assert (splits.uses, labels.uses) == (27, 9)


@pytest.mark.parametrize(
    ("base", "calibration", "spent"),
    [("1r", "tight", 1.0), ("1r", "paper", 0.5), ("topdown", "tight", 1), ("topdown", "paper", 1)],
)
def test_the_ledger_states_what_each_calibration_really_spends(
    base: str, calibration: str, spent: float
) -> None:
    ledger = fit(base, calibration=calibration, random_state=None, label_share=0.3).ledger_
    assert ledger.spent_epsilon() == pytest.approx(spent)
    assert (ledger.delta, ledger.adjacency) == (0.0, REPLACE_ONE)
    assert ledger.holds


@BASES
@pytest.mark.parametrize("composition", ["pure", "advanced", "zcdp"])
@pytest.mark.parametrize("rounds", [3, 99])
def test_every_composition_keeps_its_promise(base: str, composition: str, rounds: int) -> None:
    ledger = fit(
        base, composition=composition, rounds=rounds, delta=1e-5, random_state=None
    ).ledger_
    assert ledger.spent_epsilon() <= 1.0 + TOLERANCE
    assert ledger.holds


@BASES
@pytest.mark.parametrize("margin", ["signed", "agreements"])
def test_a_huge_epsilon_is_the_exact_learner(base: str, margin: str) -> None:
    private = fit(base, epsilon=1e9, margin=margin)
    exact = fit(base, epsilon=math.inf, margin=margin)
    np.testing.assert_array_equal(private.decision_function(X), exact.decision_function(X))
    assert not hasattr(exact, "ledger_")


def test_a_model_fitted_again_forgets_its_ledger_and_its_diagnostics() -> None:
    model = fit(diagnostics=True)
    model.set_params(epsilon=math.inf, diagnostics=False).fit(X, Y)
    assert set(vars(model)) == set(vars(fit(epsilon=math.inf)))
    assert "rademacher_bound" not in model.figures_
    model.set_params(epsilon=1.0).fit(X, Y)
    assert model.ledger_ == fit().ledger_
    with pytest.raises(ValueError, match="rounds must be"):
        model.set_params(rounds=0).fit(X, Y)
    assert not hasattr(model, "ledger_")


def test_a_tiny_epsilon_is_a_blind_choice() -> None:
    columns = [
        fit(epsilon=1e-6, rounds=1, random_state=s).hypotheses_[0].columns for s in range(60)
    ]
    assert len({tuple(c) for c in columns}) > 8


@BASES
def test_only_the_seed_decides(base: str) -> None:
    first, second, third = (
        fit(base, epsilon=0.2, random_state=s).decision_function(X) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


def test_scores_are_the_mean_vote_and_decide_the_class() -> None:
    model = fit(rounds=5, epsilon=5.0)
    scores = model.decision_function(X)
    assert set(np.unique(scores)) <= {-1.0, -0.6, -0.2, 0.2, 0.6, 1.0}
    np.testing.assert_array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    assert model.score(X, Y) > 0.7


def test_reads_that_are_not_paid_for_are_named() -> None:
    domain = Domain((CategoricalFeature("a", ("b",)),), ("no", "yes"), ("categories of a",))
    model = fit(random_state=None, diagnostics=True, domain=domain)
    assert model.ledger_.unaccounted == [
        "categories of a",
        "advantages and margins on the training rows, and the bound made of them (diagnostics)",
    ]
    assert not model.ledger_.holds
    assert model.edges_.shape == (9,)


@pytest.mark.parametrize("estimator", [OneRule, TopDownTree])
def test_single_learners_name_the_parameters_that_they_take(estimator: type[OneRule]) -> None:
    described = re.search(r"Parameters are (.*?),\s+which", str(estimator.__doc__), re.DOTALL)
    assert described is not None
    assert set(re.findall(r"`(\w+)`", described[1])) == set(estimator().get_params())


@BASES
def test_exact_advantages_are_not_there_unless_asked_for(base: str) -> None:
    model = fit(base)
    assert not hasattr(model, "edges_")
    held = [np.asarray(v).size for v in vars(model).values() if isinstance(v, np.ndarray)]
    assert max(held) < N


def test_votes_are_the_model() -> None:
    frame = pd.DataFrame({"a": RNG.choice(["x", "y", "z"], N), "b": RNG.choice(["u", "v"], N)})
    domain = Domain(
        (CategoricalFeature("a", ("x", "y", "z")), CategoricalFeature("b", ("u", "v"))), ("0", "1")
    )
    encoded = BooleanEncoder(domain).transform(frame)
    y = ((frame["a"] == "y") | (frame["b"] == "u") & (RNG.random(N) < 0.5)).to_numpy().astype(int)
    model = LazyBBClassifier(rounds=7, epsilon=2.0, random_state=0).fit(encoded, y)
    votes = model.votes_
    assert tuple(votes.loc[0, ["feature", "value"]]) == ("a", "y")
    scores = np.zeros(N)
    for row in votes.itertuples():
        value = np.ones(N) if row.feature == "(constant)" else encoded[row.feature][row.value]
        scores += row.votes * (2 * np.asarray(value, dtype=float) - 1)
    np.testing.assert_allclose(scores / 7, model.decision_function(encoded))
    assert model.figures_["n_columns"] == (votes["feature"] != "(constant)").sum()
    signed = {(rule.column, rule.sign) for rule in model.hypotheses_ if rule.column is not None}
    assert model.figures_["n_features"] == len(signed)
    assert model.figures_["pct_features"] == 100 * model.figures_["n_features"] / 5


def test_a_column_that_votes_both_ways_counts_twice_among_features() -> None:
    noise = LazyBBClassifier(rounds=60, epsilon=0.01, random_state=0).fit(X, Y)
    assert noise.figures_["n_columns"] == X.shape[1] < noise.figures_["n_features"]
    trees = LazyBBClassifier("topdown", rounds=20, epsilon=0.01, random_state=0).fit(X, Y)
    assert trees.figures_["n_columns"] == trees.figures_["n_features"] == X.shape[1]


def test_trees_have_no_table_of_votes() -> None:
    with pytest.raises(AttributeError, match="trees are in hypotheses_"):
        _ = fit("topdown").votes_
    assert fit().column_names_[3] == ("x3", "1")


def test_a_single_rule_and_a_single_tree_see_equal_weights() -> None:
    rule = OneRule(epsilon=1.0, random_state=None).fit(X, Y)
    assert rule.ledger_.entries[0].sensitivity == pytest.approx(1 / N)
    assert rule.ledger_.holds
    best = max(np.mean(np.where(X[:, j], "yes", "no") == Y) for j in range(12))
    assert OneRule(epsilon=math.inf).fit(X, Y).score(X, Y) == best
    assert TopDownTree(splits=8, epsilon=math.inf).fit(X, Y).score(X, Y) > best
    assert TopDownTree(epsilon=3.0, random_state=None).fit(X, Y).ledger_.spent_epsilon() == 3.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"base": "2r"}, "base must be one of '1r', 'topdown', got '2r'"),
        ({"rounds": 0}, "rounds must be an integer of at least 1"),
        ({"density": 1.2}, "density must be a number above 0 and at most 1"),
        ({"learning_rate": -1}, "learning_rate must be a finite number of at least 0"),
        ({"epsilon": 0}, "epsilon must be a positive number, or math.inf"),
        ({"composition": "zcdp"}, "'zcdp' needs a delta between 0 and 1, got 0.0"),
        ({"calibration": "best"}, "calibration must be one of 'tight', 'paper', 'code'"),
        ({"margin": "x"}, "margin must be one of 'signed', 'agreements'"),
        ({"splits": 0}, "splits must be an integer of at least 1"),
        ({"label_share": 1.0}, "label_share must lie strictly between 0 and 1"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(**params)


def test_wrong_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="takes Boolean columns, 0 or 1"):
        LazyBBClassifier().fit(X + 0.5, Y)
    with pytest.raises(ValueError, match="y must hold both labels"):
        LazyBBClassifier().fit(X, np.ones(N))
    with pytest.raises(ValueError, match="12 features"):
        fit().predict(X[:, :3])


@pytest.mark.parametrize("model", [LazyBBClassifier("topdown", rounds=3), OneRule(), TopDownTree()])
def test_a_clone_has_the_same_parameters(model: LazyBBClassifier) -> None:
    assert clone(model).get_params() == model.get_params()


def test_adult_at_epsilon_one(data_dir: Path) -> None:
    adult = load("adult", data_dir, online=False)
    assert adult.domain is not None
    encoded = BooleanEncoder(adult.domain).transform(adult.X)
    params = {"rounds": 39, "learning_rate": 0.45, "density": 0.35}
    private = LazyBBClassifier(**params, random_state=0).fit(encoded, adult.y)
    exact = LazyBBClassifier(**params, epsilon=math.inf).fit(encoded, adult.y)
    rule = OneRule(epsilon=math.inf).fit(encoded, adult.y)
    assert rule.score(encoded, adult.y) < 0.81 < private.score(encoded, adult.y)
    assert private.score(encoded, adult.y) < exact.score(encoded, adult.y) < 0.85
