"""How a method draws its noise is declared once; ledgers of fits, commands and pages agree."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.methods.entry import Guarantee
from dprepro.methods.registry import all_methods
from dprepro.privacy.budget import Division
from dprepro.privacy.guarantee_status import Noise
from dprepro.privacy.mechanisms import NoiseSource
from tests.methods.test_methods import PRIVATE, fit, ids

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "PRIVACY.md"
EXACT_PAGE = ROOT / "docs" / "evidence" / "exact.md"
METHODS = all_methods()
FLOATING_POINT = sorted(n for n, m in METHODS.items() if m.noise is Noise.FLOATING_POINT)
EXACT = [(method, task) for method, task in PRIVATE if method.noise is Noise.EXACT]

pytestmark = pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning")


def test_every_method_with_a_budget_says_how_it_draws_noise_and_no_other_does():
    for method in METHODS.values():
        assert (method.noise is not None) == method.takes_epsilon, method.name


@pytest.mark.parametrize(("method", "task"), PRIVATE, ids=ids(PRIVATE))
def test_the_ledger_of_a_fit_says_the_same(method, task):
    ledger = fit(method, task)[0].ledger_
    assert bool(ledger.floating_point) == (method.noise is Noise.FLOATING_POINT)
    assert ledger.summary()["floating_point"] == ledger.floating_point
    # How the budget of a unit with several rows is divided follows from the releases, too.
    is_sampled = any(entry.sampling < 1 for entry in ledger.entries)
    is_gaussian = not is_sampled and all(e.mechanism == "gaussian" for e in ledger.entries)
    assert not is_sampled or method.divides is Division.NONE
    assert is_gaussian or method.divides is not Division.GAUSSIAN
    if method.guarantee is Guarantee.APPROXIMATE and is_gaussian:
        assert method.divides is not Division.GROUP


class Trap:
    """A generator that nothing may draw from."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was drawn in floating point")


@pytest.mark.parametrize(("method", "task"), EXACT, ids=ids(EXACT))
def test_a_method_that_is_declared_exact_never_draws_from_numpys_generator_of_noise(
    method, task, monkeypatch
):
    """Public choices come from another generator, without a seed."""
    start = NoiseSource.__init__

    def trapped(self, ledger, seed):
        start(self, ledger, seed)
        self.generator = Trap()

    monkeypatch.setattr(NoiseSource, "__init__", trapped)
    assert fit(method, task, seed=None)[0].ledger_.entries


def test_the_trap_catches_what_draws_in_floating_point(monkeypatch):
    start = NoiseSource.__init__

    def trapped(self, ledger, seed):
        start(self, ledger, seed)
        self.generator = Trap()

    monkeypatch.setattr(NoiseSource, "__init__", trapped)
    with pytest.raises(AssertionError, match="drawn in floating point"):
        fit(METHODS["dp-linear"], "regression", seed=None)


def test_the_list_of_methods_shows_it():
    listed = json.loads(CliRunner().invoke(app, ["methods", "--json"]).output)
    for entry in listed:
        noise = METHODS[entry["name"]].noise
        assert entry["noise"] == (noise.value if noise else None)
    private = [m for m in METHODS.values() if m.takes_epsilon]
    for option, before in (((), "  "), (("--verbose",), "noise: ")):
        shown = CliRunner().invoke(app, ["methods", *option], env={"COLUMNS": "200"}).output
        assert shown.count(f"{before}floating point") == len(FLOATING_POINT)
        assert shown.count(f"{before}exact\n") + shown.count(f"{before}exact;") == len(
            private
        ) - len(FLOATING_POINT)


def test_the_page_counts_and_names_the_methods_in_floating_point():
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    private = sum(method.takes_epsilon for method in METHODS.values())
    count = f"{private - len(FLOATING_POINT)} of the {private} methods with a privacy budget"
    assert f"{count} draw exact noise" in page
    listed = (
        PAGE.read_text(encoding="utf-8").split("remain in floating point:\n\n")[1].split("\n\n")[0]
    )
    heads = [item.split(":")[0] for item in listed.split("- ")]
    assert sorted(re.findall(r"`([^`]+)`", " ".join(heads))) == FLOATING_POINT


def rows_of_the_table():
    """Return (names of methods, noise, explanation) of each row of the page's last table."""
    section = EXACT_PAGE.read_text(encoding="utf-8").split("## Which methods are exact")[1]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [(re.findall(r"`([^`]+)`", names), noise, why) for names, noise, why in cells]


def test_the_page_of_exact_releases_lists_every_method_as_it_is_declared():
    rows = rows_of_the_table()
    listed = [(name, noise) for names, noise, _ in rows for name in names]
    declared = [(name, method.noise.value) for name, method in METHODS.items() if method.noise]
    assert sorted(listed) == sorted(declared)
    assert all(why for _, _, why in rows)
