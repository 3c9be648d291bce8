import math
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprepro.data import SYNTHETIC_PREFIX
from dprepro.experiment.record import Record
from dprepro.published.document import load_documents
from dprepro.report.judge.statistics import Sample, compare
from dprepro.report.judge.verdicts import Verdict, judge_cells, within
from dprepro.report.read.metrics import METRICS, Tolerance, tolerances
from dprepro.report.read.results import ResultCell, Results
from tests.report.journals import SPLITS, cell, spread, task

PAPER = load_documents()["dp-ebm-2021"]
PRINTED = next(
    c for c in PAPER.cells() if (c.dataset, c.method, c.epsilon) == ("adult", "dp-ebm-gdp", 0.5)
)


def verdict(*cells: ResultCell, printed=PRINTED, **options):
    (found,) = judge_cells(PAPER, Results(cells), tolerances(), [printed], **options)
    return found


def measured(mean, sd=0.005, splits=SPLITS, **fields):
    return cell(spread(mean, sd, splits), **fields)


@pytest.mark.parametrize("metric", list(METRICS))
@pytest.mark.parametrize("published", [0.004, 0.875, 85652.0])
def test_exactly_at_the_tolerance_is_reproduced_and_beyond_is_not(metric, published):
    width = 0.01 * published
    up, down = (
        (Verdict.BETTER, Verdict.WORSE)
        if METRICS[metric].higher_is_better
        else (Verdict.WORSE, Verdict.BETTER)
    )
    assert within((published + width) - published, width, metric) is Verdict.REPRODUCED
    assert within((published - width) - published, width, metric) is Verdict.REPRODUCED
    assert within(1.0001 * width, width, metric) is up
    assert within(-1.0001 * width, width, metric) is down


def test_fewer_splits_than_printed_are_given_their_sampling_error():
    few = verdict(measured(0.875, sd=0.006, splits=3), min_splits=3)
    assert few.tolerance == pytest.approx(0.01 + 2 * 0.006 * math.sqrt(1 / 3 - 1 / 25))
    more = verdict(measured(0.875, sd=0.006, splits=12), min_splits=3)
    assert 0.01 < more.tolerance < few.tolerance


def test_a_protocol_may_be_judged_on_fewer_splits_and_the_verdict_says_so():
    part = PAPER.protocol.model_copy(update={"judged_on": 3})
    paper = PAPER.model_copy(update={"protocol": part})

    def found(splits):
        results = Results([measured(0.875, sd=0.006, splits=splits)])
        return judge_cells(paper, results, tolerances(), [PRINTED])[0]

    assert (found(3).verdict, found(3).note) == (Verdict.REPRODUCED, "3 of 25 splits")
    assert found(3).tolerance == pytest.approx(0.01 + 2 * 0.006 * math.sqrt(1 / 3 - 1 / 25))
    assert (found(2).verdict, found(2).note) == (Verdict.INCOMPLETE, "2 of 3 splits")
    assert found(25).note == ""


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        (0.875, Verdict.REPRODUCED),
        (0.885, Verdict.REPRODUCED),
        (0.865, Verdict.REPRODUCED),
        (0.8851, Verdict.BETTER),
        (0.8649, Verdict.WORSE),
    ],
)
def test_auroc_0_875_with_sd_0_005_is_reproduced_within_a_hundredth(mean, expected):
    found = verdict(measured(mean))
    assert found.verdict is expected
    assert found.tolerance == pytest.approx(0.01)
    assert found.difference == pytest.approx(mean - 0.875)
    assert found.measured == pytest.approx(mean)


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


def test_statistics_stand_beside_the_tolerance():
    found = verdict(measured(0.876))
    ours = Sample(0.876, 0.005, 25, 0.2)
    theirs = Sample(0.875, 0.005, 25, 0.2, half_unit=0.0005)
    expected = compare(ours, theirs, found.tolerance)
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
    assert verdict(few, min_splits=3).verdict is Verdict.REPRODUCED
    assert verdict(few, min_splits=4).verdict is Verdict.INCOMPLETE


def test_one_split_has_a_difference_but_no_interval():
    found = verdict(measured(0.875, splits=1), min_splits=1)
    assert found.verdict is Verdict.REPRODUCED
    assert found.comparison is None


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
    assert found.verdict is Verdict.IMPOSSIBLE
    assert "never released" in found.note


@pytest.mark.parametrize("fields", [{"delta": 1e-5}, {"test_share": 0.3}, {"evaluation": "folds"}])
def test_another_protocol_does_not_answer(fields):
    found = verdict(measured(0.875, **fields))
    assert found.verdict is Verdict.NOT_RUN
    assert "delta" in found.note
    assert verdict(measured(0.875, **fields), measured(0.875)).verdict is Verdict.REPRODUCED


def test_a_purely_private_method_answers_with_delta_zero():
    assert verdict(measured(0.875, delta=0.0)).verdict is Verdict.REPRODUCED


def test_results_answer_to_the_documents_of_their_configs():
    result = measured(0.875)
    for papers, expected in [
        (None, Verdict.REPRODUCED),
        (frozenset({"dp-ebm-2021"}), Verdict.REPRODUCED),
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


def test_the_tolerance_given_is_the_one_used():
    (found,) = judge_cells(
        PAPER, Results((measured(0.9),)), {"auc": Tolerance(absolute=0.03)}, [PRINTED]
    )
    assert (found.verdict, found.tolerance) == (Verdict.REPRODUCED, 0.03)


def test_all_184_cells_get_a_verdict_in_printed_order():
    found = judge_cells(PAPER, Results(()), tolerances())
    assert [v.published for v in found] == PAPER.cells()
    assert {v.verdict for v in found} == {Verdict.NOT_RUN, Verdict.IMPOSSIBLE}


def test_symbols_differ():
    assert len({v.symbol for v in Verdict}) == len(Verdict)


@given(st.floats(-1, 1), st.floats(1e-6, 1), st.floats(1, 10), st.sampled_from(list(METRICS)))
def test_a_wider_tolerance_never_makes_a_deviation(difference, width, factor, metric):
    if within(difference, width, metric) is Verdict.REPRODUCED:
        assert within(difference, factor * width, metric) is Verdict.REPRODUCED


@given(st.floats(1e-6, 1), st.sampled_from(list(METRICS)))
def test_better_one_way_is_worse_the_other(difference, metric):
    there, back = within(difference, 1e-7, metric), within(-difference, 1e-7, metric)
    assert {there, back} == {Verdict.BETTER, Verdict.WORSE}


@given(st.floats(0.5, 1.0))
def test_the_verdict_is_the_tolerance_on_the_difference_shown(mean):
    found = verdict(measured(mean, sd=0.0))
    assert found.verdict is within(found.difference, found.tolerance, "auc")


def test_synthetic_data_answer_to_nothing_printed():
    made_up = measured(PRINTED.mean, data_fingerprint=f"{SYNTHETIC_PREFIX}abc")
    found = verdict(replace(made_up, data=PRINTED.dataset))
    assert found.verdict is Verdict.NOT_RUN
    assert found.note == "results of synthetic data"
