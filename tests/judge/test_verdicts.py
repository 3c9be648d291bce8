"""Verdicts, how many splits decide a cell, and looks after more and more: error rates with known
truth, against a plain search, and against the formula by hand.
"""

import math
from collections import Counter
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.experiment.record import Record
from dprepro.judge.two_means import LEVEL, Sample, compare, shares
from dprepro.judge.verdicts import (
    CellVerdict,
    LimitedBy,
    Undecided,
    Verdict,
    cell_level,
    doubled,
    judge_cells,
    printed_sample,
    seconds_of_a_split,
    shared_level,
    splits_needed,
    stage_of,
    verdict_of,
)
from dprepro.papers.document import OneDraw, load_documents
from dprepro.results.folder import ResultCell, Results, read_results
from dprepro.results.margins import METRICS, Margin, margins
from tests.report.journals import SPLITS, cell, records, spread, task, write

PAPER = load_documents()["dp-ebm-2021"]
PRINTED = next(
    c
    for c in PAPER.cells()
    if (c.dataset, c.method, c.epsilon) == ("adult", "dp-ebm-gdp-2021", 0.5)
)


def verdict(*cells: ResultCell, printed=PRINTED, **options):
    (found,) = judge_cells(PAPER, Results(cells), margins(), [printed], **options)
    return found


def measured(mean, sd=0.005, splits=SPLITS, **fields):
    return cell(spread(mean, sd, splits), **fields)


def difference(value, error=1.0, margin=0.005):
    """Return the comparison of two means of 25 splits that lie `value` apart."""
    sd = error * math.sqrt(25 / 2)
    return compare(Sample(value, sd, 25), Sample(0.0, sd, 25), margin)


@pytest.mark.parametrize("metric", list(METRICS))
def test_what_is_not_detected_is_inconclusive_and_what_is_has_a_direction(metric):
    up, down = (
        (Verdict.BETTER, Verdict.WORSE)
        if METRICS[metric].higher_is_better
        else (Verdict.WORSE, Verdict.BETTER)
    )
    assert verdict_of(difference(3.0), 0.001, metric) is Verdict.INCONCLUSIVE
    assert verdict_of(difference(4.0), 0.001, metric) is up
    assert verdict_of(difference(-4.0), 0.001, metric) is down


def test_what_is_shown_to_lie_within_the_margin_is_equivalent_detected_or_not():
    assert verdict_of(difference(0.004, 0.0005), 0.001, "auc") is Verdict.EQUIVALENT
    assert verdict_of(difference(0.001, 0.002), 0.001, "auc") is Verdict.EQUIVALENT
    assert verdict_of(difference(0.002, 0.002), 0.001, "auc") is Verdict.INCONCLUSIVE
    assert verdict_of(difference(0.0045, 0.0005), 0.001, "auc") is Verdict.BETTER


def test_a_cell_has_its_share_of_the_level_whatever_else_ran():
    runnable = sum(cell.dataset != "healthcare" for cell in PAPER.cells())
    assert cell_level(PAPER) == pytest.approx(0.05 / runnable)


def test_fewer_splits_than_printed_widen_the_interval():
    def width(splits):
        found = verdict(measured(0.875, sd=0.006, splits=splits), min_splits=3).comparison
        return found.high - found.low

    assert width(3) > 1.5 * width(12) > 1.5 * width(25)


