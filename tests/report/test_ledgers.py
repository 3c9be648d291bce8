"""What ledgers say of releases and samplers, and why one does not hold."""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from dprepro.additive.shapes import Shape
from dprepro.privacy.guarantee_status import UNVERIFIED
from dprepro.release.planning import PlannedLedger
from dprepro.report.ledgers import (
    answer_heads,
    answers,
    bins,
    detail,
    ledger_in_full,
    ledger_json,
    ledger_overview,
    model_overview,
    scores,
    verdict,
)
from tests.privacy.entries import cited, gaussian, laplace, ledger
from tests.report.journals import task

TOO_LARGE = "epsilon too large for the samplers' distance"


def printed(given):
    return shown(ledger_in_full(given, "A ledger"))


def shown(renderable):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def planned(label, made, epsilon=1.0, error=""):
    return PlannedLedger(task(label, epsilon), made, error)


def words(text):
    """Return the words of each line that has any."""
    return [line.split() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("epsilon", "added"), [(0.1, "9e-121"), (1.0, "2e-120"), (8.0, "2e-117"), (1000.0, "1")]
)
def test_what_the_samplers_add_is_rounded_up(epsilon, added):
    given = ledger(laplace(1 / epsilon), epsilon=epsilon, delta=0.0)
    line = f"distance of 2^-400 in total variation, which adds at most {added} to delta\n"
    assert f"Samplers: exact up to a {line}" in printed(given)
    assert float(added) >= given.sampling_delta > 0.5 * float(added)


def test_no_sampler_is_named_where_none_of_ours_draws():
    assert "Samplers" not in printed(ledger(cited(0.5)))
    floating = ledger(laplace(8.0))
    floating.note_floating_point("a sum: float32")
    assert "Samplers" not in printed(floating)


def test_an_epsilon_that_is_too_large_for_the_samplers_is_a_reason():
    kept, broken = (ledger(laplace(1 / e), epsilon=e, delta=0.0) for e in (200.0, 1000.0))
    assert "The stated guarantee holds" in printed(kept)
    assert TOO_LARGE not in verdict(kept)
    assert f"The stated guarantee does not hold: {TOO_LARGE}" in printed(broken)
    assert verdict(broken).endswith(f"does not hold: {TOO_LARGE}")


def test_a_ledger_of_units_says_whose_epsilon_it_is_and_what_one_row_spends():
    made = ledger(gaussian(10.0), epsilon=1.0)
    before = verdict(made)
    assert "per" not in before
    made.state_per_unit("patient[0]", 2, (1.0, 1e-6))
    of_row = f"{made.spent_epsilon_of_row():.4g}"
    whose = f"per patient[0] with at most 2 rows (per row: epsilon {of_row})"
    assert f"(epsilon 1, delta 1e-06) {whose}, zero-out neighbours" in verdict(made)
    output = printed(made)
    assert "A ledger: (epsilon 1, delta 1e-06) per patient[0] with at most 2 rows, ze" in output
    assert "what an answer spends by itself: of one row" in output
    spent = f"{made.spent_epsilon():.4g}"
    assert f"by dp_accounting: {spent} of the stated 1 {whose}; under replace-one" in output


def test_a_ledger_that_is_missing_says_why_as_text_and_json():
    unverified, failed = planned("bare", None), planned("broken", None, error="no [luck]")
    assert "bare on adult: " in shown(detail(unverified))
    assert "broken on adult: no [luck]\n" in shown(detail(failed))
    place = {"dataset": "adult", "method": "bare", "domain": "observed", "epsilon": 1.0,
             "delta": 1e-6}  # fmt: skip
    assert ledger_json(unverified) == {**place, "unverified": True}
    assert ledger_json(failed) == {**place, "method": "broken", "error": "no [luck]"}


def test_a_ledger_as_json_has_all_entries():
    made = ledger(gaussian(10.0))
    found = ledger_json(planned("m", made))
    assert [entry["scale"] for entry in found["entries"]] == [made.entries[0].scale]
    assert (found["method"], found["epsilon"]) == ("m", 1.0)
    assert found["assumed_public"] == made.assumed_public
    assert shown(detail(planned("m", made))).startswith("m on adult: (epsilon 1")


def test_the_overview_has_a_line_for_each_relation_and_what_is_missing():
    made = ledger(gaussian(10.0))
    other = ledger(gaussian(5.0), epsilon=2.0)
    found = words(shown(ledger_overview([
        planned("bare", None), planned("half", made), planned("half", None, 2.0, "no luck"),
        planned("m", made), planned("m", other, 2.0),
    ])))  # fmt: skip
    at_one, at_two = (f"{one.spent_epsilon():.4g}" for one in (made, other))
    under = [f"{one.spent_epsilon('replace-one'):.4g}" for one in (made, other)]
    lines = [line for line in found if line[0] in ("bare", "half", "m", "replace-one")]
    assert lines[:6] == [
        ["bare", "?", "unverified"],
        ["half", "?", "failed"],
        ["half", "zero-out", at_one],
        ["replace-one", under[0]],
        ["m", "zero-out", at_one, at_two],
        ["replace-one", *under],
    ]
    said = [" ".join(line) for line in found]
    assert f"bare: {UNVERIFIED}" in said
    assert "half: no luck" in said
    assert "m: the stated guarantee holds" in said


