"""Each number of each claim matters: with another number the claim comes out otherwise."""

from decimal import Decimal

import pytest

from dprepro.judge.claims import load_claims
from dprepro.judge.deviations import load_claim_deviations
from dprepro.judge.fact_claims import Computed, FactClaim, Figure, Repeats, Settings
from dprepro.runtime.errors import DpreproError

FACTS = [
    (paper, claim)
    for paper, claims in load_claims().items()
    for claim in claims
    if isinstance(claim, FactClaim)
]
EXPLAINED = {(entry.paper, entry.claim) for entry in load_claim_deviations()}


def of(kind):
    return [
        pytest.param(claim, id=f"{paper}-{claim.name}")
        for paper, claim in FACTS
        if isinstance(claim, kind) and (paper, claim.name) not in EXPLAINED
    ]


@pytest.mark.parametrize(("paper", "claim"), FACTS, ids=lambda value: getattr(value, "name", value))
def test_a_fact_is_as_stated_or_has_a_reviewed_reason(paper, claim):
    found = claim.establish()
    assert found.holds is ((paper, claim.name) not in EXPLAINED)
    assert ("not as stated" in found.text) is not found.holds
    assert claim.stated()


@pytest.mark.parametrize("claim", of(Computed))
def test_another_number_would_not_be_computed(claim):
    for title, figure in claim.figures.items():
        other = figure.value * 2 + 1 if figure.relation == "is" else figure.value / 1000
        changed = {**claim.figures, title: figure.model_copy(update={"value": Decimal(other)})}
        found = claim.model_copy(update={"figures": changed}).establish()
        assert not found.holds
        assert found.text.endswith(f"not as stated: {title}")


def other_value(value):
    if isinstance(value, list):
        return [*value, 1]
    return 7.5 if value is None else value * 2


@pytest.mark.parametrize("claim", of(Settings))
def test_another_setting_would_not_be_found(claim):
    for place, entry in enumerate(claim.settings):
        for part in ("keys", "grid", "params"):
            for name, value in getattr(entry, part).items():
                values = {**getattr(entry, part), name: other_value(value)}
                entries = list(claim.settings)
                entries[place] = entry.model_copy(update={part: values})
                found = claim.model_copy(update={"settings": entries}).establish()
                assert not found.holds
                assert f"not as stated: {entry.method or entry.config} has {name} " in found.text
                assert found.figures["agree"] == found.figures["values"] - 1


@pytest.mark.parametrize("claim", of(Repeats))
@pytest.mark.parametrize("field", ["value", "std"])
def test_another_repeated_number_would_not_agree(claim, field):
    for place, row in enumerate(claim.rows):
        number = getattr(row, field)
        if number is None:
            continue
        rows = list(claim.rows)
        unit = Decimal(1).scaleb(number.as_tuple().exponent)
        rows[place] = row.model_copy(update={field: number + unit})
        found = claim.model_copy(update={"rows": rows}).establish()
        assert not found.holds
        assert found.figures == {"agree": len(rows) - 1, "repeated": len(rows)}
        assert found.text.startswith(f"{len(rows) - 1} of {len(rows)} agree with Table ")
        assert f"{row.dataset}, {row.method}, ε={row.epsilon:g}: " in found.text


def test_a_number_that_is_printed_nowhere_is_an_error():
    claim = next(claim for _, claim in FACTS if isinstance(claim, Repeats))
    row = claim.rows[0].model_copy(update={"epsilon": 77.0})
    with pytest.raises(DpreproError, match="at epsilon 77 in table"):
        claim.model_copy(update={"rows": [row]}).establish()


def test_a_fact_without_a_rule_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        FactClaim(name="x", section="1", states="S")


def test_whole_numbers_are_shown_in_full_and_others_with_four_digits():
    parts = {"whole": 1234567, "other": 0.123456}
    figures = {
        title: Figure(quantity="total", of={"parts": [part]}, value=str(part))
        for title, part in parts.items()
    }
    claim = Computed(name="x", section="1", states="S", figures=figures)
    assert claim.establish().text == "whole 1234567, other 0.1235"
