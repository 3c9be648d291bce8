""""""

import math
from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import ValidationError

from dprepro.judge.claim_kinds import (
    AheadInMost,
    CellClaim,
    FactClaim,
    Finding,
    NoticeableUpTo,
    half_unit,
)
from dprepro.judge.claims import Claims, Outcome, judge_claims, load_claims
from dprepro.judge.verdicts import Verdict, judge_cells
from dprepro.papers.document import load_documents
from dprepro.papers.published_cell import FOLDER
from dprepro.results.folder import Results
from dprepro.results.margins import margins
from dprepro.runtime.errors import DpreproError
from tests.report.claims import FAILED, NOT_RUN
from tests.report.journals import SPLITS, cell, spread

PAPER = load_documents()["dp-ebm-2021"]
CLAIMS = {c.name: c for c in load_claims()[PAPER.paper] if isinstance(c, CellClaim)}
PUBLIC = [c for c in PAPER.cells() if c.dataset != "healthcare"]
INF = math.inf


def measured(changes=None, left_out=(), splits=SPLITS):
    """Verdicts on results that are the printed ones, but for `changes` and datasets left out.

    `changes` maps (dataset, method, epsilon) to a mean; None anywhere matches all.
    """
    cells = []
    for printed in PUBLIC:
        if printed.dataset in left_out:
            continue
        place = (printed.dataset, printed.method, printed.epsilon)
        mean = printed.mean
        for pattern, value in (changes or {}).items():
            if all(p in (None, own) for p, own in zip(pattern, place, strict=True)):
                mean = value
        cells.append(
            cell(
                spread(mean, printed.std, splits),
                printed.metric,
                dataset=printed.dataset,
                label=printed.method,
                epsilon=printed.epsilon,
            )
        )
    return judge_cells(PAPER, Results(tuple(cells)), margins())


def claim_verdict(name, verdicts):
    (found,) = judge_claims(PAPER.paper, [CLAIMS[name]], verdicts, margins())
    return found


@pytest.mark.parametrize("name", list(CLAIMS))
def test_the_papers_own_cells_bear_out_its_claims(name):
    assert claim_verdict(name, judge_cells(PAPER, Results(()), margins())).whole.holds


@pytest.mark.parametrize("name", list(CLAIMS))
def test_results_that_equal_the_printed_ones_hold_but_leave_out_private_data(name):
    found = claim_verdict(name, measured())
    assert found.outcome is Outcome.HOLDS
    assert found.measured.figures == pytest.approx(found.published.figures)
    assert {v.published.dataset for v in found.impossible} == {"healthcare"}
    assert found.missing == ()


@pytest.mark.parametrize("name", list(CLAIMS))
def test_without_results_a_claim_is_not_run_and_names_every_cell(name):
    found = claim_verdict(name, judge_cells(PAPER, Results(()), margins()))
    assert (found.outcome, found.measured, found.published) == (Outcome.NOT_RUN, None, None)
    assert set(found.missing) == {
        c for c in CLAIMS[name].cells(PAPER.cells()) if c.dataset != "healthcare"
    }


@pytest.mark.parametrize("name", list(CLAIMS))
def test_what_only_private_data_could_tell_is_impossible(name):
    verdicts = [replace(v, verdict=Verdict.IMPOSSIBLE) for v in measured()]
    assert claim_verdict(name, verdicts).outcome is Outcome.IMPOSSIBLE


def test_too_few_splits_count_as_not_run():
    found = claim_verdict("average-auroc", measured(splits=3))
    assert found.outcome is Outcome.NOT_RUN
    assert found.measured is None


def test_partial_results_show_how_far_they_go():
    found = claim_verdict("lightgbm-ahead", measured(left_out=["wine-white", "pol"]))
    assert found.outcome is Outcome.NOT_RUN
    assert found.measured.figures == {"ahead": 3, "datasets": 5}
    assert {c.dataset for c in found.missing} == {"wine-white", "pol"}


def test_averages_are_compared_on_the_same_datasets():
    found = claim_verdict("average-auroc", measured())
    assert found.measured.figures["DPBoost"] == pytest.approx((0.734 + 0.465 + 0.716) / 3)
    assert found.whole.figures["DPBoost"] == pytest.approx((0.734 + 0.465 + 0.567 + 0.716) / 4)
    assert "DPBoost 0.638" in found.measured.text


