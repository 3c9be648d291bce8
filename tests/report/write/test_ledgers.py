"""What a ledger in full says of the samplers, and why it does not hold."""

import pytest
from rich.console import Console

from dprepro.report.write.ledgers import ledger_in_full, verdict
from tests.privacy.entries import cited, gaussian, laplace, ledger

TOO_LARGE = "epsilon too large for the samplers' distance"


def printed(given):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(ledger_in_full(given, "A ledger"))
    return capture.get()


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
    assert "what a release keeps alone: of one row" in output
    spent = f"{made.spent_epsilon_of_unit():.4g}"
    assert f"by dp_accounting: {spent} of the stated 1 {whose}; under replace-one" in output
