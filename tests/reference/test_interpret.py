"""DP-EBM and EBM beside interpret-core's, the library of the paper's authors.

Both add noise of their own, so they agree in the mean over five splits: the means of AUROC or RMSE
may differ by no more than three standard errors of the paired differences plus a small constant.
`test_criterion_tells_compositions_apart` shows that the criterion is not met by just anything.
"""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score, root_mean_squared_error

from dprepro.data.dataset import load
from dprepro.data.domain import Domain, NumericFeature
from dprepro.experiment.splits import split_rows
from dprepro.methods.dp_ebm.ebm import EBMClassifier
from dprepro.methods.dp_ebm.estimator import DPEBMClassifier, DPEBMRegressor
from dprepro.privacy.composition import classic_sigma, gdp_sigma

privacy = pytest.importorskip("interpret.privacy")

DELTA = 1e-6
SPLITS = 5
COMPOSITIONS = ("gdp", "classic")


def interpret_settings(domain: Domain) -> dict:
    """Tell interpret-core the domain and the defaults that are ours."""
    numeric = [isinstance(feature, NumericFeature) for feature in domain.features]
    return {
        "feature_types": ["continuous" if is_numeric else "nominal" for is_numeric in numeric],
        "privacy_bounds": {
            k: (f.lower, f.upper) for k, f in enumerate(domain.features) if numeric[k]
        },
        "max_bins": 33,  # its binning uses one less
        "delta": DELTA,
        "n_jobs": 1,
    }


def fit(model, X, y):
    with warnings.catch_warnings():
        # It warns of fixed seeds and of column types and bounds taken from the data.
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def assert_agree(ours: list[float], theirs: list[float], slack: float) -> None:
    difference = np.subtract(ours, theirs)
    allowed = slack + 3 * difference.std(ddof=1) / math.sqrt(difference.size)
    assert abs(difference.mean()) <= allowed, f"{ours} beside {theirs}"


@pytest.fixture(scope="module")
def adult(data_dir):
    """Return a function from library, composition and epsilon to the AUROC of each split."""
    dataset = load("adult", data_dir)
    # Leaves hold neighbouring categories, so both have to list them in one order: the card's.
    domain, X, y = dataset.domain, dataset.X, dataset.y

    @cache
    def scores(library: str, composition: str, epsilon: float) -> list[float]:
        return [auc(library, composition, epsilon, number) for number in range(SPLITS)]

    def auc(library: str, composition: str, epsilon: float, number: int) -> float:
        train, test = split_rows(len(y), 0.2, 0, "adult", number)
        if library == "dprepro":
            model = DPEBMClassifier(
                epsilon, DELTA, composition=composition, domain=domain, random_state=number
            )
        else:
            model = privacy.DPExplainableBoostingClassifier(
                epsilon=epsilon, composition=composition, random_state=number,
                **interpret_settings(domain),
            )  # fmt: skip
        fit(model, X.iloc[train], y[train])
        return roc_auc_score(y[test], model.predict_proba(X.iloc[test])[:, 1])

    return scores


@pytest.mark.parametrize(("composition", "epsilon"), [("gdp", 0.5), ("classic", 4.0)])
def test_adult_agrees(adult, composition, epsilon):
    ours = adult("dprepro", composition, epsilon)
    theirs = adult("interpret", composition, epsilon)
    assert_agree(ours, theirs, slack=0.001)
    assert min(ours) > 0.8


def test_adult_agrees_closely_when_noise_is_small(adult):
    # What is left is the random cuts.
    apart = np.subtract(adult("dprepro", "gdp", 1e5), adult("interpret", "gdp", 1e5))
    assert abs(apart.mean()) < 0.001
    assert np.abs(apart).max() < 0.003


def test_criterion_tells_compositions_apart(adult):
    # 2.5 times the noise at the same nominal epsilon: nothing that the criterion should let pass.
    with pytest.raises(AssertionError, match="beside"):
        assert_agree(adult("dprepro", "classic", 0.5), adult("interpret", "gdp", 0.5), slack=0.001)


# --- regression ---------------------------------------------------------------------------------

ROWS = 4000
REGRESSION_DOMAIN = Domain(tuple(NumericFeature(f"x{k}", -1.0, 1.0) for k in range(4)), (-3.0, 5.0))


def additive_target(X: np.ndarray) -> np.ndarray:
    """A step, a wave, a slope, and a feature without effect."""
    return np.where(X[:, 0] > 0.2, 2.0, 0.0) + np.sin(3 * X[:, 1]) + 1.5 * X[:, 2]


def regression_rows(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (ROWS, 4))
    y = np.clip(additive_target(X) + rng.normal(0, 0.3, ROWS), *REGRESSION_DOMAIN.target)
    # Both ends occur, so that interpret-core reads the same range from the rows.
    y[:2] = REGRESSION_DOMAIN.target
    return pd.DataFrame(X, columns=[f.name for f in REGRESSION_DOMAIN.features]), y


