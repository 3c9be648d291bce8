"""The paired test, its error rates, wins, and adjustment for many rows.

Which results belong together, and what is refused.
"""

from __future__ import annotations

import math
from dataclasses import replace

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
from dprepro.runtime.errors import DpreproError
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


FIRST, SECOND = "dp-ebm-plus", "dp-ebm-gdp"
THREE = [0.9, 0.8, 0.85]


def results(folder, **journals):
    for name, groups in journals.items():
        write(folder, name, [record for group in groups for record in group])
    return read_results(folder)


def pairs(folder, *options, **journals):
    return pair_results(results(folder, **journals), FIRST, SECOND, *options)


def test_missing_splits_leave_those_that_both_have(tmp_path):
    ours = records(THREE, FIRST, 1.0)
    ours[1] = replace(ours[1], status="failed", metrics={}, message="boom")
    found = pairs(tmp_path, c=[ours, records([0.1, 0.2, 0.3, 0.4], SECOND, 1.0)])
    (pair,) = found.pairs
    assert pair.splits == (0, 2)
    assert pair.values == [(0.9, 0.1), (0.85, 0.3)]


def test_methods_may_be_named_by_label_or_by_method(tmp_path):
    found = results(
        tmp_path,
        c=[records(THREE, "mine", 1.0, method=FIRST), records(THREE, "b 1", 1.0, method=SECOND)],
    )
    assert pair_results(found, "mine", SECOND).pairs == pair_results(found, FIRST, "b 1").pairs


def test_a_method_without_privacy_meets_every_level(tmp_path):
    found = pairs(
        tmp_path,
        c=[
            records(THREE, FIRST, math.inf),
            records(THREE, SECOND, 1.0),
            records(THREE, SECOND, 8.0),
        ],
    )
    assert [pair.epsilon for pair in found.pairs] == [1.0, 8.0]
    assert found.left_out == ()
    (alone,) = pair_results(results(tmp_path), FIRST, SECOND, None, [8.0]).pairs
    assert alone.epsilon == 8.0


def test_levels_of_only_one_method_are_named(tmp_path):
    found = pairs(
        tmp_path,
        c=[records(THREE, FIRST, 1.0), records(THREE, FIRST, 4.0), records(THREE, SECOND, 1.0)],
    )
    assert [pair.epsilon for pair in found.pairs] == [1.0]
    assert found.left_out == (f"adult: only {FIRST} has results at epsilon 4",)


def failed(label, dataset):
    found = records(THREE, label, 1.0, dataset=dataset)
    return [replace(r, status="failed", metrics={}, message="boom") for r in found]


def test_a_dataset_on_which_one_method_failed_is_named(tmp_path):
    lost = [records(THREE, FIRST, 1.0, dataset="telco"), failed(SECOND, "telco")]
    both = [records(THREE, FIRST, 1.0), records(THREE, SECOND, 1.0)]
    found = pairs(tmp_path, c=[*both, *lost])
    assert [pair.dataset for pair in found.pairs] == ["adult"]
    assert found.left_out == (f"telco: no fit of {SECOND} finished (3 failed)",)
    # Nobody tried the second on this one.
    alone = records(THREE, FIRST, 1.0, dataset="credit")
    assert pairs(tmp_path, c=[*both, alone]).left_out == ()
    with pytest.raises(DpreproError, match=rf"no fit of {SECOND} finished \(3 failed\)"):
        pairs(tmp_path, c=[both[0], *lost, records(THREE, SECOND, 1.0, dataset="pol")])


def test_results_of_one_config_go_together(tmp_path):
    found = pairs(
        tmp_path,
        one=[records(THREE, FIRST, 1.0), records(THREE, SECOND, 1.0)],
        two=[records(THREE, SECOND, 1.0, domain="public")],
    )
    (pair,) = found.pairs
    assert pair.second.journals == ("one",)


