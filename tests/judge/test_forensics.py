"""How far results under a hypothesis lie from a printed column."""

from dataclasses import replace

import numpy as np
import pytest

from dprepro.judge.forensics import columns_of, distance
from dprepro.judge.statistics import Sample, compare
from dprepro.papers.cells import PublishedCell
from dprepro.papers.document import load_documents
from dprepro.papers.hypotheses import Hypothesis, Question
from dprepro.results.folder import Results, read_results
from dprepro.runtime.errors import DpreproError
from tests.report.journals import cell, records, spread, write

PAPER = "dp-ebm-2021"
DOCUMENTS = list(load_documents().values())
DOCUMENT = load_documents()[PAPER]
PRINTED = {
    c.epsilon: c
    for c in load_documents()[PAPER].cells()
    if (c.table, c.dataset, c.method) == ("2", "adult", "dpboost-2021")
}


def question(*labels, **changes):
    tried = [Hypothesis(label=label, says="a setting") for label in labels]
    fields = {"paper": PAPER, "table": "2", "method": "dpboost-2021", "datasets": ["adult"]}
    fields |= {"question": "which?", "tried": tried, "finding": "unknown", "says": "unknown"}
    return Question(**{**fields, **changes})


def journal(folder, shifts, sd=0.02, splits=25, epsilons=tuple(PRINTED), name="mine", **fields):
    """Write results that lie so far from the printed column: label -> shift."""
    lines = [
        record
        for label, shift in shifts.items()
        for epsilon in epsilons
        for record in records(
            spread(PRINTED[epsilon].mean + shift, sd, splits), label, epsilon, **fields
        )
    ]
    write(folder, name, lines)
    return folder


def columns(folder, *questions):
    return columns_of(questions, DOCUMENTS, read_results(folder))


def test_z_is_that_of_the_verdicts():
    printed = PublishedCell(
        PAPER, "2", "adult", "dpboost-2021", 0.5, "auc", 0.558, 0.045, decimals=3, std_decimals=3
    )
    found = distance(printed, DOCUMENT, cell(spread(0.6, 0.03, 9)))
    ours = Sample(0.6, 0.03, 9)
    expected = compare(
        ours, Sample(0.558, 0.045, 25, half_unit=0.0005, sd_half_unit=0.0005), margin=0.005
    )
    assert found.z == pytest.approx(expected.z)
    assert (found.mean, found.sd) == (pytest.approx(0.6), pytest.approx(0.03))
    assert found.splits == 9


def test_one_split_has_no_distance():
    assert distance(PRINTED[0.5], DOCUMENT, cell([0.6])) is None


def test_the_sum_of_squares_of_a_true_hypothesis_is_about_the_number_of_cells(tmp_path):
    """Simulated splits of both sides: the mean of the sum is that of 5 squares of Student's t."""
    rng = np.random.default_rng(0)
    totals = []
    for _ in range(2000):
        theirs, ours = rng.normal(0.7, 0.05, (2, 5, 25))
        zs = [
            distance(
                PublishedCell(PAPER, "2", "adult", "m", 1.0, "auc", a.mean(), a.std(ddof=1),
                              decimals=9),
                DOCUMENT, cell(b.tolist()),
            ).z
            for a, b in zip(theirs, ours, strict=True)
        ]  # fmt: skip
        totals.append(np.square(zs).sum())
    assert np.mean(totals) == pytest.approx(5 * 48 / 46, rel=0.05)


def test_trials_come_the_nearest_first_and_what_was_not_run_last(tmp_path):
    journal(tmp_path, {"far": 0.05, "near": 0.002})
    (column,) = columns(tmp_path, question("not run", "far", "near"))
    assert [trial.hypothesis.label for trial in column.trials] == ["near", "far", "not run"]
    near, far, missing = column.trials
    assert near.sum_of_squares < 5 < far.sum_of_squares
    assert far.sum_of_squares == pytest.approx(sum(d.z**2 for d in far.distances))
    assert [d.printed.epsilon for d in far.distances] == [0.5, 1, 2, 4, 8]
    assert missing.sum_of_squares is None
    assert (near.splits, missing.splits) == ((25, 25), (0, 0))


def test_no_hypothesis_is_judged_by_some_of_its_cells(tmp_path):
    journal(tmp_path, {"half": 0.0}, epsilons=(0.5, 1.0))
    (column,) = columns(tmp_path, question("half"))
    (trial,) = column.trials
    assert [d is None for d in trial.distances] == [False, False, True, True, True]
    assert trial.sum_of_squares is None


@pytest.mark.parametrize("other", [{"delta": 1e-5}, {"test_share": 0.3}])
def test_results_by_another_protocol_do_not_count(tmp_path, other):
    journal(tmp_path, {"setting": 0.0}, **other)
    (column,) = columns(tmp_path, question("setting"))
    assert column.trials[0].splits == (0, 0)


def test_other_rows_are_those_of_the_card_that_the_hypothesis_names(tmp_path):
    journal(tmp_path, {"setting": 0.0}, dataset="telco")
    elsewhere = [Hypothesis(label="setting", says="on other rows", dataset="telco")]
    (column,) = columns(tmp_path, question(tried=elsewhere))
    assert column.trials[0].sum_of_squares < 1e-6
    (column,) = columns(tmp_path, question("setting"))
    assert column.trials[0].sum_of_squares is None


def test_a_label_with_two_settings_is_refused(tmp_path):
    journal(tmp_path, {"setting": 0.0})
    journal(tmp_path, {"setting": 0.1}, name="other", params={"n_trees": 9})
    with pytest.raises(DpreproError, match=r"2 results .* in mine, other; give each a label"):
        columns(tmp_path, question("setting"))


def test_the_fewest_and_the_most_splits_of_a_cell_are_told(tmp_path):
    first, *others = PRINTED
    journal(tmp_path, {"setting": 0.0}, splits=9, epsilons=(first,))
    journal(tmp_path, {"setting": 0.0}, splits=25, epsilons=others, name="other")
    (column,) = columns(tmp_path, question("setting"))
    assert column.trials[0].splits == (9, 25)


def test_two_splits_are_enough_and_one_beside_others_is_left_out(tmp_path):
    journal(tmp_path, {"setting": 0.0}, splits=2)
    journal(tmp_path, {"setting": 0.1}, splits=1, name="other", params={"n_trees": 9})
    (column,) = columns(tmp_path, question("setting"))
    assert column.trials[0].splits == (2, 2)


def test_of_two_settings_that_of_the_document_counts():
    own = [cell(spread(c.mean, 0.02), label="setting", epsilon=e) for e, c in PRINTED.items()]
    others = [
        replace(cell(spread(0.1, 0.02), label="setting", epsilon=e), papers=frozenset({"another"}))
        for e in PRINTED
    ]
    (column,) = columns_of([question("setting")], DOCUMENTS, Results((*others, *own)))
    assert column.trials[0].sum_of_squares == pytest.approx(0)


def test_each_dataset_of_a_question_is_a_column(tmp_path):
    journal(tmp_path, {"setting": 0.0})
    found = columns(tmp_path, question("setting", datasets=["adult", "telco"]))
    assert [column.dataset for column in found] == ["adult", "telco"]
    assert found[1].trials[0].sum_of_squares is None
