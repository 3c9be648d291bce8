"""Results as text."""

from rich.console import Console

from dprepro.audit import audit, audit_in_one_run, find_case, find_one_run_case
from dprepro.audit.render import render


def text(results):
    console = Console(width=100, highlight=False)
    with console.capture() as capture:
        console.print(render(results), soft_wrap=True)
    return capture.get()


def test_a_row_gives_the_bound_and_the_verdict_and_a_line_the_pair():
    result = audit(find_case("gaussian", epsilon=4.0), 400, seed=0)
    heading, row, *_ = text([result]).splitlines()
    assert heading.split() == ["audited", "epsilon", ">=", "ledger", "stated", "verdict"]
    assert row.split() == ["gaussian", f"{result.lower_bound:.3f}", "4.000", "4", "within"]
    assert "gaussian (zero-out): a sum, and one more by its sensitivity. 400 runs" in text([result])


def test_an_excess_comes_with_the_reasons_that_the_ledger_names():
    result = audit(find_case("dpboost", "binary"), 60, seed=0)
    assert "EXCEEDED" in text([result])
    for gap in result.gaps:
        assert f"    - {gap}" in text([result])
    assert "names no reason" not in text([result])


def test_one_run_shows_both_of_its_bounds():
    result = audit_in_one_run(find_one_run_case("gaussian", epsilon=8.0), seed=0)
    heading, row, *_ = text([result]).splitlines()
    assert "if indep." in heading
    assert row.split()[1:3] == [f"{result.lower_bound:.3f}", f"{result.independent_bound:.3f}"]
    assert f"{result.correct} of 2500 guesses right" in text([result])