def test_two_configs_with_the_same_splits_do_as_well(tmp_path):
    found = pairs(
        tmp_path,
        one=[records(THREE, FIRST, 1.0, seed=None)],
        two=[records(THREE, SECOND, 1.0, seed=0, domain="public")],  # a null seed: splits of seed 0
    )
    (pair,) = found.pairs
    assert (pair.first.journals, pair.second.journals) == (("one",), ("two",))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"seed": 2}, r"adult: the splits are not the same: seed differs \(1 and 2\)"),
        ({"test_share": 0.3}, r"test_share differs \(0.2 and 0.3\)"),
        ({"test_share": 0.2, "evaluation": "folds"}, r"evaluation differs \(random and folds\)"),
        ({"data_fingerprint": "other", "dataset": "shop"}, "The rows of shop differ"),
    ],
)
def test_other_splits_are_refused_with_what_differs(tmp_path, keys, message):
    dataset = {"dataset": keys.get("dataset", "adult")}
    with pytest.raises(DpreproError, match=message):
        pairs(
            tmp_path,
            one=[records(THREE, FIRST, 1.0, **dataset)],
            two=[records(THREE, SECOND, 1.0, **keys)],
        )


def test_a_dataset_with_other_splits_is_left_out_by_name(tmp_path):
    found = pairs(
        tmp_path,
        one=[records(THREE, FIRST, 1.0), records(THREE, FIRST, 1.0, dataset="telco")],
        two=[records(THREE, SECOND, 1.0), records(THREE, SECOND, 1.0, dataset="telco", seed=3)],
    )
    assert [pair.dataset for pair in found.pairs] == ["adult"]
    (note,) = found.left_out
    assert note.startswith("telco: the splits are not the same: seed differs (1 and 3)")


@pytest.mark.parametrize("splits", [1, 0])
def test_a_single_split_is_refused(tmp_path, splits):
    theirs = records(THREE, SECOND, 1.0)[: splits or None]
    if not splits:
        theirs = [replace(r, task=replace(r.task, split=r.task.split + 3)) for r in theirs]
    with pytest.raises(DpreproError, match=r"(one|no) split in common.* at least two"):
        pairs(tmp_path, c=[records(THREE, FIRST, 1.0), theirs])


def test_unknown_and_equal_names_are_refused(tmp_path):
    found = results(tmp_path, c=[records(THREE, FIRST, 1.0), records(THREE, SECOND, 1.0)])
    with pytest.raises(DpreproError, match="'dp-ebm-pluss'; did you mean 'dp-ebm-plus'"):
        pair_results(found, "dp-ebm-pluss", SECOND)
    with pytest.raises(DpreproError, match="name two different ones"):
        pair_results(found, FIRST, FIRST)


def test_no_dataset_and_no_level_in_common_are_refused(tmp_path):
    groups = [records(THREE, FIRST, 1.0), records(THREE, SECOND, 1.0, dataset="telco")]
    with pytest.raises(DpreproError, match=r"no dataset in common. dp-ebm-plus: adult. dp-ebm-gdp"):
        pairs(tmp_path, c=groups)
    with pytest.raises(DpreproError, match=r"no privacy level .*-plus has results at: epsilon 1\."):
        pairs(tmp_path, c=[records(THREE, FIRST, 1.0), records(THREE, SECOND, 2.0)])
    with pytest.raises(DpreproError, match=r"asked for \(epsilon 4\)\. .* has .*: epsilon 1\."):
        pairs(tmp_path, None, [4.0], c=[records(THREE, FIRST, 1.0), records(THREE, SECOND, 1.0)])


def test_several_settings_are_refused_with_the_choice(tmp_path):
    two = [records(THREE, FIRST, 1.0), records(THREE, SECOND, 1.0, domain="public")]
    with pytest.raises(DpreproError, match=r"of the configs one, two. Choose by"):
        pairs(tmp_path, one=[records(THREE, FIRST, 1.0), records(THREE, SECOND, 1.0)], two=two)
    labels = [records(THREE, f"b {i}", 1.0, method=SECOND, params={"i": i}) for i in range(2)]
    with pytest.raises(DpreproError, match="'dp-ebm-gdp' is a method with several labels on adult"):
        pair_results(
            results(tmp_path / "x", c=[records(THREE, FIRST, 1.0), *labels]), FIRST, SECOND
        )


