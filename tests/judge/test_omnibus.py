"""Sums of squares of a few cells that are stated by hand, and error rates of the verdicts on
simulated replications with and without a true difference.
"""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dprepro.judge.omnibus import ColumnState, columns, normal_score, omnibus
from dprepro.judge.two_means import Comparison
from dprepro.judge.verdicts import CellVerdict, Verdict, judge_cells
from dprepro.papers.document import load_documents
from dprepro.results.folder import Results
from dprepro.results.margins import margins
from tests.report.journals import cell

PAPER = load_documents()["dp-ebm-2021"]
CELLS = [c for c in PAPER.cells() if c.dataset != "healthcare" and c.std]
SD, SPLITS, TRIALS = 0.02, 25, 60
ADULT = [c for c in CELLS if (c.table, c.dataset) == ("2", "adult")]
COLUMN = [c for c in ADULT if c.method == "dpboost-2021"]
FREE = {name: replace(margin, absolute=1e-9, relative=0.0) for name, margin in margins().items()}


def replicate(generator, shift=None, correlation=0.0, widths=FREE):
    """Return the verdicts on one simulated document and its replication.

    Both sides draw 25 splits a cell; cells of a dataset have this correlation over splits.
    `shift` is the true difference by cell, in standard deviations of a split.
    """
    shared = {c.dataset: generator.normal(size=(2, SPLITS)) for c in CELLS}
    printed, ours = [], []
    for c in CELLS:
        own = generator.normal(size=(2, SPLITS))
        values = math.sqrt(correlation) * shared[c.dataset] + math.sqrt(1 - correlation) * own
        values = 0.8 + SD * values
        values[1] += SD * (shift(c) if shift else 0.0)
        mean, std = round(values[0].mean(), 3), round(values[0].std(ddof=1), 3)
        printed.append(replace(c, mean=mean, std=std, decimals=3, std_decimals=3))
        ours.append(
            cell(
                values[1].tolist(), label=c.method, epsilon=c.epsilon, metric=c.metric,
                dataset=c.dataset,
            )
        )  # fmt: skip
    return judge_cells(PAPER, Results(tuple(ours)), widths, printed)


@pytest.fixture(scope="module", params=[0.0, 0.8])
def nulls(request):
    """Verdicts of replications without any true difference."""
    generator = np.random.default_rng(7)
    return [replicate(generator, correlation=request.param) for _ in range(TRIALS)]


def most(rate, trials=TRIALS):
    """Return the largest count that such a rate gives in all but one of a thousand cases."""
    return stats.binom.ppf(0.999, trials, rate)


def test_without_a_difference_documents_with_a_deviation_are_rarer_than_one_in_twenty(nulls):
    wrong = sum(any(v.verdict.is_deviation for v in found) for found in nulls)
    assert wrong <= most(0.05)


def test_without_a_difference_documents_with_a_different_column_are_as_rare(nulls):
    wrong = sum(
        any(c.state is ColumnState.DIFFERENT for c in columns(PAPER, found)) for found in nulls
    )
    # A column is also different if one of its cells is, so two families of tests of 5 % count.
    assert wrong <= most(0.10)


def test_without_a_difference_the_omnibus_test_rejects_at_its_level(nulls):
    rejected = sum(omnibus(found).p_value < 0.05 for found in nulls)
    assert rejected <= most(0.08)  # the correlations are estimated from 25 splits
    assert np.mean([omnibus(found).sum_of_squares for found in nulls]) == pytest.approx(
        len(CELLS), rel=0.1
    )


def test_without_a_difference_normal_scores_are_standard_normal(nulls):
    scores = np.array([[normal_score(v) for v in found] for found in nulls])
    assert scores.std() == pytest.approx(1, abs=0.03)
    assert scores.mean() == pytest.approx(0, abs=0.1)
    assert np.mean(np.abs(scores) > 1.96) == pytest.approx(0.05, abs=0.015)


def test_a_difference_of_two_standard_deviations_of_a_split_is_always_found():
    generator = np.random.default_rng(8)
    found = Counter(v.verdict for v in replicate(generator, lambda c: 2.0))
    assert found[Verdict.INCONCLUSIVE] == 0
    assert set(found) == {Verdict.BETTER, Verdict.WORSE}  # AUROC up is better, RMSE up is worse


def test_a_shift_that_no_cell_shows_makes_its_column_different():
    """0.8 standard deviations of a split in all five cells of a column: each z is about 2.8."""
    generator = np.random.default_rng(9)
    place = ("adult", "dp-ebm-gdp-2021")
    judged = [
        replicate(generator, lambda c: 0.8 if (c.dataset, c.method) == place else 0.0)
        for _ in range(20)
    ]
    found = [
        next(c for c in columns(PAPER, verdicts) if (c.dataset, c.method) == place)
        for verdicts in judged
    ]
    shown = sum(
        any(v.verdict.is_deviation for v in verdicts if v.published.method == place[1])
        for verdicts in judged
    )
    assert sum(c.state is ColumnState.DIFFERENT for c in found) > max(shown, 10)


