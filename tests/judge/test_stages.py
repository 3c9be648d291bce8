"""Looks at a cell after more and more splits: error rates with known truth, and what goes on."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dprepro.judge.stages import doubled, seconds_of_a_split, standing
from dprepro.judge.statistics import LEVEL, Sample, compare, shares
from dprepro.judge.verdicts import Verdict, judge_cells
from dprepro.papers.document import load_documents
from dprepro.results.folder import Results, read_results
from dprepro.results.metrics import margins
from tests.report.journals import cell, records, spread, write

PAPER = load_documents()["dp-ebm-2021"]
PRINTED = next(
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
    (verdict,) = judge_cells(document, Results((found,)), margins(), [PRINTED])
    return verdict


def with_more(values, looks, **fields):
    """Return a result of 25 splits, to which a config with `looks` adds the rest of `values`."""
    more = cell(values, epsilon=4.0, **fields)
    added = replace(more, looks=looks, numbers={"auc": tuple(range(len(values)))})
    return replace(cell(values[:25], epsilon=4.0, **fields), more={PAPER.paper: added})


def test_a_verdict_rests_on_more_splits_where_the_first_look_decides_nothing():
    values = [*spread(PRINTED.mean, 0.0145, 25)] * 16
    found = judged(with_more(values, (25, 400)))
    assert judged(cell(values[:25], epsilon=4.0)).verdict is Verdict.INCONCLUSIVE
    assert found.verdict is Verdict.EQUIVALENT
    assert found.note == "25 printed, 400 of ours"
    assert found.result.splits("auc") == 400
    assert found.comparison.share == 1 - 1 / 256


def test_a_first_look_that_decides_is_kept():
    values = [*spread(PRINTED.mean + 0.1, 0.005, 25), *spread(PRINTED.mean, 0.005, 375)]
    found = judged(with_more(values, (25, 400)))
    assert found.verdict is Verdict.BETTER
    assert (found.result.splits("auc"), found.note) == (25, "")


def test_until_the_splits_of_the_next_look_are_there_the_last_one_counts():
    values = [*spread(PRINTED.mean, 0.0145, 25)] * 3
    found = judged(with_more(values, (25, 50, 100)))
    assert found.result.splits("auc") == 50
    assert found.note == "25 printed, 50 of ours"


def test_splits_that_are_added_to_another_document_do_not_count():
    found = with_more([*spread(PRINTED.mean, 0.0145, 25)] * 16, (25, 400))
    other = replace(found, more={"other": found.more[PAPER.paper]})
    assert judged(other).result.splits("auc") == 25


def test_a_cell_goes_on_while_more_splits_can_decide_it():
    looks = doubled(25, 400)
    near = judged(with_more([*spread(PRINTED.mean + 0.001, 0.012, 25)], looks))
    wide = judged(with_more([*spread(PRINTED.mean, 0.2, 25)], looks))
    far = judged(with_more([*spread(PRINTED.mean + 0.5, 0.01, 25)], looks))
    found = standing([near, wide, far], PAPER, looks)
    assert (found.open, found.limited, found.decided) == ((near,), (wide,), (far,))
    assert found.places == {("dp-ebm-gdp-2021", 4.0)}


def test_the_time_of_a_split_is_that_of_the_journal(tmp_path):
    took = [replace(r, seconds={"fit": 2.0 + r.task.split}) for r in records([0.8, 0.9, 0.7])]
    write(tmp_path, "a", took)
    assert seconds_of_a_split(read_results(tmp_path)) == {("dp-ebm-gdp-2021", 0.5): 3.0}