def test_a_protocol_may_be_judged_on_fewer_splits_and_the_verdict_says_so():
    part = PAPER.protocol.model_copy(update={"judged_on": 3})
    paper = PAPER.model_copy(update={"protocol": part})

    def found(splits):
        results = Results([measured(0.875, sd=0.006, splits=splits)])
        return judge_cells(paper, results, margins(), [PRINTED])[0]

    assert (found(3).verdict, found(3).note) == (Verdict.INCONCLUSIVE, "3 of 25 splits")
    assert found(3).comparison.standard_error > found(25).comparison.standard_error
    assert (found(2).verdict, found(2).note) == (Verdict.INCOMPLETE, "2 of 3 splits")
    assert found(25).note == ""


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (0.875, Verdict.EQUIVALENT),
        (0.879, Verdict.INCONCLUSIVE),
        (0.871, Verdict.INCONCLUSIVE),
        (0.885, Verdict.BETTER),
        (0.865, Verdict.WORSE),
    ],
)
def test_two_standard_deviations_of_a_split_are_far_for_a_mean_of_25(mean, expected):
    found = verdict(measured(mean))
    assert found.verdict is expected
    assert found.margin == pytest.approx(0.005)
    assert found.difference == pytest.approx(mean - 0.875)
    assert found.measured == pytest.approx(mean)


def test_a_figure_without_a_standard_deviation_counts_as_a_single_run():
    single = replace(PRINTED, std=None)
    found = verdict(measured(0.885), printed=single)
    assert (found.verdict, found.published_splits) == (Verdict.INCONCLUSIVE, 1)
    assert found.comparison.freedom == pytest.approx(24, rel=0.01)
    assert verdict(measured(0.885)).published_splits == 25


def test_splits_that_share_a_draw_of_noise_count_as_a_single_run():
    shared = OneDraw(methods=["dp-ebm-gdp-2021"], reason="a fixed seed")
    paper = PAPER.model_copy(update={"one_draw": [shared]})
    (found,) = judge_cells(paper, Results((measured(0.885),)), margins(), [PRINTED])
    assert (found.verdict, found.published_splits) == (Verdict.INCONCLUSIVE, 1)
    # The printed spread, that of splits alone, is the least that the spread can be.
    (steady,) = judge_cells(paper, Results((measured(0.88, sd=1e-6),)), margins(), [PRINTED])
    assert steady.comparison.standard_error == pytest.approx(
        PRINTED.std * math.sqrt(1 + 1 / 25), rel=0.01
    )
    assert any("dp-ebm-gdp-2021" in note and "a fixed seed" in note for note in paper.notes)


def test_a_multiple_of_a_metric_has_the_printed_spread_of_the_other():
    paper = load_documents()["lazybb-2022"]
    at = {c.metric: c for c in paper.cells() if (c.table, c.epsilon) == ("5", 1.0)}
    count, share = at["n_features"], at["pct_features"]
    assert share.std is None
    sample = printed_sample(share, paper)
    assert sample.sd / share.mean == pytest.approx(count.std / count.mean)
    assert sample.splits == printed_sample(count, paper).splits == 5


def test_other_rows_are_judged_with_the_correction():
    rows = PAPER.protocol.model_copy(update={"other_rows": True})
    paper = PAPER.model_copy(update={"protocol": rows})
    (found,) = judge_cells(paper, Results((measured(0.885),)), margins(), [PRINTED])
    plain = verdict(measured(0.885))
    ratio = (1 / 25 + 0.25) / (1 / 25)
    assert found.comparison.standard_error / plain.comparison.standard_error == pytest.approx(
        math.sqrt(ratio), rel=0.05
    )
    assert (plain.verdict, found.verdict) == (Verdict.BETTER, Verdict.INCONCLUSIVE)


def test_lower_rmse_is_better():
    printed = next(c for c in PAPER.cells() if c.dataset == "cal-housing" and c.epsilon == 1)
    result = cell(
        spread(0.5 * printed.mean, 1.0),
        metric="rmse",
        label=printed.method,
        epsilon=1.0,
        dataset="cal-housing",
    )
    assert verdict(result, printed=printed).verdict is Verdict.BETTER


def test_statistics_stand_beside_the_verdict():
    found = verdict(measured(0.876))
    ours = Sample(0.876, 0.005, 25)
    theirs = Sample(0.875, 0.005, 25, half_unit=0.0005, sd_half_unit=0.0005)
    expected = compare(ours, theirs, found.margin)
    assert asdict(found.comparison) == pytest.approx(asdict(expected))
    assert found.comparison.low < found.difference < found.comparison.high
    assert found.comparison.is_equivalent