def test_a_difference_at_the_margin_is_hardly_ever_called_equivalent():
    """The true difference is the margin itself: at most 5 % of the cells may pass as equivalent."""
    generator = np.random.default_rng(10)
    widths = {name: replace(m, absolute=2.0 * SD, relative=0.0) for name, m in margins().items()}
    found = [v for _ in range(10) for v in replicate(generator, lambda c: 2.0, widths=widths)]
    wrong = sum(v.verdict is Verdict.EQUIVALENT for v in found)
    assert wrong <= most(0.05, len(found))
    wide = {name: replace(m, absolute=3.0 * SD) for name, m in widths.items()}
    small = [v for _ in range(3) for v in replicate(generator, lambda c: 1.3, widths=wide)]
    assert {v.verdict for v in small} == {Verdict.EQUIVALENT}


def test_a_column_within_the_margin_is_equivalent_whether_or_not_it_differs():
    generator = np.random.default_rng(11)
    widths = {name: replace(m, absolute=4.0 * SD, relative=0.0) for name, m in margins().items()}
    found = columns(PAPER, replicate(generator, lambda c: 2.5, widths=widths))
    assert {c.state for c in found} == {ColumnState.EQUIVALENT}
    found = columns(PAPER, replicate(generator, widths=widths))
    assert {c.state for c in found} == {ColumnState.EQUIVALENT}
    assert len(found) == len({(c.table, c.dataset, c.method) for c in CELLS})


def test_cells_that_were_not_run_take_no_part():
    assert omnibus(judge_cells(PAPER, Results(()), margins())) is None
    assert columns(PAPER, judge_cells(PAPER, Results(()), margins())) == []


def test_the_largest_z_keeps_its_order():
    generator = np.random.default_rng(12)
    found = replicate(generator, lambda c: 50.0 if c.dataset == "pol" else 0.0)
    scores = [abs(normal_score(v)) for v in found if v.published.dataset == "pol"]
    assert all(math.isfinite(score) and score > 8 for score in scores)


UP, DOWN, ACROSS = (1.0, 2.0, 3.0, 4.0), (4.0, 3.0, 2.0, 1.0), (1.0, -1.0, -1.0, 1.0)


def judged(
    values=ACROSS, z=1.0, p=0.5, place=COLUMN[0], verdict=Verdict.INCONCLUSIVE, p_equivalence=0.5,
    dataset="adult",
):  # fmt: skip
    """Return the verdict on a cell with these values over splits, z and p-value."""
    comparison = Comparison(0.01, 0.01, z, 46, -1.0, 1.0, p, p_equivalence)
    place = replace(place, dataset=dataset)
    return CellVerdict(place, verdict, cell(values), 0.005, comparison)


def effective(*cells):
    """Return the degrees of freedom that a p-value of these cells was found with."""
    found = omnibus(cells)
    k, total = found.cells, found.sum_of_squares
    return next(
        f
        for f in (k**2 / (k + n / 100) for n in range(-1, 100 * k**2))
        if math.isclose(stats.chi2.sf(total * f / k, f), found.p_value, rel_tol=1e-9)
    )


def test_a_normal_score_has_the_sign_of_z_and_its_p_value():
    assert normal_score(judged(z=2.3, p=0.05)) == pytest.approx(1.959964)
    assert normal_score(judged(z=-0.1, p=0.5)) == pytest.approx(-0.674490)
    assert normal_score(judged(p=1.0)) == pytest.approx(0.0)
    assert 37 < normal_score(judged(z=99.0, p=0.0)) < 38  # as of the smallest p-value
    assert math.isnan(normal_score(replace(judged(), comparison=None)))


def test_a_cell_is_far_beyond_three():
    found = omnibus([judged(z=z) for z in (3.0, 3.01, -3.01, -3.0, 0.0)])
    assert (found.far, found.cells) == (2, 5)
    assert found.sum_of_squares == pytest.approx(5 * 0.674490**2)


def test_only_what_was_judged_counts():
    cells = [judged(verdict=Verdict.INCOMPLETE), replace(judged(), comparison=None)]
    assert omnibus(cells) is None
    assert omnibus([*cells, judged()]).cells == 1


def test_cells_without_correlation_are_as_many_as_they_are():
    assert effective(judged(UP), judged(ACROSS)) == pytest.approx(2)
    assert effective(judged(UP)) == pytest.approx(1)


