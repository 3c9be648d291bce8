"""A method that takes a budget and keeps no ledger is called unverified wherever it shows."""

import json

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.methods import registry
from dprepro.results.folder import read_results
from dprepro.results.runs import runs_of
from dprepro.runtime.errors import DpreproError
from tests.in_process import in_process
from tests.lab import CARD
from tests.report.journals import records, spread, write

__all__ = ["in_process"]

PLUGIN = """
from sklearn.linear_model import LogisticRegression
from dprepro.methods.entry import Guarantee, Method

from dprepro.privacy.ledger import Ledger, LedgerEntry

class Keeps(LogisticRegression):
    def fit(self, X, y):
        self.ledger_ = Ledger(1.0, 0.0, "replace-one")
        self.ledger_.add(LedgerEntry("laplace", "a sum", 1.0, "l1", 2.0, 2, (1.0, 0.0)))
        return super().fit(X, y)

class Empty(LogisticRegression):
    def fit(self, X, y):
        self.ledger_ = Ledger(1.0, 0.0, "replace-one")
        return super().fit(X, y)

class Fails(LogisticRegression):
    def fit(self, X, y):
        raise TypeError("no [way] to fit this")

def method(name, kind, **more):
    return Method(name, "Claims much", frozenset({"binary"}), Guarantee.PURE, "zero-out",
                  ("nothing",), "nowhere", lambda setting, **params: kind(), takes_epsilon=True,
                  encoding="unit-norm", **more)

METHODS = [
    method("claims", LogisticRegression),
    method("announces", LogisticRegression, keeps_ledger=True),
    method("empty", Empty, keeps_ledger=True),
    method("keeps", Keeps),
    method("fails", Fails, keeps_ledger=True),
]
"""
CONFIG = """
dataset: tiny.yaml
metric: auc
domain: public
splits: 1
seed: 1
epsilons: [1, 2]
delta: 1e-6
methods: [claims, dp-logistic-fair]
"""
LEDGER = {
    "epsilon": 1.0,
    "true_epsilon": 0.876,
    "replace_one_epsilon": 2.0,
    "adjacency": "zero-out",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a method that claims a guarantee, a card and a config."""
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "mine.py").write_text(PLUGIN)
    (tmp_path / "tiny.yaml").write_text(CARD)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    rows = "".join(f"{i / 10 - 3},{'uv'[i % 2]},{'yes' if i % 3 else 'no'}\n" for i in range(60))
    (tmp_path / "tiny.csv").write_text("a,b,y\n" + rows)
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path / "methods"))
    registry.all_methods.cache_clear()
    yield tmp_path
    registry.all_methods.cache_clear()


def run(*arguments, code=0):
    done = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def journal(folder, **fields):
    """Write a journal in which a method without a ledger leads one with a ledger."""
    lines = [
        *records(spread(0.883, 0.005), epsilon=1.0, ledger=LEDGER, **fields),
        *records(spread(0.95, 0.005), label="claims", epsilon=1.0, ledger=None, **fields),
        *records(spread(0.96, 0.005), label="ebm", epsilon=float("inf"), **fields),
    ]
    write(folder, "one", lines)
    return folder


def test_methods_says_which_one_nothing_backs(folder):
    shown = " ".join(run("methods", "--verbose").split())
    promise = "guarantee epsilon, neighbours zero-out; unverified until a run shows its ledger:"
    assert shown.count(promise) == 2
    listed = {entry["name"]: entry["unverified"] for entry in json.loads(run("methods", "--json"))}
    assert [name for name, unverified in listed.items() if unverified] == ["claims", "keeps"]


def test_tables_mark_it_and_never_call_it_best(tmp_path):
    text = run("table", "--results", journal(tmp_path), "--format", "markdown", "--true-epsilon")
    assert r"| 0.950 ± 0.005 \[unverified\] |" in text
    assert r"| 0.883 ± 0.005 \[ε 0.876\] |" in text  # alone among the verified: no best
    assert r"- \[unverified\]: the method keeps no ledger" in text
    rows = json.loads(run("table", "--results", tmp_path, "--format", "json"))
    marked = {(row["method"], row["epsilon"]): row["unverified"] for row in rows}
    assert marked == {("dp-ebm-gdp-2021", 1.0): False, ("claims", 1.0): True, ("ebm", None): False}
    assert not any(row["is_best"] for row in rows if row["unverified"])


def test_tables_without_such_a_method_say_nothing_of_it(tmp_path):
    write(tmp_path, "one", records(spread(0.883, 0.005), epsilon=1.0, ledger=LEDGER))
    assert "unverified" not in run("table", "--results", tmp_path, "--format", "markdown")


def test_one_split_without_a_ledger_is_enough(tmp_path):
    first, second = records([0.8, 0.9], epsilon=1.0, ledger=LEDGER)
    (bare,) = records([0.7], epsilon=1.0, ledger=None, split=2)
    write(tmp_path, "one", [first, second, bare])
    (cell,) = read_results(tmp_path).cells
    assert cell.is_unverified


def test_check_names_the_cells(tmp_path):
    write(tmp_path, "one", records(spread(0.883, 0.005), epsilon=1.0, ledger=None))
    shown = " ".join(
        run("check", "--details", "--results", tmp_path, "--paper", "dp-ebm-2021").split()
    )
    assert "Unverified, since the method keeps no ledger" in shown
    found = json.loads(
        run("check", "--results", tmp_path, "--paper", "dp-ebm-2021", "--format", "json")
    )
    assert len(found["unverified"]) == 1
    assert "dp-ebm-gdp" in found["unverified"][0]


def test_the_page_lists_it_among_the_ledgers(tmp_path):
    kept, bare = runs_of(read_results(journal(tmp_path))).spendings
    assert (kept.unverified, kept.stands) == ((), True)
    assert (bare.method, bare.unverified, bare.levels, bare.stands) == ("claims", (1.0,), (), False)
    output = tmp_path / "page.html"
    run("report", "--results", tmp_path, "--output", output)
    page = output.read_text(encoding="utf-8")
    assert ">unverified<" in page
    assert "keeps no ledger of its releases, so nothing says what it spends" in page


def test_ledger_marks_it_among_others(folder):
    shown = run("ledger", folder / "mine.yaml")
    (row,) = [line.split() for line in shown.splitlines() if line.startswith("claims ")]
    assert row == ["claims", "?", "unverified", "unverified"]
    assert "claims: unverified: it keeps no ledger" in shown
    assert (
        "dp-logistic-fair: the stated guarantee does not hold: 1 read not covered by epsilon"
        in " ".join(shown.split())
    )
    found = json.loads(run("ledger", folder / "mine.yaml", "--json"))
    assert [entry.get("unverified", False) for entry in found] == [True, True, False, False]


def test_ledger_of_it_alone_says_what_to_do(folder):
    done = CliRunner().invoke(app, ["ledger", str(folder / "mine.yaml"), "--method", "claims"])
    assert isinstance(done.exception, DpreproError)
    assert "claims: unverified: it keeps no ledger" in str(done.exception)
    assert "`ledger_`" in str(done.exception)


def test_audit_says_what_to_do(folder):
    done = CliRunner().invoke(app, ["audit", "claims", "--trials", "40"])
    assert isinstance(done.exception, DpreproError)
    assert "claims: unverified: it keeps no ledger" in str(done.exception)
    assert "\n" not in str(done.exception)


def test_audit_goes_on_with_the_others(folder):
    shown = run("audit", "claims", "gaussian", "--trials", "1000", "--seed", "1")
    assert "claims: unverified" in shown
    assert [line.split()[0] for line in shown.splitlines() if " within" in line] == ["gaussian"]


@pytest.mark.usefixtures("in_process")
def test_run_and_table_end_in_the_mark(folder):
    config = folder / "mine.yaml"
    config.write_text(CONFIG.replace("[claims, dp-logistic-fair]", "[claims]"))
    run("run", config, "--results", folder / "results", "--jobs", "1")
    shown = run("table", "--results", folder / "results", "--format", "markdown")
    assert r"\[unverified\]" in shown


@pytest.mark.usefixtures("in_process")
def test_the_fitted_estimator_decides_and_an_empty_ledger_is_none(folder):
    """Whatever its entry in METHODS says: the run, tables, the check of ledgers and the page."""
    config, results = folder / "mine.yaml", folder / "results"
    names = ["claims", "announces", "empty", "keeps"]
    config.write_text(CONFIG.replace("[claims, dp-logistic-fair]", f"[{', '.join(names)}]"))
    said = run("run", config, "--results", results, "--jobs", "1")
    bare = [name for name in names if f"{name}, 2 task(s): unverified: it keeps no" in said]
    assert bare == ["claims", "announces", "empty"]
    rows = json.loads(run("table", "--results", results, "--format", "json"))
    assert [row["method"] for row in rows if row["unverified"] and row["epsilon"] == 1] == bare
    assert {row["true_epsilon"] for row in rows if row["unverified"]} == {None}
    shown = run("table", "--results", results, "--format", "markdown", "--true-epsilon")
    assert r"\[ε 0\]" not in shown
    assert shown.count(r"\[†; ε 1\]") == 2
    spendings = {spending.method: spending for spending in runs_of(read_results(results)).spendings}
    assert [name for name in names if spendings[name].unverified] == bare
    assert [name for name in names if spendings[name].stands] == ["keeps"]
    planned = json.loads(run("ledger", config, "--json"))
    assert [p["method"] for p in planned if p.get("unverified") and p["epsilon"] == 1] == bare


def test_audit_and_ledger_refuse_an_empty_ledger(folder):
    config = folder / "mine.yaml"
    config.write_text(CONFIG.replace("claims", "empty"))
    for command in (["audit", "empty", "--trials", "40"], ["ledger", config, "--method", "empty"]):
        done = CliRunner().invoke(app, list(map(str, command)))
        assert isinstance(done.exception, DpreproError)
        assert "empty: unverified: it keeps no ledger of its releases" in str(done.exception)


def test_a_method_that_fails_hides_no_other_ledger(folder):
    config = folder / "mine.yaml"
    config.write_text(CONFIG.replace("claims", "fails, keeps"))
    shown = run("ledger", config)
    said = "fails: its fit on random rows fails: TypeError: no [way] to fit this"
    assert shown.count(said) == 1
    (row,) = [line.split() for line in shown.splitlines() if line.startswith("fails ")]
    assert row == ["fails", "?", "failed", "failed"]
    assert "keeps: the stated guarantee does not hold: 2 reads" in shown  # a seed, no noise
    found = json.loads(run("ledger", config, "--json"))
    assert [entry["method"] for entry in found if "error" in entry] == ["fails", "fails"]
    assert said.endswith(found[0]["error"])
    both = ("ledger", config, "--method", "fails", "--method", "keeps")
    assert "keeps: the stated guarantee does not hold" in run(*both, code=2)
    assert said.partition(": ")[2] in run(*both, "--epsilon", 1, code=2)


def test_a_method_that_fails_alone_is_named(folder):
    config = folder / "mine.yaml"
    config.write_text(CONFIG.replace("[claims, dp-logistic-fair]", "[fails]"))
    done = CliRunner().invoke(app, ["ledger", str(config)])
    assert isinstance(done.exception, DpreproError)
    expected = "fails: its fit on random rows fails: TypeError: no [way] to fit this"
    assert str(done.exception) == expected