def test_without_results_a_cell_is_not_run():
    found = verdict()
    assert (found.verdict, found.result, found.measured) == (Verdict.NOT_RUN, None, None)
    assert not found.is_unexplained


def test_fewer_splits_are_incomplete_until_told_otherwise():
    few = measured(0.875, splits=3)
    found = verdict(few)
    assert (found.verdict, found.note) == (Verdict.INCOMPLETE, "3 of 25 splits")
    assert found.difference == pytest.approx(0)
    assert verdict(few, min_splits=3).verdict is Verdict.INCONCLUSIVE
    assert verdict(few, min_splits=4).verdict is Verdict.INCOMPLETE


def test_one_split_has_the_printed_spread_or_none():
    found = verdict(measured(0.875, splits=1), min_splits=1)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.comparison.freedom == pytest.approx(24, rel=0.01)
    single = replace(PRINTED, std=None)
    unknown = verdict(measured(0.875, splits=1), printed=single, min_splits=1)
    assert (unknown.verdict, unknown.comparison) == (Verdict.INCOMPLETE, None)
    assert "no spread is known" in unknown.note


def test_failed_splits_are_named():
    values = {"auc": tuple(spread(0.875, 0.005, 22))}
    broken = ResultCell(task(), ("t",), values, failed=3, messages=("ValueError: no",))
    assert verdict(broken).note == "22 of 25 splits, 3 failed"
    all_failed = ResultCell(task(), ("t",), {}, failed=25)
    found = verdict(all_failed)
    assert (found.verdict, found.note) == (Verdict.INCOMPLETE, "0 of 25 splits, 25 failed")


def test_a_skipped_cell_is_not_run_for_a_reason():
    record = Record(task(), "skipped", message="needs lightgbm")
    skipped = ResultCell(record.task, ("t",), {}, skipped=25, messages=(record.message,))
    found = verdict(skipped)
    assert (found.verdict, found.note) == (Verdict.NOT_RUN, "needs lightgbm")


def test_private_data_is_impossible_even_with_results():
    printed = next(c for c in PAPER.cells() if c.dataset == "healthcare")
    result = measured(printed.mean, label=printed.method, dataset="healthcare")
    found = verdict(result, printed=printed)
    assert (found.verdict, found.published_splits) == (Verdict.IMPOSSIBLE, 25)
    assert "never released" in found.note


@pytest.mark.parametrize("fields", [{"delta": 1e-5}, {"test_share": 0.3}, {"evaluation": "folds"}])
def test_another_protocol_does_not_answer(fields):
    found = verdict(measured(0.875, **fields))
    assert found.verdict is Verdict.NOT_RUN
    assert "delta" in found.note
    assert verdict(measured(0.875, **fields), measured(0.875)).verdict is Verdict.EQUIVALENT


def test_a_purely_private_method_answers_with_delta_zero():
    assert verdict(measured(0.875, delta=0.0)).verdict is Verdict.EQUIVALENT


def test_results_answer_to_the_documents_of_their_configs():
    result = measured(0.875)
    for papers, expected in [
        (None, Verdict.EQUIVALENT),
        (frozenset({"dp-ebm-2021"}), Verdict.EQUIVALENT),
        (frozenset({"other"}), Verdict.NOT_RUN),
        (frozenset(), Verdict.NOT_RUN),
    ]:
        answering = ResultCell(result.task, ("t",), result.values, papers=papers)
        assert verdict(answering).verdict is expected


def test_two_settings_for_one_cell_leave_it_open_and_name_the_choice():
    found = verdict(measured(0.875), measured(0.875, seed=2))
    assert (found.verdict, found.result) == (Verdict.INCOMPLETE, None)
    assert "2 results with different settings (seed 1 or 2)" in found.note
    assert "--config" in found.note


