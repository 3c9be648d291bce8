import math
from decimal import Decimal

import pytest
from pydantic import ValidationError

from dprepro.judge.cell_claims import AheadInMost, CellClaim, NoticeableUpTo
from dprepro.judge.claim import half_unit
from dprepro.judge.claims import Claims, load_claims
from dprepro.judge.fact_claims import FactClaim
from dprepro.papers.cells import FOLDER
from dprepro.papers.document import load_documents
from dprepro.runtime.errors import DpreproError

FILE = "dp-ebm-2021/claims.yaml"
PAPER = load_documents()["dp-ebm-2021"]
CLAIMS = {claim.name: claim for claim in load_claims()[PAPER.paper]}


ALL = [claim for claims in load_claims().values() for claim in claims]


def test_every_kind_of_claim_is_in_use_and_every_document_has_claims():
    kinds = {*CellClaim.__subclasses__(), *FactClaim.__subclasses__()}
    assert {type(claim) for claim in ALL} == kinds
    assert set(load_claims()) == set(load_documents())


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
    cells = CLAIMS[name].cells(PAPER.cells())
    assert len(cells) == count
    assert len({cell.dataset for cell in cells}) == datasets
    assert {cell.epsilon for cell in cells} == epsilons


def test_claims_about_facts_speak_of_no_cells():
    facts = [claim for claim in CLAIMS.values() if isinstance(claim, FactClaim)]
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
    text = (FOLDER / FILE).read_text()
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