@pytest.mark.parametrize(
    ("shift", "outcome"), [(0.05, Outcome.FAILS), (-0.05, Outcome.FAILS), (0.004, Outcome.HOLDS)]
)
def test_an_average_may_be_off_by_the_margin(shift, outcome):
    changes = {
        (dataset, method, 4.0): next(
            c.mean for c in PUBLIC if (c.dataset, c.method, c.epsilon) == (dataset, method, 4.0)
        )
        + shift
        for dataset in ("adult", "credit", "telco")
        for method in ("dp-ebm-gdp-2021", "dp-ebm-classic-2021")
    }
    assert claim_verdict("average-auroc", measured(changes)).outcome is outcome


@pytest.mark.parametrize(
    ("private", "words"),
    [
        (0.869, "holds after rounding"),
        (0.867, "does not hold"),
        (0.873, "holds"),
        (0.95, "holds"),
    ],
)
def test_a_loss_counts_up_to_the_rounding_of_its_bound(private, words):
    # The twin stands at 0.923: losses of 0.054, 0.056, 0.05 and a gain.
    found = claim_verdict("loss-at-most", measured({("adult", "dp-ebm-gdp-2021", 0.5): private}))
    assert found.words == words
    assert (found.outcome is Outcome.HOLDS) == words.startswith("holds")
    assert found.measured.figures["adult"] == pytest.approx(0.923 - private)


@pytest.mark.parametrize(
    ("place", "mean"),
    [(("telco", "dpboost-2021", 8.0), 0.9), (("pol", "dp-linear", 0.5), 1.0)],
)
def test_one_rival_ahead_once_refutes_best_in_all(place, mean):
    found = claim_verdict("best-in-all", measured({place: mean}))
    assert found.outcome is Outcome.FAILS
    assert found.measured.figures == {"won": 34, "settings": 35}
    assert f"behind on {place[0]} at ε={place[2]:g}" in found.measured.text
    assert found.published.figures == {"won": 35, "settings": 35}


def test_either_variant_may_be_the_best():
    changes = {("adult", "dp-ebm-gdp-2021", 1.0): 0.1, ("telco", "dp-ebm-classic-2021", 1.0): 0.1}
    assert claim_verdict("best-in-all", measured(changes)).outcome is Outcome.HOLDS


def test_a_tie_is_not_ahead():
    changes = {("adult", None, 1.0): 0.7}
    assert claim_verdict("best-in-all", measured(changes)).measured.figures["won"] == 34


def test_the_number_of_settings_is_part_of_the_claim():
    claim = CLAIMS["best-in-all"].model_copy(update={"settings": 41})
    (found,) = judge_claims(PAPER.paper, [claim], measured(), margins())
    assert not found.whole.holds
    assert found.measured.holds


def test_differences_above_the_epsilon_refute_that_they_are_only_below_it():
    far = {(None, "dp-ebm-classic-2021", epsilon): 0.3 for epsilon in (2.0, 4.0, 8.0)}
    found = claim_verdict("gdp-against-classic", measured(far))
    assert found.outcome is Outcome.FAILS
    assert found.measured.figures["share_above"] == 1.0
    assert found.measured.figures["share_up_to"] == found.published.figures["share_up_to"]


def test_differences_nowhere_refute_it_as_well():
    same = {
        (c.dataset, "dp-ebm-classic-2021", c.epsilon): c.mean
        for c in PUBLIC
        if c.method == "dp-ebm-gdp-2021"
    }
    found = claim_verdict("gdp-against-classic", measured(same))
    assert found.measured.figures == {"share_up_to": 0.0, "share_above": 0.0}
    assert found.outcome is Outcome.FAILS


def test_lower_rmse_is_ahead():
    found = claim_verdict("lightgbm-ahead", measured({("pol", "lightgbm", INF): 50.0}))
    assert found.measured.figures == {"ahead": 4, "datasets": 7}
    assert "pol" not in found.measured.text
    assert found.outcome is Outcome.HOLDS


def test_half_of_the_datasets_is_not_over_half():
    behind = {("pol", "lightgbm", INF): 50.0, ("wine-white", "lightgbm", INF): 5.0}
    assert claim_verdict("lightgbm-ahead", measured(behind)).outcome is Outcome.FAILS


def test_only_an_unexplained_failure_counts():
    found = claim_verdict("best-in-all", measured({("telco", "dpboost-2021", 8.0): 0.9}))
    assert found.is_unexplained
    assert not replace(found, explanation="known").is_unexplained
    assert not claim_verdict("best-in-all", measured()).is_unexplained


FACTS = {c.name: c for c in load_claims()[PAPER.paper] if isinstance(c, FactClaim)}
REPORT = load_documents()["replication-report-2025"]
RANGES = {c.name: c for c in load_claims()[REPORT.paper]}