def test_the_result_whose_config_answers_to_the_table_is_preferred():
    paper = "dp-ebm-2021"
    other = replace(measured(0.5, seed=2), papers=frozenset({paper}))
    own = replace(measured(0.875), papers=frozenset({paper}), tables=frozenset({(paper, "2")}))
    assert verdict(other, own).result is own


def test_the_margin_given_is_the_one_used():
    (found,) = judge_cells(
        PAPER, Results((measured(0.885),)), {"auc": Margin(absolute=0.03)}, [PRINTED]
    )
    assert (found.verdict, found.margin) == (Verdict.EQUIVALENT, 0.03)


def test_all_184_cells_get_a_verdict_in_printed_order():
    found = judge_cells(PAPER, Results(()), margins())
    assert [v.published for v in found] == PAPER.cells()
    assert {v.verdict for v in found} == {Verdict.NOT_RUN, Verdict.IMPOSSIBLE}


def test_symbols_differ():
    assert len({v.symbol for v in Verdict}) == len(Verdict)


@given(st.floats(-1, 1), st.floats(1e-4, 0.1), st.floats(1e-3, 0.1), st.floats(1, 10))
def test_a_wider_margin_never_makes_a_deviation(value, error, margin, factor):
    narrow = verdict_of(difference(value, error, margin), 0.001, "auc")
    wide = verdict_of(difference(value, error, factor * margin), 0.001, "auc")
    assert narrow is wide or wide is Verdict.EQUIVALENT
    assert {narrow.is_final, wide.is_final} == {True}


def test_synthetic_data_answer_to_nothing_printed():
    made_up = measured(PRINTED.mean, data_fingerprint=f"{SYNTHETIC_PREFIX}abc")
    found = verdict(replace(made_up, data=PRINTED.dataset))
    assert found.verdict is Verdict.NOT_RUN
    assert found.note == "results of synthetic data"
    other = measured(0.875, delta=1e-5)
    assert verdict(replace(made_up, data=PRINTED.dataset), other).note == found.note
    assert verdict(other).note == "results of another delta, evaluation or document"


def test_results_without_the_printed_metric_are_named():
    found = verdict(cell([0.8, 0.9], metric="accuracy"))
    assert (found.verdict, found.note) == (Verdict.NOT_RUN, "results without AUROC")


def test_only_better_and_worse_need_an_explanation():
    deviations = {v for v in Verdict if CellVerdict(PRINTED, v).is_unexplained}
    assert deviations == {v for v in Verdict if v.is_deviation} == {Verdict.BETTER, Verdict.WORSE}
    known = CellVerdict(PRINTED, Verdict.WORSE, explanation="known")
    assert (known.is_unexplained, known.published_splits) == (False, 1)
    open_ones = {Verdict.INCOMPLETE, Verdict.NOT_RUN, Verdict.IMPOSSIBLE}
    assert {v for v in Verdict if v.is_final} == set(Verdict) - open_ones


@pytest.mark.parametrize(("tests", "level"), [(0, LEVEL), (1, LEVEL), (1.5, LEVEL / 1.5)])
def test_tests_share_a_level_and_one_alone_has_all_of_it(tests, level):
    assert shared_level(tests) == pytest.approx(level)


def test_a_p_value_at_its_level_is_no_difference():
    found = replace(difference(4.0), p_difference=0.001)
    assert verdict_of(found, 0.001, "auc") is Verdict.INCONCLUSIVE
    assert verdict_of(found, 0.0011, "auc") is Verdict.BETTER


def test_nothing_is_known_of_the_spread_of_a_figure_without_a_standard_deviation():
    sample = printed_sample(replace(PRINTED, std=None), PAPER)
    assert (sample.sd, sample.splits, sample.least_sd) == (None, 1, 0.0)
    assert printed_sample(PRINTED, PAPER).least_sd == 0.0


