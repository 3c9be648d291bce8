"""Ranks, Friedman's test, tests of pairs and groups, against SciPy and by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dprepro.judge.comparing import holm, paired_test
from dprepro.judge.ranking import friedman, hodges_lehmann, rank_methods
from dprepro.results.folder import read_results
from dprepro.runtime.errors import DpreproError
from tests.report.journals import records, write

RNG = np.random.default_rng(3)
NAMES = ("a", "b", "c", "d")


def ranked(folder, means, metric="auc", epsilon=1.0, names=NAMES, spread=0.001, **options):
    """Rank methods by their means, one row a dataset; splits differ by noise of size `spread`."""
    lines = []
    for number, row in enumerate(means):
        for name, mean in zip(names, row, strict=True):
            values = mean + spread * np.random.default_rng([number, ord(name)]).normal(size=6)
            values += mean - values.mean()
            lines += records(list(values), name, epsilon, metric, dataset=f"d{number}")
    write(folder, "c", lines)
    return rank_methods(read_results(folder), names, **options).main


class TestFriedman:
    @pytest.mark.parametrize("ties", [False, True])
    def test_it_is_scipys_also_with_ties(self, ties):
        scores = RNG.normal(size=(8, 4))
        scores = np.round(scores) if ties else scores
        found = friedman([stats.rankdata(row) for row in scores])
        expected = stats.friedmanchisquare(*scores.T)
        assert found.chi_squared == pytest.approx(expected.statistic)
        assert found.p_chi_squared == pytest.approx(expected.pvalue)
        f = 7 * found.chi_squared / (8 * 3 - found.chi_squared)
        assert (found.f, found.freedom, found.freedom_below) == (pytest.approx(f), 3, 21)
        assert found.p == pytest.approx(stats.f(3, 21).sf(f))

    def test_f_is_that_of_an_analysis_of_variance_of_ranks(self):
        ranks = np.array([stats.rankdata(row) for row in RNG.normal(size=(6, 3))])
        columns, rows = ranks.mean(axis=0), ranks.mean(axis=1, keepdims=True)
        between = 6 * ((columns - 2) ** 2).sum() / 2
        within = ((ranks - columns - rows + 2) ** 2).sum() / 10
        assert friedman(ranks.tolist()).f == pytest.approx(between / within)

    def test_the_same_ranking_everywhere_has_the_exact_probability(self):
        found = friedman([[1, 2, 3]] * 5)
        assert math.isinf(found.f)
        assert found.p == pytest.approx(1 / 6**4)

    def test_all_tied_is_no_evidence(self):
        assert friedman([[2, 2, 2]] * 5).p == 1.0


class TestHodgesLehmann:
    def test_the_interval_holds_the_shifts_that_the_signed_rank_test_keeps(self):
        values = RNG.normal(0.3, 1, size=9)
        typical, low, high = hodges_lehmann(list(values))
        walsh = [(x + y) / 2 for x, y in itertools.combinations_with_replacement(values, 2)]
        assert typical == pytest.approx(np.median(walsh))
        for end, inward in ((low, 1e-9), (high, -1e-9)):
            inside, outside = (
                stats.wilcoxon(values - end - step, method="exact").pvalue
                for step in (inward, -inward)
            )
            assert inside > 0.05 >= outside

    def test_five_values_have_no_interval_and_six_have(self):
        assert hodges_lehmann([1.0, 2, 3, 4, 5]) == (3.0, None, None)
        assert hodges_lehmann([1.0, 2, 3, 4, 5, 6])[1:] == (1.0, 6.0)


def many(number, gap=0.02):
    """Return means of four methods on so many datasets, the first best and the last two alike."""
    shift = np.random.default_rng(2).normal(0, 0.001, size=(number, 4))
    shift[:, 3] = shift[:, 2] + [0.002 * (place + 1) * (-1) ** place for place in range(number)]
    return np.array([0.9, 0.9 - gap, 0.9 - 3 * gap, 0.9 - 3 * gap]) + shift


class TestRanking:
    def test_ranks_wins_and_pairs_are_those_of_the_means(self, tmp_path):
        means = many(9)
        found = ranked(tmp_path, means)
        expected = np.mean([stats.rankdata(-row) for row in means], axis=0)
        for name, rank in zip(NAMES, expected, strict=True):
            assert found.mean_ranks[name] == pytest.approx(rank)
        assert found.methods[:2] == ("a", "b")
        assert found.win_rates["a", "b"] == 1.0
        assert found.win_rates["c", "d"] == pytest.approx((means[:, 2] > means[:, 3]).mean())
        assert found.friedman.chi_squared == pytest.approx(
            stats.friedmanchisquare(*means.T).statistic
        )
        raw = {
            frozenset((one, other)): stats.wilcoxon(means[:, i] - means[:, j]).pvalue
            for (i, one), (j, other) in itertools.combinations(enumerate(NAMES), 2)
        }
        for pair in found.pairs:
            assert pair.p == pytest.approx(raw[frozenset((pair.first, pair.second))])
        assert [p.p_holm for p in found.pairs] == holm([p.p for p in found.pairs])

    def test_groups_are_the_methods_that_are_not_told_apart(self, tmp_path):
        found = ranked(tmp_path, many(9))
        assert [sorted(group) for group in found.groups] == [["a"], ["b"], ["c", "d"]]
        for pair in found.pairs:
            together = any({pair.first, pair.second} <= set(group) for group in found.groups)
            assert together == (not pair.better)

    def test_groups_overlap_where_neighbours_are_alike_and_ends_are_not(self, tmp_path):
        steps = np.random.default_rng(4).normal(0, 0.01, size=(12, 4)) + np.array(
            [0.9, 0.893, 0.886, 0.8]
        )
        found = ranked(tmp_path, steps)
        sizes = [len(group) for group in found.groups]
        assert [*found.groups[-1]] == ["d"]
        assert max(sizes) >= 2
        held = {frozenset(p) for g in found.groups for p in itertools.combinations(g, 2)}
        assert held == {frozenset((p.first, p.second)) for p in found.pairs if not p.better}

    def test_lower_is_better_for_errors(self, tmp_path):
        found = ranked(tmp_path, 100 * many(9), "rmse")
        assert found.methods[-1] == "a"
        pair = next(p for p in found.pairs if {p.first, p.second} == {"a", "b"})
        assert (pair.first, pair.better) == ("b", "b")
        # 2 of 89 are 2.25 %, in margins of 2 %.
        assert pair.typical == pytest.approx(2 / 89 / 0.02, rel=0.1)

    def test_a_difference_is_in_margins_of_its_metric(self, tmp_path):
        found = ranked(tmp_path, many(9))
        pair = next(p for p in found.pairs if {p.first, p.second} == {"a", "b"})
        assert pair.typical == pytest.approx(0.02 / 0.005, rel=0.1)

    def test_equal_scores_share_their_ranks_and_wins(self, tmp_path):
        found = ranked(tmp_path, [[0.9, 0.9, 0.8, 0.7]] * 5, spread=0.0)
        assert (found.mean_ranks["a"], found.mean_ranks["b"]) == (1.5, 1.5)
        assert found.win_rates["a", "b"] == 0.5
        pair = next(p for p in found.pairs if {p.first, p.second} == {"a", "b"})
        assert (pair.counts, pair.typical) == ((0, 5, 0), 0.0)

    def test_on_each_dataset_pairs_have_the_corrected_test_adjusted_there(self, tmp_path):
        found = ranked(tmp_path, many(5))
        scores = found.scores[0]
        differences = np.subtract(scores.values["a"], scores.values["b"])
        on = {(p.first, p.second): p.on[0] for p in found.pairs}
        assert on["a", "b"].test.p == pytest.approx(paired_test(list(differences), 0.25).p)
        assert [o.p_holm for o in on.values()] == holm([o.test.p for o in on.values()])


class TestPower:
    def test_few_datasets_are_not_tested(self, tmp_path):
        found = ranked(tmp_path, many(4))
        assert found.friedman is None
        assert not found.is_tested
        assert found.groups is None

    def test_pairs_are_tested_only_if_one_could_be_told_apart(self, tmp_path):
        found = ranked(tmp_path, many(7))
        assert found.friedman is not None
        assert not found.is_tested  # 6 pairs of p 1/64 at least
        assert found.datasets_needed == 8
        assert ranked(tmp_path / "x", many(8)).is_tested


class TestOneDataset:
    def test_splits_are_ranked_and_pairs_have_the_corrected_test(self, tmp_path):
        found = ranked(tmp_path, many(1))
        assert found.friedman is None
        assert found.is_tested
        values = np.array([found.scores[0].values[name] for name in found.methods])
        expected = np.mean([stats.rankdata(-split) for split in values.T], axis=0)
        assert list(found.mean_ranks.values()) == pytest.approx(list(expected))
        assert [p.p for p in found.pairs] == [p.on[0].test.p for p in found.pairs]
        assert ["a"] in [list(group) for group in found.groups]


class TestLevels:
    def test_over_levels_a_dataset_is_one_block_with_its_mean(self, tmp_path):
        lines = [
            record
            for epsilon, gain in ((0.5, 0.0), (1.0, 0.1))
            for name, mean in (("a", 0.8), ("b", 0.7), ("c", 0.6))
            for dataset in ("d0", "d1")
            for record in records([mean + gain, mean - 0.02], name, epsilon, dataset=dataset)
        ]
        write(tmp_path, "c", lines)
        found = rank_methods(read_results(tmp_path), ["a", "b", "c"])
        assert [ranking.epsilons for ranking in found.rankings] == [(0.5,), (1.0,), (0.5, 1.0)]
        assert found.main.epsilons == (0.5, 1.0)
        assert len(found.main.scores) == 2
        assert found.main.scores[0].values["a"] == pytest.approx((0.85, 0.78))

    def test_methods_that_share_no_dataset_are_refused(self, tmp_path):
        lines = [
            r for d, names in (("d0", "ab"), ("d1", "c")) for n in names
            for r in records([0.9, 0.8], n, 1.0, dataset=d)
        ]  # fmt: skip
        write(tmp_path, "c", lines)
        with pytest.raises(DpreproError) as raised:
            rank_methods(read_results(tmp_path), ["a", "b", "c"])
        assert "c: in no block with another method" in str(raised.value)
        assert "epsilon 1: fewer than three methods" in str(raised.value)
        assert "`dprepro compare a b` compares two" in str(raised.value)

    def test_of_all_methods_those_without_privacy_stand_alone_and_it_is_said(self, tmp_path):
        levels = {"a": 1.0, "b": math.inf, "c": math.inf}
        lines = [r for n, e in levels.items() for r in records([0.9, 0.8], n, e)]
        write(tmp_path, "c", lines)
        found = read_results(tmp_path)
        with pytest.raises(DpreproError, match="where you name them, with others at each level"):
            rank_methods(found, ["a", "b", "c"], is_all=True)
        assert rank_methods(found, ["a", "b", "c"]).main.epsilons == (1.0,)