def test_of_several_results_those_with_the_most_splits_count(tmp_path):
    few = [records(THREE[:2], FIRST, 1.0, seed=3), records(THREE[:2], SECOND, 1.0, seed=3)]
    many = [records(THREE, FIRST, 1.0), records(THREE, SECOND, 1.0)]
    for order in ({"few": few, "many": many}, {"many": many, "other": few}):
        found = pair_results(
            results(tmp_path / str(len(order["many"])) / next(iter(order)), **order), FIRST, SECOND
        )
        (pair,) = found.pairs
        assert len(pair.splits) == 3
        (said,) = found.left_out
        assert "fewer splits; choose them by --config" in said
        assert "many" not in said


def test_a_metric_that_one_lacks_is_refused_with_the_reason(tmp_path):
    both = [replace(r, metrics={**r.metrics, "f1": 0.5}) for r in records(THREE, FIRST, 1.0)]
    old = records(THREE, SECOND, 1.0)
    with pytest.raises(DpreproError, match=r"dp-ebm-gdp: no F1. .*`metrics: \[f1\]`.*dprepro run"):
        pairs(tmp_path, "f1", c=[both, old])
    none = [replace(r, absent={"f1": "no labels"}) for r in old]
    with pytest.raises(DpreproError, match=r"dp-ebm-gdp: no F1. no labels"):
        pairs(tmp_path, "f1", c=[both, none])
    with pytest.raises(DpreproError, match="unknown metric"):
        pairs(tmp_path, "f9", c=[both, old])


def test_the_metric_is_the_first_that_both_have(tmp_path):
    ours = [replace(r, metrics={"accuracy": 0.5, "auc": 0.9}) for r in records(THREE, FIRST, 1.0)]
    theirs = [replace(r, metrics={"accuracy": 0.6}) for r in records(THREE, SECOND, 1.0)]
    (pair,) = pairs(tmp_path, c=[ours, theirs]).pairs
    assert pair.metric.name == "accuracy"
    with pytest.raises(DpreproError, match="dp-ebm-gdp: no AUROC"):
        pair_results(results(tmp_path), FIRST, SECOND, "roc_auc")  # scikit-learn's name


def test_what_is_the_same_everywhere_is_said_once(tmp_path):
    groups = [
        records(THREE, label, epsilon, dataset=dataset)
        for label in (FIRST, SECOND)
        for epsilon in (1.0, 4.0)
        for dataset in ("adult", "telco")
    ]
    with pytest.raises(DpreproError) as caught:
        pairs(tmp_path, "f1", c=groups)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("adult (epsilon 1, 4), telco (epsilon 1, 4): dp-ebm-plus and dp-ebm-gdp")


def test_a_published_test_set_is_the_same_whatever_the_seeds(tmp_path):
    fixed = {"evaluation": "test-set", "test_share": 0.0}
    found = pairs(
        tmp_path,
        one=[records(THREE, FIRST, 1.0, **fixed)],
        two=[records(THREE, SECOND, 1.0, seed=9, **fixed)],
    )
    assert len(found.pairs) == 1


def test_a_dataset_without_a_shared_level_is_left_out_by_name(tmp_path):
    telco = {"dataset": "telco"}
    found = pairs(
        tmp_path,
        c=[
            *(records(THREE, label, 1.0) for label in (FIRST, SECOND)),
            records(THREE, FIRST, 1.0, **telco),
            records(THREE, SECOND, 4.0, **telco),
        ],
    )
    assert [pair.dataset for pair in found.pairs] == ["adult"]
    assert found.left_out == (
        f"telco: only {FIRST} has results at epsilon 1",
        f"telco: only {SECOND} has results at epsilon 4",
    )