def rates_by_hand(shift, margin, ours, theirs, level):
    """Return the chance of each verdict; margin and true shift in standard deviations of a split.

    Given the pooled deviation s, a multiple of a chi distribution, the mean difference is normal
    and independent of it. Equivalent is |d| < margin - t s e, else different is |d| > t' s e.
    """
    freedom = ours + theirs - 2
    error = math.sqrt(1 / ours + 1 / theirs)
    s = np.sqrt(stats.chi2.ppf((np.arange(4000) + 0.5) / 4000, freedom) / freedom)
    within = np.maximum(margin - stats.t.ppf(0.95, freedom) * s * error, 0.0)
    beyond = np.maximum(stats.t.ppf(1 - level / 2, freedom) * s * error, within)

    def below(x):
        return stats.norm.cdf((x - shift) / error)

    rates = {
        Verdict.EQUIVALENT: below(within) - below(-within),
        Verdict.BETTER: 1 - below(beyond),
        Verdict.WORSE: below(-beyond),
    }
    rates = {verdict: float(rate.mean()) for verdict, rate in rates.items()}
    return rates | {Verdict.INCONCLUSIVE: 1 - sum(rates.values())}


@pytest.mark.parametrize(
    ("shift", "margin", "ours", "most_often"),
    [
        (0.0, 0.25, 25, Verdict.INCONCLUSIVE),
        (0.0, 1.0, 25, Verdict.EQUIVALENT),
        (0.3, 1.0, 25, Verdict.EQUIVALENT),
        (0.5, 0.5, 25, Verdict.INCONCLUSIVE),
        (-0.9, 0.6, 25, Verdict.INCONCLUSIVE),
        (1.6, 0.5, 25, Verdict.BETTER),
        (-1.6, 1.2, 25, Verdict.WORSE),
        (0.0, 0.7, 5, Verdict.INCONCLUSIVE),
        (0.0, 0.7, 400, Verdict.EQUIVALENT),
        (1.2, 1.0, 400, Verdict.BETTER),
    ],
)
def test_simulated_replications_of_known_truth_have_the_rates_of_theory(
    shift, margin, ours, most_often
):
    """1,500 replications of a cell with 25 printed splits, as one of 161."""
    generator = np.random.default_rng(5)
    level, trials, sd = LEVEL / 161, 1500, 0.02
    printed = generator.normal(0.8, sd, (trials, 25))
    own = generator.normal(0.8 + shift * sd, sd, (trials, ours))
    found = Counter(
        verdict_of(
            compare(
                Sample(b.mean(), b.std(ddof=1), ours), Sample(a.mean(), a.std(ddof=1), 25),
                margin * sd,
            ),
            level,
            "auc",
        )
        for a, b in zip(printed, own, strict=True)
    )  # fmt: skip
    expected = rates_by_hand(shift, margin, ours, 25, level)
    assert max(expected, key=expected.get) is most_often
    for verdict, rate in expected.items():
        low, high = stats.binom.ppf([0.0001, 0.9999], trials, rate)
        assert low <= found[verdict] <= high, (verdict, found[verdict] / trials, rate)
    assert set(found) <= set(expected)


def test_at_the_margin_equivalence_is_claimed_in_one_of_twenty_and_never_more_often():
    for ours in (5, 25, 400):
        rate = rates_by_hand(0.8, 0.8, ours, 25, LEVEL / 161)[Verdict.EQUIVALENT]
        assert rate <= LEVEL + 1e-4
    assert rate > 0.9 * LEVEL


def test_without_a_difference_a_cell_is_called_different_at_most_at_its_level():
    rates = rates_by_hand(0.0, 0.25, 25, 25, LEVEL / 161)
    assert rates[Verdict.BETTER] + rates[Verdict.WORSE] == pytest.approx(LEVEL / 161, rel=0.01)