def test_only_ledgers_with_samples_have_a_column_of_them():
    plain, sampled = gaussian(10.0), replace(gaussian(10.0), sampling=0.01)
    assert "sampled with" not in answer_heads(ledger(plain))
    both = ledger(plain, sampled)
    assert answer_heads(both)[5] == "sampled with"
    assert [row[5] for row in answers(both)] == ["1", "0.01"]
    assert len(answers(ledger(plain))[0]) == len(answer_heads(ledger(plain)))
    assert "by the moments accountant" in printed(ledger(sampled))
    assert "by the moments accountant" not in printed(both)
    assert "by the moments accountant" not in printed(ledger(plain))


def test_reasons_are_counted_in_the_right_number():
    made = ledger(gaussian(10.0))
    made.unaccounted.append("a")
    made.gaps.append("b")
    assert "does not hold: 1 read not covered by epsilon, 1 gap\n" in printed(made)
    made.unaccounted.append("c")
    made.gaps.append("d")
    assert "does not hold: 2 reads not covered by epsilon, 2 gaps\n" in printed(made)
    assert "does not hold: no answer named" in printed(ledger())
    assert verdict(ledger()).endswith("does not hold: it names no answer")
    overspent = ledger(laplace(0.5), delta=0.0)
    assert "does not hold: overspent\n" in printed(overspent)
    assert verdict(overspent).endswith("does not hold: it spends epsilon 2")


def test_a_ledger_in_full_has_its_releases_and_what_it_says_beside_them():
    made = ledger(gaussian(10.0), cited(0.5))
    made.assumed_public += ["names [x]", "bounds"]
    text = printed(made)
    assert ["a", "sum", "gaussian", "1", "(L2)", "10", "1", "(1,", "1e-06)"] in words(text)
    assert ["a", "model", "cited", "1", "(L2)", "-", "1", "(0.5,", "0)"] in words(text)
    assert "Taken as public: names [x]; bounds\n" in text
    assert "Gaps in the proof: none\n" in text


SHAPE = Shape(
    name="age [years]",
    labels=("[-inf, 30)", "[30, inf)"),
    edges=np.array([0.0, 30.0, 90.0]),
    values=np.array([-0.5, 0.25]),
    released=np.array([-0.5, 0.125]),
    counts=np.array([60.0, 40.4]),
    noise=np.array([0.01, 0.03]),
)


def shown_model(renderable) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_overview_has_a_line_a_feature_and_the_edits_in_order():
    text = shown_model(model_overview([SHAPE], "m.json", -1.25, ["age: set x", "age: set [y]"]))
    (line,) = [line for line in text.splitlines() if line.startswith(" age [years]")]
    assert line.split()[2:] == ["2", "-0.5", "0.25", "0.02", "yes"]
    assert "Intercept: -1.25" in text
    assert text.index("1. age: set x") < text.index("2. age: set [y]")
    assert "Edits: none" in shown_model(model_overview([SHAPE], "m.json", 0.0, []))


def test_of_several_classes_there_is_a_line_for_each_bin_and_class():
    both = np.column_stack([SHAPE.values, -SHAPE.values])
    noise = np.column_stack([SHAPE.noise, 2 * SHAPE.noise])
    shape = replace(SHAPE, values=both, released=both, noise=noise, classes=("no", "[b]"))
    lines = [line.split() for line in shown_model(bins(shape)).splitlines()[2:]]
    assert lines == [
        ["[-inf,", "30)", "no", "-0.5", "0.01", "60"],
        ["[b]", "0.5", "0.02"],
        ["[30,", "inf)", "no", "0.25", "0.03", "40"],
        ["[b]", "-0.25", "0.06"],
    ]
    text = shown_model(model_overview([shape], "m.json", np.array([0.5, -0.25]), []))
    assert "Intercepts: no 0.5, [b] -0.25" in text
    (line,) = [line for line in text.splitlines() if line.startswith(" age [years]")]
    assert line.split()[2:] == ["2", "-0.5", "0.5", "0.025"]


def test_bins_show_what_was_released_only_where_it_was_moved():
    first, second = shown_model(bins(SHAPE)).splitlines()[2:4]
    assert first.split() == ["[-inf,", "30)", "-0.5", "0.01", "60"]
    assert second.split() == ["[30,", "inf)", "0.25", "0.125", "0.03", "40"]


def test_scores_have_a_row_a_model():
    text = shown_model(scores({"model": {"auc": 0.91234567}, "as released": {"auc": 0.9}}))
    assert [line.split() for line in text.splitlines()] == [
        ["auc"],
        ["model", "0.91235"],
        ["as", "released", "0.9"],
    ]