@pytest.mark.parametrize(
    ("name", "outcome"), [("table-1-adult", Outcome.HOLDS), ("table-1-pol", Outcome.FAILS)]
)
def test_a_fact_is_judged_without_results(name, outcome):
    (found,) = judge_claims(PAPER.paper, [FACTS[name]], [], margins())
    assert found.outcome is outcome
    assert found.is_unexplained is (outcome is Outcome.FAILS)
    assert found.whole is None
    assert (found.missing, found.impossible) == ((), ())


def test_a_fact_shows_what_is_stated_and_what_is_found():
    (found,) = judge_claims(PAPER.paper, [FACTS["table-1-pol"]], [], margins())
    assert found.published.text == "rows 15000, features 49"
    assert found.measured.text == "rows 15000, features 48; not as stated: features"


def in_range(mean, splits=3, **changed):
    """The verdict on the range at epsilon 0.1 where GDP has this mean and classic has 0.78."""
    claim = RANGES["adult-strong-privacy"].model_copy(update=changed)
    cells = [
        cell(
            spread(value, 0.01, splits), "auc", dataset="adult", label=label, epsilon=0.1,
            delta=1e-5,
        )
        for label, value in (("dp-ebm-classic", 0.78), ("dp-ebm-gdp", mean))
    ]  # fmt: skip
    asked = claim.unprinted(REPORT.paper)
    more = judge_cells(REPORT, Results(tuple(cells)), margins(), asked)
    (found,) = judge_claims(REPORT.paper, [claim], [], margins(), more)
    return found


def test_a_range_is_judged_on_results_that_no_printed_cell_asks_for():
    found = in_range(0.80)
    assert (found.outcome, found.whole) == (Outcome.HOLDS, None)
    assert (found.published.holds, found.published.text) == (True, "0.77 to 0.81")
    assert found.measured.text == "0.78 to 0.8"
    # The standard error is 0.01 / sqrt(3): 0.815 + 2 sqrt(2) 0.0058 = 0.8313.
    assert in_range(0.83).outcome is Outcome.HOLDS
    assert in_range(0.833).outcome is Outcome.FAILS
    assert in_range(0.833, high=Decimal("0.90")).outcome is Outcome.HOLDS


def test_a_range_needs_all_its_results_in_full():
    found = in_range(0.80, splits=2)
    assert (found.outcome, found.measured) == (Outcome.NOT_RUN, None)
    assert len(found.missing) == 2


def test_notes_name_what_is_missing_and_left_out():
    lines = NOT_RUN.notes
    assert "Cells missing: adult 20, credit 20, telco 20" in lines[0]
    assert lines[1] == "20 cells left out: real patient data that was never released."
    assert not any("Explained" in line or "contradict it" in line for line in lines)


def test_notes_say_when_the_document_contradicts_itself():
    contradicted = replace(FAILED, whole=Finding(False, {}, "best in 39 of 40 settings"))
    assert any("contradict it: best in 39 of 40" in line for line in contradicted.notes)


def test_explanations_are_shown():
    assert replace(FAILED, explanation="the rival tunes").notes[-1] == "Explained: the rival tunes"


def test_a_note_of_the_claim_is_among_them_where_there_is_one():
    noted, silent = (
        replace(FAILED, claim=FAILED.claim.model_copy(update={"note": note}))
        for note in ("the grid is not stated", "")
    )
    assert noted.notes == [*silent.notes, "the grid is not stated"]
    assert "" not in silent.notes


FILE = "dp-ebm-2021/claims.yaml"
ALL_CLAIMS = {claim.name: claim for claim in load_claims()[PAPER.paper]}


ALL = [claim for claims in load_claims().values() for claim in claims]


def test_every_kind_of_claim_is_in_use_and_every_document_has_claims():
    kinds = {*CellClaim.__subclasses__(), *FactClaim.__subclasses__()}
    assert {type(claim) for claim in ALL} == kinds
    # Of these all cells are printed only: nothing here could be held against a claim.
    assert set(load_documents()) - set(load_claims()) == {"dp-gbdt-2021", "dp-xgboost-2022"}


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.name)
def test_claims_give_their_place_and_say_what_is_stated(claim):
    assert claim.section.split()[0] in {"section", "Table", "Figure", "slide"}
    assert claim.states.endswith(".")
    assert len(claim.states.split()) > 4


@pytest.mark.parametrize(
    ("name", "datasets", "epsilons", "count"),
    [
        ("average-auroc", 4, {4.0}, 16),
        ("loss-at-most", 4, {0.5, math.inf}, 8),
        ("best-in-all", 8, {0.5, 1.0, 2.0, 4.0, 8.0}, 160),
        ("figure-1-classic", 4, {0.5, 1.0, 2.0, 4.0, 8.0}, 60),
        ("gdp-against-classic", 8, {0.5, 1.0, 2.0, 4.0, 8.0}, 80),
        ("lightgbm-ahead", 8, {math.inf}, 16),
    ],
)
def test_claims_speak_of_these_cells(name, datasets, epsilons, count):
    cells = ALL_CLAIMS[name].cells(PAPER.cells())
    assert len(cells) == count
    assert len({cell.dataset for cell in cells}) == datasets
    assert {cell.epsilon for cell in cells} == epsilons