def test_an_inconclusive_cell_says_what_would_decide_it_and_no_other_does():
    found = verdict(measured(0.878, 0.005))
    assert found.verdict is Verdict.INCONCLUSIVE
    ours = Sample(0.878, 0.005, 25)
    expected = splits_needed(ours, printed_sample(PRINTED, PAPER), 0.005, cell_level(PAPER))
    assert found.undecided == expected
    assert found.remark == str(expected)
    few = verdict(measured(0.878, 0.005, 3), min_splits=3)
    assert few.undecided.splits > 3
    for decided in (verdict(measured(0.875)), verdict(measured(0.8)), verdict()):
        assert decided.undecided is None
        assert decided.remark == decided.note
    both = replace(found, note="3 of 25 splits")
    assert both.remark == f"3 of 25 splits; {expected}"


CELL_LEVEL = 0.05 / 161


def ours(mean=0.88, sd=0.01, splits=25, **fields):
    return Sample(mean, sd, splits, **fields)


def printed(mean=0.88, sd=0.01, splits=25, **fields):
    return Sample(mean, sd, splits, **fields)


def decides(first, second, margin, level=CELL_LEVEL):
    found = compare(first, second, margin)
    return found.is_equivalent or found.p_difference < level


def test_of_equal_means_it_is_the_least_n_of_the_formula_by_hand():
    """t(n + 23) sd sqrt(1/n + 1/25) < 0.004: about 1.66 * 0.01 * sqrt(...), so n is near 54."""
    n = np.arange(2, 1000)
    reach = stats.t.ppf(0.95, n + 23) * 0.01 * np.sqrt(1 / n + 1 / 25)
    least = int(n[np.argmax(reach < 0.004)])
    assert 50 < least < 60
    assert splits_needed(ours(), printed(), 0.004, CELL_LEVEL) == Undecided(
        LimitedBy.OUR_SPLITS, least
    )


def test_a_difference_counts_against_the_margin_and_may_be_shown_itself():
    near = splits_needed(ours(0.8807), printed(), 0.0045, CELL_LEVEL)
    assert near.splits > splits_needed(ours(), printed(), 0.0045, CELL_LEVEL).splits
    # 0.0085 is far above the margin: z grows to 0.0085 / 0.002 = 4.25, and 3.6 rejects.
    shown = splits_needed(ours(0.8885), printed(), 0.004, CELL_LEVEL)
    n = np.arange(25, 1000)
    p = 2 * stats.t.sf(0.0085 / (0.01 * np.sqrt(1 / n + 1 / 25)), n + 23)
    assert shown == Undecided(LimitedBy.OUR_SPLITS, int(n[np.argmax(p < CELL_LEVEL)]))


def test_what_limits_a_cell_that_no_number_decides():
    """1.645 * 0.02 / sqrt(25) = 0.0066: the printed mean alone is not known to 0.005."""
    wide = printed(sd=0.02)
    assert splits_needed(ours(sd=0.02), wide, 0.005, CELL_LEVEL) == Undecided(
        LimitedBy.PRINTED_SPREAD
    )
    assert splits_needed(ours(sd=0.02), wide, 0.0067, CELL_LEVEL).limited_by is LimitedBy.OUR_SPLITS
    single = printed(sd=None, splits=1)
    assert splits_needed(ours(), single, 0.005, CELL_LEVEL) == Undecided(LimitedBy.NO_PRINTED_SD)
    one_draw = replace(single, least_sd=0.01)
    assert splits_needed(ours(), one_draw, 0.005, CELL_LEVEL) == Undecided(LimitedBy.PRINTED_SPREAD)
    # A reach of 0.0033 fits into the margin, but not behind a difference of 0.003.
    near = splits_needed(ours(0.883), printed(), 0.005, CELL_LEVEL)
    assert near == Undecided(LimitedBy.DIFFERENCE)


def test_rounding_of_print_is_no_less_with_more_splits():
    coarse = printed(sd=0.001, half_unit=0.005)
    assert splits_needed(ours(sd=0.001), coarse, 0.0045, CELL_LEVEL) == Undecided(
        LimitedBy.PRINTED_SPREAD  # 1.645 * 0.01 / sqrt(12) = 0.0047
    )
    assert splits_needed(ours(sd=0.02), coarse, 0.0095, CELL_LEVEL).splits > 25


