import io
from dataclasses import replace

from rich.console import Console

from dprepro.report.write.check import render_check, render_claims
from tests.report.claims import FAILED, NOT_RUN, REPORT, ROUNDED


def shown(renderable):
    # Narrow columns break lines; the words are what counts.
    console = Console(width=2000, file=io.StringIO(), record=True)
    console.print(renderable)
    return " ".join(console.export_text().split())


def test_a_claim_is_shown_with_its_words_figures_and_verdict():
    text = shown(render_claims([FAILED]))
    assert "dp-ebm-2021, section 4.1: With privacy, DP-EBMs are ahead" in text
    assert "best in 35 of 35 settings" in text
    assert "behind on pol at ε=0.5" in text
    assert "does not hold" in text


def test_a_claim_that_needs_rounding_says_so():
    assert shown(render_claims([ROUNDED])).startswith("Claims holds after rounding: dp-ebm-2021")


def test_a_check_shows_claims_and_fails_on_one_that_does_not_hold():
    text = shown(render_check(replace(REPORT, claims=[FAILED])))
    assert "does not hold" in text
    assert "claims that do not hold: 1" in text
    assert "Check passed" in shown(render_check(replace(REPORT, claims=[NOT_RUN])))


def test_a_stale_explanation_of_a_claim_is_named():
    text = shown(render_check(replace(REPORT, stale_claims=[NOT_RUN])))
    assert "the claim best-in-all of dp-ebm-2021 is listed" in text
