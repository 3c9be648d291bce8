"""The paired test, its error rates, wins, and adjustment for many rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.judge.comparing import (
    compare_methods,
    holm,
    overlap_of,
    pair_results,
    paired_test,
    sign_test,
    signed_rank_test,
)
from dprepro.results.folder import read_results
from tests.report.journals import records, write

RNG = np.random.default_rng(11)
A, B = "dp-ebm-plus", "dp-ebm-gdp"


def journal(folder, name, *groups):
    write(folder, name, [record for group in groups for record in group])


def compared(folder, *arguments, **options):
    return compare_methods(read_results(folder), A, B, *arguments, **options)


class TestPairedTest:
    def test_without_overlap_it_is_students_paired_test(self):
        x, y = RNG.normal(size=(2, 12))
        found = paired_test(list(x - y), 0.0)
        expected = stats.ttest_rel(x, y)
        interval = expected.confidence_interval(0.95)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-12)
        assert found.freedom == expected.df == 11

    def test_the_correction_adds_test_rows_by_training_rows_to_the_variance(self):
        differences = list(RNG.normal(0.01, 0.02, size=10))
        found = paired_test(differences, 0.25)
        sd = np.std(differences, ddof=1)
        assert found.sd == pytest.approx(sd)
        assert found.standard_error == pytest.approx(sd * math.sqrt(1 / 10 + 0.25))
        t = np.mean(differences) / found.standard_error
        assert found.p == pytest.approx(2 * stats.t(9).sf(abs(t)))
        reach = stats.t(9).ppf(0.975) * found.standard_error
        assert found.high - found.mean == pytest.approx(reach)
        assert found.mean - found.low == pytest.approx(reach)

    def test_rounding_is_no_spread(self):
        differences = [(k + 1) / 7000 - k / 7000 for k in (10, 700, 3333, 5600, 6998)]
        assert len(set(differences)) > 1
        assert paired_test(differences, 0.25).p is None
        assert paired_test([0.0, 1e-4, 0.0], 0.25).p is not None

    @pytest.mark.parametrize("difference", [0.0, 0.01])
    def test_differences_without_spread_have_no_test(self, difference):
        found = paired_test([difference] * 5, 0.25)
        assert (found.mean, found.sd, found.p) == (difference, 0.0, None)


def rejections(overlap, shift=0.0, trials=600, rows=100, splits=10, folds=False):
    """Return how often equal methods are called different at 5 %, by an overlap.

    Two methods each predict a column by its mean over the training rows; their metric is the mean
    squared error on the test rows. The columns have one distribution, but for `shift`.
    """
    rng = np.random.default_rng(5)
    data = rng.normal(size=(trials, 2, rows))
    data[:, 1] *= 1 + shift
    differences = []
    order = rng.permutation(rows)
    for split in range(splits):
        if not folds:
            order = rng.permutation(rows)
        size = rows // splits if folds else rows // 5
        start = split * size if folds else 0
        test, train = order[start : start + size], np.delete(order, np.s_[start : start + size])
        centre = data[:, :, train].mean(axis=2, keepdims=True)
        losses = ((data[:, :, test] - centre) ** 2).mean(axis=2)
        differences.append(losses[:, 0] - losses[:, 1])
    found = [paired_test(list(trial), overlap) for trial in np.array(differences).T]
    return np.mean([test.p < 0.05 for test in found])


class TestErrorRates:
    def test_equal_methods_are_rarely_called_different_on_random_splits(self):
        assert rejections(0.25) <= 0.07
        assert rejections(0.0) > 0.2  # what the correction is for

    def test_equal_methods_are_rarely_called_different_on_folds(self):
        assert rejections(1 / 9, folds=True) <= 0.07

    def test_a_true_difference_is_found(self):
        assert rejections(0.25, shift=1.0) > 0.9


class TestHolm:
    def test_by_hand(self):
        assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
        assert holm([0.9, 0.8]) == [1.0, 1.0]
        assert holm([]) == []

    def test_one_false_rejection_in_all_is_as_rare_as_stated(self):
        p_values = RNG.random((2000, 8))
        found = [min(holm(list(row))) < 0.05 for row in p_values]
        assert 0.035 < np.mean(found) < 0.065

    def test_a_single_test_is_not_adjusted(self):
        assert holm([0.04]) == [0.04]


class TestRows:
    def test_a_row_has_the_corrected_test_of_its_paired_differences(self, tmp_path):
        ours, theirs = RNG.normal(0.9, 0.02, 6), RNG.normal(0.88, 0.02, 6)
        journal(tmp_path, "c", records(ours, A, 1.0), records(theirs, B, 1.0))
        (row,) = compared(tmp_path).rows
        expected = paired_test(list(ours - theirs), 0.2 / 0.8)
        assert row.test.p == pytest.approx(expected.p)
        assert row.test.mean == pytest.approx(np.mean(ours - theirs))
        assert row.p_holm == row.test.p
        assert row.won == np.sum(ours > theirs)
        assert (row.tied, row.lost) == (0, 6 - row.won)

    @pytest.mark.parametrize(
        ("keys", "overlap"),
        [
            ({"test_share": 0.5}, 1.0),
            ({"test_share": 1 / 10, "evaluation": "folds"}, 1 / 9),
            ({"test_share": 0.0, "evaluation": "test-set"}, 0.0),
        ],
    )
    def test_the_overlap_is_that_of_the_evaluation(self, tmp_path, keys, overlap):
        journal(
            tmp_path, "c",
            records([0.9, 0.8], A, 1.0, **keys), records([0.8, 0.9], B, 1.0, **keys),
        )  # fmt: skip
        (pair,) = pair_results(read_results(tmp_path), A, B).pairs
        assert overlap_of(pair) == pytest.approx(overlap)

    @pytest.mark.parametrize(("metric", "better"), [("auc", A), ("rmse", B), ("brier_score", B)])
    def test_better_goes_by_the_metric(self, tmp_path, metric, better):
        noise = RNG.normal(0, 0.001, (2, 8))
        journal(
            tmp_path, "c",
            records(0.9 + noise[0], A, 1.0, metric), records(0.8 + noise[1], B, 1.0, metric),
        )  # fmt: skip
        (row,) = compared(tmp_path, metric).rows
        assert row.better == better
        assert (row.won, row.lost) == ((8, 0) if better == A else (0, 8))

    def test_many_rows_make_a_difference_harder_to_show(self, tmp_path):
        rng = np.random.default_rng(2)
        groups = []
        for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
            shift = 0.02 if epsilon == 1.0 else 0.0
            noise = rng.normal(0, 0.01, (2, 10))
            groups += [
                records(0.9 + shift + noise[0], A, epsilon), records(0.9 + noise[1], B, epsilon)
            ]  # fmt: skip
        journal(tmp_path, "c", *groups)
        rows = compared(tmp_path).rows
        (alone,) = compared(tmp_path, epsilons=[1.0]).rows
        found = next(row for row in rows if row.pair.epsilon == 1.0)
        assert len(rows) == 5
        assert alone.p_holm == alone.test.p == found.test.p
        assert found.p_holm == pytest.approx(5 * found.test.p)

    def test_equal_values_are_ties_and_are_not_tested(self, tmp_path):
        journal(tmp_path, "c", records([0.9, 0.8], A, 1.0), records([0.9, 0.8], B, 1.0))
        (row,) = compared(tmp_path).rows
        assert (row.won, row.tied, row.lost) == (0, 2, 0)
        assert (row.p_holm, row.better) == (None, "")

    @pytest.mark.parametrize("metric", ["auc", "rmse"])
    def test_last_bits_of_scores_are_no_difference(self, tmp_path, metric):
        scores = RNG.normal(0.9, 0.01, 10)
        near = [bits_above(score, 1 + split % 2) for split, score in enumerate(scores)]
        journal(tmp_path, "c", records(near, A, 1.0, metric), records(scores, B, 1.0, metric))
        (row,) = compared(tmp_path, metric).rows
        assert (row.won, row.tied, row.lost) == (0, 10, 0)
        assert (row.test.mean, row.test.p, row.p_holm, row.better) == (0.0, None, None, "")

    def test_last_bits_of_scores_are_no_spread_of_a_small_difference(self, tmp_path):
        scores = np.linspace(0.2, 0.9, 10)
        journal(tmp_path, "c", records(scores + 1e-8, A, 1.0), records(scores, B, 1.0))
        (row,) = compared(tmp_path).rows
        assert len({ours - theirs for ours, theirs in row.pair.values}) > 1
        assert (row.won, row.test.sd, row.test.p) == (10, 0.0, None)

    def test_one_split_that_differs_is_tested(self, tmp_path):
        scores = RNG.normal(0.9, 0.01, 10)
        other = [bits_above(scores[0], 2), scores[1] - 1e-7, *scores[2:]]
        journal(tmp_path, "c", records(other, A, 1.0), records(scores, B, 1.0))
        (row,) = compared(tmp_path).rows
        assert (row.won, row.tied, row.lost) == (0, 9, 1)
        assert row.test.p == paired_test([0.0, other[1] - scores[1], *[0.0] * 8], 0.25).p > 0.3


DATASETS = ("adult", "telco", "credit", "shop", "bank", "mushroom")


def bits_above(score, count):
    for _ in range(count):
        score = math.nextafter(score, math.inf)
    return score


def over_datasets(folder, shifts, metric="auc", **keys):
    groups = []
    for dataset, shift in zip(DATASETS, shifts, strict=False):
        base = RNG.normal(0.8, 0.01, 4)
        groups += [
            records(base + shift, A, 1.0, metric, dataset=dataset, **keys),
            records(base, B, 1.0, metric, dataset=dataset, **keys),
        ]
    journal(folder, "c", *groups)
    return compared(folder).across


class TestAcrossDatasets:
    @pytest.mark.parametrize("count", [1, 2, 5, 12, 40])
    def test_both_tests_are_scipys(self, count):
        differences = RNG.normal(0.3, 1, count)
        expected = stats.wilcoxon(differences, method="exact").pvalue
        assert signed_rank_test(differences.tolist()) == pytest.approx(expected)
        won = int((differences > 0).sum())
        assert sign_test(won, count - won) == pytest.approx(stats.binomtest(won, count).pvalue)

    def test_ranks_that_tie_are_shared(self):
        differences = [0.1, 0.1, -0.1, 0.3, 0.3, -0.2, 0.4]
        every = stats.wilcoxon(differences, method=stats.PermutationMethod()).pvalue
        assert signed_rank_test(differences) == pytest.approx(every)

    def test_wins_and_both_tests_are_scipys(self, tmp_path):
        shifts = [0.01, 0.02, 0.03, 0.04, -0.005, 0.06]
        (found,) = over_datasets(tmp_path, shifts)
        assert (found.won, found.tied, found.lost) == (5, 0, 1)
        assert found.p_sign == pytest.approx(2 * (1 + 6) / 2**6)
        assert found.p_wilcoxon == pytest.approx(stats.wilcoxon(shifts).pvalue)

    def test_errors_in_units_of_the_target_have_no_ranks(self, tmp_path):
        (found,) = over_datasets(tmp_path, [0.01, 0.02, 0.03], "rmse")
        assert (found.won, found.lost) == (0, 3)  # lower is better
        assert found.p_sign == pytest.approx(0.25)
        assert found.p_wilcoxon is None

    def test_ties_take_no_part(self, tmp_path):
        (found,) = over_datasets(tmp_path, [0.0, 0.02, 0.03])
        assert (found.won, found.tied, found.lost) == (2, 1, 0)
        assert found.p_sign == pytest.approx(0.5)
        (none,) = over_datasets(tmp_path, [0.0, 0.0])
        assert (none.p_sign, none.p_wilcoxon) == (None, None)

    def test_last_bits_of_a_mean_difference_are_a_tie(self, tmp_path):
        """Splits won and lost by as much leave last bits of their mean."""
        shifts = np.array([0.1, 0.2, -0.3])
        base = np.array([0.5, 0.5, 0.5])
        assert 0 < abs(math.fsum(base + shifts - base)) < 1e-15
        groups = [
            records(scores, label, 1.0, dataset=dataset)
            for dataset in DATASETS[:2]
            for scores, label in ((base + shifts, A), (base, B))
        ]
        journal(tmp_path, "c", *groups)
        (found,) = compared(tmp_path).across
        assert (found.won, found.tied, found.lost) == (0, 2, 0)
        assert (found.p_sign, found.p_wilcoxon) == (None, None)

    def test_one_dataset_and_stand_ins_do_not_count(self, tmp_path):
        assert over_datasets(tmp_path, [0.01]) == ()
        assert over_datasets(tmp_path, [0.01, 0.02], data_fingerprint=f"{SYNTHETIC_PREFIX}x") == ()