def test_a_single_printed_run_can_be_decided_where_the_margin_is_wide():
    single = printed(sd=None, splits=1)
    found = splits_needed(ours(splits=3), single, 0.02, CELL_LEVEL)
    assert found.limited_by is LimitedBy.OUR_SPLITS
    assert 3 < found.splits < 20


def test_one_split_of_ours_has_the_printed_spread():
    found = splits_needed(ours(sd=None, splits=1), printed(), 0.005, CELL_LEVEL)
    n = np.arange(2, 100)
    reach = stats.t.ppf(0.95, 24) * 0.01 * np.sqrt(1 / n + 1 / 25)
    assert found.splits == int(n[np.argmax(reach < 0.005)])


@given(
    st.floats(0.0, 0.02), st.floats(0.001, 0.03), st.floats(0.001, 0.03), st.integers(2, 30),
    st.integers(2, 30), st.floats(0.002, 0.02),
)  # fmt: skip
def test_the_number_decides_and_one_less_does_not(shift, sd, other, splits, theirs, margin):
    first, second = ours(0.88 + shift, sd, splits), printed(sd=other, splits=theirs)
    assume(not decides(first, second, margin))
    found = splits_needed(first, second, margin, CELL_LEVEL)
    if found.splits is None:
        assert not decides(replace(first, splits=10**8), second, margin)
        could = decides(replace(first, splits=10**8, mean=0.88), second, margin)
        assert (found.limited_by is LimitedBy.DIFFERENCE) == could
    else:
        assert found.splits > splits
        assert decides(replace(first, splits=found.splits), second, margin)
        assert not decides(replace(first, splits=found.splits - 1), second, margin)


def test_it_is_put_into_words():
    assert str(Undecided(LimitedBy.OUR_SPLITS, 1279)) == "1,279 splits of ours would decide it"
    said = [str(Undecided(limit)) for limit in list(LimitedBy)[1:]]
    assert len(set(said)) == 3
    assert all("more splits of ours" in words for words in said)


PRINTED_AT_4 = next(
    c
    for c in PAPER.cells()
    if (c.dataset, c.method, c.epsilon) == ("adult", "dp-ebm-gdp-2021", 4.0)
)
MARGIN = 0.005


def rates(looks, difference, sd, level, trials, share_of=shares):
    """Return how often cells are called equivalent, and different, at the first look that is sure.

    Both sides are drawn from normal distributions whose means lie `difference` apart.
    """
    rng = np.random.default_rng(3)
    equivalent = different = 0
    for _ in range(trials):
        printed = rng.normal(0.0, sd, 25)
        ours = rng.normal(difference, sd, looks[-1])
        theirs = Sample(printed.mean(), printed.std(ddof=1), 25)
        for look, share in zip(looks, share_of(looks), strict=True):
            first = ours[:look]
            own = Sample(first.mean(), first.std(ddof=1), look)
            found = compare(own, theirs, MARGIN, share)
            if found.is_equivalent or found.is_different(level):
                equivalent += found.is_equivalent
                different += not found.is_equivalent
                break
    return equivalent / trials, different / trials


@pytest.mark.parametrize("looks", [(25, 400), doubled(25, 400)])
def test_a_difference_as_large_as_the_margin_is_rarely_called_equivalent(looks):
    found, _ = rates(looks, MARGIN, sd=0.003, level=0.001, trials=1500)
    assert found < LEVEL + 2 * math.sqrt(LEVEL / 1500)


@pytest.mark.parametrize("looks", [(25, 400), doubled(25, 400)])
def test_without_a_difference_few_cells_are_called_different(looks):
    _, found = rates(looks, 0.0, sd=0.1, level=0.05, trials=1500)
    assert found < 0.05 + 2 * math.sqrt(0.05 / 1500)


