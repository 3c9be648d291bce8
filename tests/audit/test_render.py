"""Results as text."""

from dataclasses import replace

import pytest
from rich.console import Console

from dprepro.audit import audit, audit_in_one_run, find_case, find_one_run_case
from dprepro.audit.render import render


def text(results, width=1000):
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(render(results))
    return capture.get()


def test_a_row_gives_the_bound_and_the_verdict_and_a_line_the_pair():
    result = audit(find_case("gaussian", epsilon=4.0), 400, seed=0)
    heading, _, row, *_ = filter(str.strip, text([result]).splitlines())
    headings = ["audited", "epsilon", ">=", "ceiling", "reached", "ledger", "stated", "verdict"]
    assert heading.split() == headings
    bound, share = f"{result.lower_bound:.3f}", f"{result.lower_bound / 4:.0%}"
    assert row.split() == ["gaussian", bound, "4.000", share, "4.000", "4", "within"]
    assert "ceiling all that is spent" in text([result])
    assert "gaussian (zero-out): a sum, and one more by its sensitivity. 400 runs" in text([result])


def test_an_excess_comes_with_the_reasons_that_the_ledger_names():
    result = audit(find_case("dpboost", "binary"), 60, seed=0)
    assert "EXCEEDED" in text([result])
    for gap in result.gaps:
        assert f"    - {gap}" in text([result])
    assert "names no reason" not in text([result])


def test_one_run_shows_all_of_its_bounds_and_the_curve_of_one():
    result = audit_in_one_run(find_one_run_case("gaussian", epsilon=8.0), seed=0)
    heading, _, row, *_ = filter(str.strip, text([result]).splitlines())
    assert heading.index("by curve") < heading.index("if indep.")
    bounds = (result.lower_bound, result.curve_bound, result.independent_bound)
    assert row.split()[1:4] == [f"{bound:.3f}" for bound in bounds]
    assert "under a Gaussian trade-off curve" in text([result])
    assert f"{result.correct} of 2500 guesses right" in text([result])


@pytest.mark.parametrize("width", [60, 80])
def test_nothing_is_cut_on_a_narrow_screen(width):
    case = find_case("dpboost", "binary")
    result = replace(audit(case, 60, seed=0), subject="a-method-of-a-long-name/everywhere")
    shown = text([replace(result, epsilon=0.109000123)], width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    for word in ("a-method-of-a-", "everywhere", "0.109", "EXCEEDED", f"{result.lower_bound:.3f}"):
        assert word in shown


def test_the_verdict_stands_beside_a_long_name_at_80_columns():
    few = audit(find_case("gaussian", epsilon=1.0), 60, seed=0)
    named = replace(few, subject="dp-ebm-plus/transcript", task="binary")
    lines = text([named], 80).splitlines()
    assert sum("audited" in line for line in lines) == 1
    assert any("verdict" in line and "audited" in line for line in lines)


def test_words_below_say_what_the_verdicts_mean():
    few = audit(find_case("gaussian", epsilon=1.0), 60, seed=0)
    assert "within:" not in text([few])
    assert "EXCEEDED:" not in text([few])
    blind = replace(few, ceiling=replace(few.ceiling, epsilon=0.0))
    assert "within: the bound is not above" in text([blind])
    assert "ceiling 0.000: what is observed" in text([blind])
    assert "ceiling 0.000" not in text([few])
    refuted = text([replace(few, refuting_bound=2.0)])
    assert "EXCEEDED: the bound is above what is stated" in refuted
    ledger = text([replace(few, refuting_bound=0.9, spent_epsilon=0.5)])
    assert "above ledger: the bound is above what the ledger adds up to" in ledger


def test_runs_that_could_show_nothing_do_not_reassure():
    """300 runs at epsilon 1 read "within", and could hardly have shown anything else."""
    few = audit(find_case("gaussian", epsilon=1.0), 60, seed=0)
    assert few.says_little
    assert "too few runs" in text([few]).splitlines()[3]
    assert "That nothing was found says nothing: give more --trials" in text([few])
    many = audit(find_case("gaussian", epsilon=1.0), 4000, seed=0)
    assert not many.says_little
    assert "too few" not in text([many])
    assert few.to_json()["verdict"] == few.verdict.value == "too few runs"
    assert many.to_json()["verdict"] == "within"
    assert not few.unexplained


def test_a_pure_guarantee_and_an_excess_are_judged_by_their_own_rules():
    assert audit(find_case("laplace", epsilon=0.1), 60, seed=0).says_little
    assert not audit(find_case("laplace", epsilon=4.0), 400, seed=0).says_little
    broken = audit(find_case("dpboost", "binary"), 60, seed=0)
    assert "too few" not in text([broken])