def regressors(composition: str, epsilon: float, seed: int) -> tuple:
    lower, upper = REGRESSION_DOMAIN.target
    return (
        DPEBMRegressor(
            epsilon, DELTA, composition=composition, domain=REGRESSION_DOMAIN, random_state=seed
        ),
        privacy.DPExplainableBoostingRegressor(
            epsilon=epsilon, composition=composition, random_state=seed,
            privacy_target_min=lower, privacy_target_max=upper,
            **interpret_settings(REGRESSION_DOMAIN),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(("composition", "epsilon"), [("gdp", 8.0), ("classic", 1.0)])
def test_regression_agrees(composition, epsilon):
    errors: tuple[list, list] = ([], [])
    for seed in range(SPLITS):
        X, y = regression_rows(seed)
        X_test, _ = regression_rows(100 + seed)
        truth = additive_target(X_test.to_numpy())
        for model, into in zip(regressors(composition, epsilon, seed), errors, strict=True):
            into.append(root_mean_squared_error(truth, fit(model, X, y).predict(X_test)))
    assert_agree(*errors, slack=0.01)


def test_regression_shapes_agree_when_noise_is_small():
    X, y = regression_rows(0)
    ours, theirs = (fit(model, X, y) for model in regressors("gdp", 1e4, 0))
    grid = pd.DataFrame(np.linspace(-0.99, 0.99, 200)[:, None] * np.ones(4), columns=X.columns)
    # One feature at a time, the others held in the middle.
    for name in X.columns:
        rows = grid.assign(**{other: 0.0 for other in X.columns if other != name})
        apart = ours.predict(rows) - theirs.predict(rows)
        spread = np.ptp(theirs.predict(rows))
        # What the others add in the middle depends on where noise lets their bins end.
        assert apart.std() < 0.02 + 0.1 * spread


# --- noise --------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_noise_scales_agree(composition, epsilon):
    X, y = regression_rows(0)
    lower, upper = REGRESSION_DOMAIN.target
    ours, theirs = (fit(model, X, y) for model in regressors(composition, epsilon, 0))
    binning, boosting = ours.ledger_.entries
    assert binning.scale == pytest.approx(theirs.noise_scale_binning_, rel=1e-6)
    # Ours is for targets divided by their range.
    assert boosting.scale * (upper - lower) == pytest.approx(theirs.noise_scale_boosting_, rel=1e-6)
    labels = (y > 1).astype(int)
    ours = DPEBMClassifier(
        epsilon, DELTA, composition=composition, domain=Domain.observe(X, labels, "binary"),
        n_epochs=20, random_state=0,
    )  # fmt: skip
    theirs = privacy.DPExplainableBoostingClassifier(
        epsilon=epsilon, composition=composition, max_rounds=20, random_state=0,
        **interpret_settings(REGRESSION_DOMAIN),
    )  # fmt: skip
    binning, boosting = fit(ours, X, labels).ledger_.entries
    fit(theirs, X, labels)
    assert binning.scale == pytest.approx(theirs.noise_scale_binning_, rel=1e-6)
    assert boosting.scale == pytest.approx(theirs.noise_scale_boosting_, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 4.0, 8.0])
@pytest.mark.parametrize("queries", [1, 14, 9000])
def test_calibrations_agree(queries, epsilon, delta):
    from interpret.utils._privacy import calc_classic_noise_multi, calc_gdp_noise_multi

    assert classic_sigma(queries, epsilon, delta) == pytest.approx(
        calc_classic_noise_multi(queries, epsilon, delta, 1.0), rel=1e-9
    )
    # Its difference of normal distribution functions cancels digits where delta is small.
    assert gdp_sigma(queries, epsilon, delta) == pytest.approx(
        calc_gdp_noise_multi(queries, epsilon, delta), rel=1e-6
    )


# --- without privacy ----------------------------------------------------------------------------


def test_plain_ebm_comes_as_far(data_dir):
    from interpret.glassbox import ExplainableBoostingClassifier

    dataset = load("adult", data_dir)
    rows = np.random.default_rng(0).permutation(len(dataset.y))
    train, test = rows[:8000], rows[8000:20000]
    X, y = dataset.X, dataset.y
    ours = EBMClassifier(outer_bags=2, random_state=0)
    theirs = ExplainableBoostingClassifier(
        interactions=0, outer_bags=2, n_jobs=1, random_state=0,
    )  # fmt: skip
    ours_auc, theirs_auc = (
        roc_auc_score(y[test], fit(m, X.iloc[train], y[train]).predict_proba(X.iloc[test])[:, 1])
        for m in (ours, theirs)
    )
    assert theirs_auc > 0.9
    assert ours_auc == pytest.approx(theirs_auc, abs=0.003)