def test_claims_about_facts_speak_of_no_cells():
    facts = [claim for claim in ALL_CLAIMS.values() if isinstance(claim, FactClaim)]
    assert len(facts) > 5
    for claim in facts:
        assert (claim.cells(PAPER.cells()), claim.unprinted(PAPER.paper)) == ([], [])


def test_a_range_asks_for_cells_that_are_not_printed():
    report = {claim.name: claim for claim in load_claims()["replication-report-2025"]}
    asked = report["adult-weak-privacy"].unprinted("replication-report-2025")
    assert {(c.dataset, c.method, c.epsilon, c.metric) for c in asked} == {
        ("adult", method, epsilon, "auc")
        for method in ("dp-ebm-classic", "dp-ebm-gdp")
        for epsilon in (4.0, 8.0)
    }
    assert report["adult-weak-privacy"].range == "0.88 to 0.89"
    assert report["linear-regression-fails"].range == "at least 1000"


@pytest.mark.parametrize(("printed", "half"), [("0.62", 0.005), ("0.050", 0.0005), ("40", 0.5)])
def test_half_a_unit_follows_the_digits_as_printed(printed, half):
    assert half_unit(Decimal(printed)) == pytest.approx(half)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: best-in-all", "name: loss-at-most", "two claims are called 'loss-at-most'"),
        ("methods: dpboost-2021,", "methods: dbpoost,", "did you mean 'dpboost-2021'"),
        ("value: 32561", "value: many", "figures.rows.value"),
        ("relation: at most", "relation: below", "Allowed: is, at most"),
        ("quantity: rows, of", "quantity: rows, off", "unknown key 'off'|did you mean 'of'"),
        ("params: {num_leaves: 31}", "params: {}", "give `params`, `grid` or `keys`"),
        ("method: lightgbm, params", "epsilon: 1, params", "need a `method`"),
        ("config: wine-white, keys", "method: ebm, keys", "need a `config`"),
        ("method: lightgbm", "method: dpboost-2021", "'dpboost-2021' is not printed together"),
        ("epsilon: 0.5", "epsilon: 0.7", "no printed cell has 0.7"),
        ("value: 0.62", "value: high", "figures.DPBoost.value"),
        ("rivals: ", "rival: ", "unknown key"),
        ("[dp-ebm-gdp-2021, dp-ebm-classic-2021]", "[dp-ebm-gdp-2021]", "noticeable.*methods"),
        ("paper: dp-ebm-2021", "paper: dp-ebm-1921", "unknown document"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, old, new, message):
    text = (FOLDER / FILE).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(text.replace(old, new, 1))
    with pytest.raises(DpreproError, match=message):
        load_claims(tmp_path)


def test_a_claim_says_what_is_stated():
    fields = {"name": "x", "section": "1", "method": "ebm", "rival": "lightgbm"}
    assert AheadInMost(**fields, states="S").note == ""
    with pytest.raises(ValidationError, match="states"):
        AheadInMost(**fields, states="")


@pytest.mark.parametrize("methods", [["a"], ["a", "b", "c"]])
def test_two_methods_differ_from_each_other(methods):
    with pytest.raises(ValidationError, match="methods"):
        NoticeableUpTo(name="x", section="1", states="S", methods=methods, epsilon=1)


@pytest.mark.parametrize(
    ("bounds", "words", "bound"),
    [
        ({"low": "0.1"}, "at least 0.1", 0.1),
        ({"high": "0.2"}, "at most 0.2", 0.2),
        ({"low": "0", "high": "0.20"}, "0 to 0.20", 0.0),
        ({}, None, None),
    ],
)
def test_a_range_has_one_bound_or_two(bounds, words, bound):
    entry = {
        "name": "x", "section": "1", "states": "S", "table": "1", "dataset": "adult",
        "methods": "ebm", "epsilons": "inf", "metric": "auc", **bounds,
    }  # fmt: skip
    if words is None:
        with pytest.raises(ValidationError, match="give `low`, `high`, or both"):
            Claims(paper="p", within=[entry])
        return
    (claim,) = Claims(paper="p", within=[entry]).all()
    (asked,) = claim.unprinted("p")
    assert (claim.range, asked.mean, asked.std) == (words, bound, None)