def test_the_whole_level_at_every_look_would_call_too_many_different():
    def whole(looks):
        return [1.0] * len(looks)

    _, found = rates(doubled(25, 400), 0.0, sd=0.1, level=0.05, trials=1500, share_of=whole)
    assert found > 0.05 + 4 * math.sqrt(0.05 / 1500)


def test_equal_means_are_found_by_more_splits():
    few, _ = rates((25,), 0.0, sd=0.009, level=0.001, trials=400)
    many, _ = rates(doubled(25, 400), 0.0, sd=0.009, level=0.001, trials=400)
    assert many > few + 0.2


def test_what_looks_have_spent_grows_with_the_square_of_the_splits():
    assert shares([25, 50, 100]) == [1 / 16, 3 / 16, 12 / 16]
    assert shares([25]) == [1.0]
    assert doubled(5, 12) == (5, 10, 12)
    assert doubled(25, 25) == (25,)


def judged(found, document=PAPER):
    (verdict,) = judge_cells(document, Results((found,)), margins(), [PRINTED_AT_4])
    return verdict


def with_more(values, looks, **fields):
    """Return a result of 25 splits, to which a config with `looks` adds the rest of `values`."""
    more = cell(values, epsilon=4.0, **fields)
    added = replace(more, looks=looks, numbers={"auc": tuple(range(len(values)))})
    return replace(cell(values[:25], epsilon=4.0, **fields), more={PAPER.paper: added})


def test_a_verdict_rests_on_more_splits_where_the_first_look_decides_nothing():
    values = [*spread(PRINTED_AT_4.mean, 0.0145, 25)] * 16
    found = judged(with_more(values, (25, 400)))
    assert judged(cell(values[:25], epsilon=4.0)).verdict is Verdict.INCONCLUSIVE
    assert found.verdict is Verdict.EQUIVALENT
    assert found.note == "25 printed, 400 of ours"
    assert found.result.splits("auc") == 400
    assert found.comparison.share == 1 - 1 / 256


def test_a_first_look_that_decides_is_kept():
    values = [*spread(PRINTED_AT_4.mean + 0.1, 0.005, 25), *spread(PRINTED_AT_4.mean, 0.005, 375)]
    found = judged(with_more(values, (25, 400)))
    assert found.verdict is Verdict.BETTER
    assert (found.result.splits("auc"), found.note) == (25, "")


def test_until_the_splits_of_the_next_look_are_there_the_last_one_counts():
    values = [*spread(PRINTED_AT_4.mean, 0.0145, 25)] * 3
    found = judged(with_more(values, (25, 50, 100)))
    assert found.result.splits("auc") == 50
    assert found.note == "25 printed, 50 of ours"


def test_splits_that_are_added_to_another_document_do_not_count():
    found = with_more([*spread(PRINTED_AT_4.mean, 0.0145, 25)] * 16, (25, 400))
    other = replace(found, more={"other": found.more[PAPER.paper]})
    assert judged(other).result.splits("auc") == 25


def test_a_cell_goes_on_while_more_splits_can_decide_it():
    looks = doubled(25, 400)
    near = judged(with_more([*spread(PRINTED_AT_4.mean + 0.001, 0.012, 25)], looks))
    wide = judged(with_more([*spread(PRINTED_AT_4.mean, 0.2, 25)], looks))
    far = judged(with_more([*spread(PRINTED_AT_4.mean + 0.5, 0.01, 25)], looks))
    found = stage_of([near, wide, far], PAPER, looks)
    assert (found.open, found.limited, found.decided) == ([near], [wide], [far])
    assert found.places == {("dp-ebm-gdp-2021", 4.0)}


def test_the_time_of_a_split_is_that_of_the_journal(tmp_path):
    took = [replace(r, seconds={"fit": 2.0 + r.task.split}) for r in records([0.8, 0.9, 0.7])]
    write(tmp_path, "a", took)
    assert seconds_of_a_split(read_results(tmp_path)) == {("dp-ebm-gdp-2021", 0.5): 3.0}
