"""PRIVACY.md says where every method with a budget stands, and of no other."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pandas as pd

from dprepro.methods.registry import all_methods
from dprepro.privacy.gdp import epsilon_of, mu_of

PAGE = Path(__file__).parents[2] / "PRIVACY.md"


def table_lines():
    """Return the lines of the section with the table of methods."""
    section = PAGE.read_text().split("## Where each method stands")[1].split("\n## ")[0]
    return section.splitlines()


def test_the_table_has_every_method_with_a_budget():
    rows = [line.split("|")[1] for line in table_lines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    private = {name for name, method in all_methods().items() if method.takes_epsilon}
    assert {m for m in private if not any(fnmatch(m, name) for name in named)} == set()
    assert [name for name in named if not any(fnmatch(m, name) for m in private)] == []


def flowing(text):
    return " ".join(text.split())


def test_the_page_says_what_a_row_level_epsilon_is_for_a_patient(data_dir):
    table = pd.read_csv(data_dir / "parkinsons" / "parkinsons_updrs.data")
    rows = table["subject#"].value_counts()
    mu = mu_of(0.5, 1e-5)
    mean, most = round(rows.mean()), rows.max()
    assert (
        f"{len(table):,} rows of {len(rows)} patients: {mean} rows for each patient on average, "
        in (page := flowing(PAGE.read_text()))
    )
    assert f"on average, from {rows.min()} to {most}." in page
    assert f"0.5 for a row is {int(0.5 * rows.min())} to {0.5 * most:.0f} for a patient" in page
    assert f"is mu {mu:.3f}. A patient with {mean} rows then has mu {mean * mu:.1f}" in page
    assert f"which is epsilon {epsilon_of(mean * mu, 1e-5):.0f}. The patient with {most}" in page
    assert f"has epsilon {epsilon_of(most * mu, 1e-5):.0f}. Nothing" in page


def test_no_method_is_said_to_stand_whose_low_bits_give_rows_away():
    rows = [line for line in table_lines() if line.startswith("| `dp")]
    attacked = [r for r in rows if "`dp-ebm-gdp`," in r or r.startswith("| `dpboost-sound`")]
    assert len(attacked) == 2
    assert all("for real numbers; not as computed" in row for row in attacked)
    assert "as in every library" not in flowing(PAGE.read_text())
