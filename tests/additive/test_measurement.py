"""Figures from noisy counts of held-out rows: intervals hold what is true as often as said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from dprepro.additive.file import model_from_json, model_to_json
from dprepro.additive.measurement import (
    Measurement,
    ScoreCounts,
    Sums,
    area_under_curve,
    calibration,
    residual_bound,
    score_edges,
    sums_of,
)
from dprepro.runtime.errors import DpreproError
from tests.additive import small
from tests.privacy.measured import model

EDGES = [0.4 * k for k in range(-8, 5)]
RUNS = 150
LEAST = 0.90
"""Of 150 intervals of 95%, fewer than nine in ten hold the truth with a probability of 0.5%."""


def drawn(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    scores = rng.normal(-1.0, 1.2, rows)
    return scores, rng.random(rows) < expit(scores)


def counted(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    counts = np.zeros((2, len(EDGES) + 1), int)
    np.add.at(counts, (y.astype(int), np.searchsorted(EDGES, scores, side="right")), 1)
    return counts


def noisy(counts: np.ndarray, noise: float, rng: np.random.Generator) -> ScoreCounts:
    found = np.rint(counts + rng.normal(0, noise, counts.shape)).astype(int)
    return ScoreCounts(edges=EDGES, counts=found.tolist(), noise=noise)


def sums(scores: np.ndarray, y: np.ndarray, noise: float, rng: np.random.Generator) -> Sums:
    wrong = (scores > 0) != y
    parts = [part.sum() - y.size / 2 for part in (y, expit(scores), wrong)]
    rows = y.size + rng.normal(0, noise)
    return Sums(float(rows), np.array(parts) + rng.normal(0, noise, 3), noise)


@pytest.mark.parametrize(("rows", "noise"), [(1500, 2.0), (4000, 15.0)])
def test_intervals_hold_what_is_true_of_all_rows(rows: int, noise: float) -> None:
    rng = np.random.default_rng(3)
    scores, y = drawn(rng, 400_000)
    bins = np.searchsorted(EDGES, scores, side="right")
    true = (roc_auc_score(y, scores), ((scores > 0) != y).mean(), (y - expit(scores)).mean())
    rates = [y[bins == k].mean() for k in range(len(EDGES) + 1)]
    held = np.zeros((RUNS, 3))
    of_bins = []
    for run in range(RUNS):
        some = rng.integers(0, y.size, rows)
        found = noisy(counted(scores[some], y[some]), noise, rng)
        of_all = sums(scores[some], y[some], noise, rng)
        estimates = (area_under_curve(found), of_all.share(2), of_all.difference())
        held[run] = [e.lower <= value <= e.upper for e, value in zip(estimates, true, strict=True)]
        of_bins += [
            each.observed.lower <= rate <= each.observed.upper
            for each, rate in zip(calibration(found), rates, strict=True)
            if not each.observed.says_nothing
        ]
    assert (held.mean(axis=0) >= LEAST).all(), held.mean(axis=0)
    assert len(of_bins) > RUNS
    assert np.mean(of_bins) >= LEAST


def test_without_noise_figures_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(4)
    scores, y = drawn(rng, 20_000)
    area = area_under_curve(noisy(counted(scores, y), 1e-9, rng))
    assert area.value == pytest.approx(roc_auc_score(y, np.searchsorted(EDGES, scores)))
    assert area.value == pytest.approx(roc_auc_score(y, scores), abs=0.004)  # rows of a bin: half
    assert 0.01 < area.upper - area.lower < 0.03
    found = sums(scores, y, 1e-9, rng)
    assert found.share(2).value == pytest.approx(((scores > 0) != y).mean())
    assert found.difference().value == pytest.approx((y - expit(scores)).mean())


def residuals_of(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    drawn: dict[str, Any] = {
        "normal": lambda: rng.normal(0.2, 1.0, n),
        "heavy": lambda: rng.standard_t(2, n),
        "skewed": lambda: np.exp(rng.normal(0, 1, n)) - 1,
        "two sizes": lambda: rng.normal(0, np.where(rng.random(n) < 0.05, 4.0, 0.2)),
    }
    return np.asarray(drawn[kind]())


@pytest.mark.parametrize("kind", ["normal", "heavy", "skewed", "two sizes"])
@pytest.mark.parametrize(("rows", "noise"), [(300, 5.0), (2000, 20.0)])
def test_residuals_have_their_mean_and_their_root_mean_square(
    kind: str, rows: int, noise: float
) -> None:
    """As they are clipped: by twice the size that 95% of them do not exceed."""
    rng = np.random.default_rng(5)
    many = residuals_of(kind, 400_000, rng)
    bound, held = 2 * float(np.quantile(np.abs(many), 0.95)), np.zeros((RUNS, 2))
    many = np.clip(many, -bound, bound)
    mean, root = many.mean(), np.sqrt((many**2).mean())
    for run in range(RUNS):
        residuals = np.clip(residuals_of(kind, rows, rng), -bound, bound) / bound
        parts = np.array([residuals.sum() / 2, (residuals**2).sum() - rows / 2])
        found = Sums(rows + rng.normal(0, noise), parts + rng.normal(0, noise, 2), noise)
        pairs = ((found.mean_residual(), mean), (found.root_mean_square(), root))
        held[run] = [e.lower * bound <= true <= e.upper * bound for e, true in pairs]
    assert (held.mean(axis=0) >= LEAST).all(), held.mean(axis=0)
    exact = Sums(float(rows), parts, 1e-9)
    assert exact.root_mean_square().value == pytest.approx(np.sqrt((residuals**2).mean()))
    assert exact.mean_residual().value == pytest.approx(residuals.mean())


def test_of_few_rows_nothing_is_said() -> None:
    few = Sums(39.0, np.zeros(3), 5.0)
    assert few.smallest == pytest.approx(39.2, abs=0.01)
    assert few.is_hidden
    assert few.share(2) == (None, 0.0, 1.0)
    assert few.difference() == (None, -1.0, 1.0)
    assert not few._replace(rows=40.0).share(2).says_nothing
    empty = ScoreCounts(edges=[0.0], counts=[[3, -2], [1, 4]], noise=9.0)
    assert area_under_curve(empty) == (None, 0.0, 1.0)
    assert all(each.observed.says_nothing for each in calibration(empty))
    assert all(each.agrees for each in calibration(empty))


def test_noise_that_leads_out_of_the_range_leaves_its_end_and_a_whole_interval() -> None:
    """From far beyond as from the end itself."""
    far, at_end = (
        Sums(1000.0, np.array([centred, 0.0, 0.0]), 20.0).share(0) for centred in (-620.0, -500.0)
    )
    assert far == at_end
    assert (far.value, far.lower) == (0.0, 0.0)
    assert 1.96 * 20 / 1000 < far.upper < 1.5 * 1.96 * 20 / 1000


def test_intervals_hold_a_share_of_nearly_none() -> None:
    """As of a class that is hardly ever predicted wrongly."""
    rng, noise, rows = np.random.default_rng(6), 10.0, 400
    for share in (0.0, 0.01):
        wrong = rng.binomial(rows, share, 2000) - rows / 2 + rng.normal(0, noise, 2000)
        sizes = rows + rng.normal(0, noise, 2000)
        found = [
            Sums(float(size), np.array([part]), noise).share(-1)
            for size, part in zip(sizes, wrong, strict=True)
        ]
        assert np.mean([e.lower <= share <= e.upper for e in found]) >= 0.96
        assert min(e.upper for e in found) > noise / rows


def test_edges_follow_from_the_model_and_hold_the_middle() -> None:
    edges = score_edges(model("binary"))
    assert 0.0 in edges
    assert edges == sorted(set(edges))
    widths = np.diff(edges)
    assert 15 <= len(edges) <= 24
    assert widths.max() == pytest.approx(widths.min())


def test_residuals_are_clipped_by_what_the_model_says_of_them() -> None:
    known = small.model("regression", intervals=small.INTERVALS)
    assert residual_bound(known, (-1.0, 2.0)) == 1.0  # twice 1/2
    assert residual_bound(known, (0.0, 0.5)) == 0.5
    assert residual_bound(small.model("regression"), (-1.0, 2.0)) == 3.0


def counts(intercept: float) -> Any:
    """Return a model of counts whose sums are `intercept` for all rows."""
    made = model("counts")
    made.intercept_ = intercept
    made.shape_functions_ = [np.zeros_like(values) for values in made.shape_functions_]
    return made


def test_residuals_of_counts_are_clipped_by_what_the_model_predicts() -> None:
    assert residual_bound(counts(np.log(4.0)), (0.0, 100.0)) == pytest.approx(4 + 2 * 2 + 2)
    assert residual_bound(counts(-50.0), (0.0, 100.0)) == pytest.approx(2)  # a rare count is 1
    for intercept in (np.log(99.0), 600.0):  # none is further off than the largest count
        assert residual_bound(counts(intercept), (0.0, 100.0)) == 100
    made = model("counts")
    made.intercept_, made.shape_functions_[1:] = 0.0, [np.zeros(4), np.zeros(2)]
    made.shape_functions_[0], made.bin_counts_[0] = (
        np.array([-1.0, 1.0, 5.0, 5.0]),
        np.array([10.0, 10.0, 0.0, -3.0]),
    )
    high = np.exp(2.0)  # two standard deviations of 1
    assert residual_bound(made, (0.0, 100.0)) == pytest.approx(high + 2 * np.sqrt(high) + 2)


SUMS: dict[str, Any] = {"feature": None, "groups": ["all rows"], "sums": [[2, 1, 1, 1]]}


def measurement(**changes: Any) -> Measurement:
    scores = {"edges": [0.0], "counts": [[1, 2], [3, 4]], "noise": 1.0}
    sums = [{**SUMS, "noise": 1.0}]
    fields = {"about": "", "held_out": 0.2, "scores": scores, "power": -16, "sums": sums}
    return Measurement.model_validate(fields | changes)


def test_sums_are_read_in_rows() -> None:
    (found,) = sums_of(measurement(power=-1), measurement().sums[0])
    assert found.rows == 1.0
    assert found.parts.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scores": {"edges": [1.0, 0.0], "counts": [[1] * 3] * 2, "noise": 1.0}}, "must ascend"),
        ({"scores": {"edges": [0.0], "counts": [[1], [1]], "noise": 1.0}}, "one count more"),
        ({"bound": 1.0}, "scores for two classes, or a bound"),
        ({"sums": [{**SUMS, "sums": [[1, 1]], "noise": 1.0}]}, "every group needs 4 sums"),
        ({"sums": [{**SUMS, "groups": ["a", "b"], "noise": 1.0}]}, "2 groups, but 1 have sums"),
        ({"held_out": 1.0}, "less than 1"),
        ({"power": 3}, "less than or equal to 0"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        measurement(**changes)


def test_a_measurement_is_kept_as_it_is() -> None:
    kept = measurement()
    assert Measurement.model_validate_json(kept.model_dump_json()) == kept
    loaded = small.model("binary", measurement=kept.to_json())
    assert loaded.measurement_ == kept
    assert model_to_json(loaded)["measurement"] == kept.to_json()


def test_a_file_with_a_measurement_of_another_task_is_refused() -> None:
    with pytest.raises(DpreproError, match="scores for two classes, a bound for regression"):
        small.model("regression", measurement=measurement().to_json())
    with pytest.raises(DpreproError, match="neither for several classes"):
        model_from_json(small.several(small.file("binary", measurement=measurement().to_json())))
    with pytest.raises(DpreproError, match=r"measurement\.held_out"):
        small.model("binary", measurement={**measurement().to_json(), "held_out": 2.0})
