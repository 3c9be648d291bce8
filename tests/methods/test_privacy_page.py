"""PRIVACY.md says where every method with a budget stands, and of no other."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pandas as pd

from dprepro.methods.entry import Guarantee
from dprepro.methods.registry import all_methods
from dprepro.privacy.gdp import epsilon_of, mu_of
from dprepro.privacy.guarantee_status import Noise

PAGE = Path(__file__).parents[2] / "PRIVACY.md"


def table_lines():
    """Return the lines of the section with the table of methods."""
    section = (
        PAGE.read_text(encoding="utf-8").split("## Where each method stands")[1].split("\n## ")[0]
    )
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
        in (page := flowing(PAGE.read_text(encoding="utf-8")))
    )
    assert f"on average, from {rows.min()} to {most}." in page
    assert f"0.5 for a row is {int(0.5 * rows.min())} to {0.5 * most:.0f} for a patient" in page
    assert f"is mu {mu:.3f}. A patient with {mean} rows then has mu {mean * mu:.1f}" in page
    assert f"which is epsilon {epsilon_of(mean * mu, 1e-5):.0f}. The patient with {most}" in page
    assert f"has epsilon {epsilon_of(most * mu, 1e-5):.0f}. If people have several rows" in page


def cells(line):
    """Return the names, and where it stands, of a row of the table."""
    first, *_, last = line.strip("| ").split(" | ")
    return re.findall(r"`([^`]+)`", first), last


def test_a_guarantee_is_for_real_numbers_only_where_noise_is_in_floating_point():
    rows = [cells(line) for line in table_lines() if line.startswith("| `")]
    for names, stands in rows:
        methods = [m for n, m in all_methods().items() if any(fnmatch(n, name) for name in names)]
        promised = [m for m in methods if m.guarantee is not Guarantee.NONE]
        rounded = any(m.noise is Noise.FLOATING_POINT for m in promised)
        assert stands.startswith("for real numbers") == rounded, names
    assert sum(stands.startswith("for real numbers") for _, stands in rows) == 3


def test_no_attack_is_said_to_be_open():
    page = flowing(PAGE.read_text(encoding="utf-8"))
    assert "not as computed" not in page
    assert "not repaired" not in page