def test_cells_that_move_together_or_against_each_other_are_one():
    assert effective(judged(UP), judged(UP)) == pytest.approx(1)
    assert effective(judged(UP), judged(DOWN)) == pytest.approx(1)
    assert effective(*(judged(UP) for _ in range(3))) == pytest.approx(1)


def test_what_a_sample_correlation_is_by_chance_is_taken_off():
    """r = 0.8 over 4 splits: the trace is 2 + 2 (r^2 - (1 - r^2) / 2) = 2.92."""
    assert effective(judged(UP), judged((1.0, 3.0, 2.0, 4.0))) == pytest.approx(4 / 2.92)


def test_only_cells_of_one_dataset_and_as_many_splits_are_correlated():
    assert effective(judged(UP), judged(UP, dataset="telco")) == pytest.approx(2)
    assert effective(judged(UP), judged(UP[:3])) == pytest.approx(2)
    with np.errstate(all="raise"):  # two splits say nothing
        assert effective(judged(UP[:2]), judged(UP[:2])) == pytest.approx(2)
    twice = (1.0, 1.0, 2.0, 2.0)  # two values are enough
    assert effective(judged(twice), judged(twice)) == pytest.approx(1)
    assert effective(judged(UP), judged((1.0,) * 4)) == pytest.approx(2)  # nor what never moves
    last_bits = tuple(1 + rank * np.finfo(float).eps for rank in range(4))
    assert effective(judged(UP), judged(last_bits)) == pytest.approx(2)
    assert effective(judged(UP), judged(UP), judged((1.0,) * 4)) == pytest.approx(9 / 5)
    three = effective(judged(UP[:3]), judged(UP[:3]))
    assert three == pytest.approx(1)


def test_cells_with_more_splits_are_correlated_as_on_those_that_all_have():
    more = judged((*UP, 9.0, -9.0))
    looked = replace(more.result, looks=(4, 6), numbers={"auc": tuple(range(6))})
    assert effective(judged(UP), replace(more, result=looked)) == pytest.approx(1)
    assert effective(judged(UP), more) == pytest.approx(2)


def verdicts(p, others=(), **fields):
    """Return a column of five cells with this p-value each, and the cells of other columns."""
    return [*(judged(UP, p=p, place=place, **fields) for place in COLUMN), *others]


def states(found):
    return [column.state for column in columns(PAPER, found)]


def test_a_column_differs_below_its_share_of_five_percent():
    """One column alone has all of the level; one of two columns has half of it."""
    other = [judged(UP, p=0.9, place=c) for c in ADULT if c.method == "dp-ebm-gdp-2021"]
    assert len(COLUMN) == len(other) == 5
    assert states(verdicts(0.049)) == [ColumnState.DIFFERENT]  # the five are one: f = 1
    assert states(verdicts(0.051)) == [ColumnState.INCONCLUSIVE]
    assert states(verdicts(0.024, other))[0] is ColumnState.DIFFERENT
    assert states(verdicts(0.026, other)) == [ColumnState.INCONCLUSIVE, ColumnState.INCONCLUSIVE]


def test_a_column_with_a_different_cell_differs_and_within_the_margin_is_equivalent():
    worse = judged(UP, p=0.9, verdict=Verdict.WORSE)
    assert states([*verdicts(0.9), worse]) == [ColumnState.DIFFERENT]
    assert states(verdicts(0.9, verdict=Verdict.EQUIVALENT)) == [ColumnState.EQUIVALENT]
    assert states(verdicts(0.001, verdict=Verdict.EQUIVALENT)) == [ColumnState.EQUIVALENT]
    assert states(verdicts(0.001)) == [ColumnState.DIFFERENT]
    within = verdicts(0.001, verdict=Verdict.EQUIVALENT)
    assert states([*within, judged(UP, p=0.001)]) == [ColumnState.DIFFERENT]
    unfinished = judged(verdict=Verdict.INCOMPLETE)
    assert states([*within, unfinished]) == [ColumnState.EQUIVALENT]


def test_columns_are_those_of_the_document_and_of_one_table_dataset_method_and_metric():
    elsewhere = replace(COLUMN[0], paper="another")
    impossible = judged(verdict=Verdict.IMPOSSIBLE, place=replace(COLUMN[0], method="other"))
    assert columns(PAPER, [judged(place=elsewhere), impossible]) == []
    (column,) = columns(PAPER, verdicts(0.5))
    assert column.place == ("dp-ebm-2021", "2", "adult", "dpboost-2021")
    assert str(column) == "dp-ebm-2021 table 2: adult, dpboost-2021 (auc)"
    assert column.holds(judged())
    for name in ("paper", "table", "dataset", "method", "metric"):
        other = replace(COLUMN[0], **{name: "another"})
        assert not column.holds(replace(judged(), published=other))
