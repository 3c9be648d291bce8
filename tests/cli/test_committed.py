"""The commands that read journals, on the results that are committed here."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.cli import check as check_module
from dprepro.cli import plot as plot_module
from dprepro.cli import table as table_module
from dprepro.cli.options import read
from dprepro.experiment import journal
from dprepro.experiment.config import config_names, load_config
from dprepro.experiment.journal import JournalTable
from dprepro.experiment.plan import plan
from dprepro.experiment.plan_record import state_plan
from dprepro.judge.check import check_documents
from dprepro.judge.snapshot import NAME
from dprepro.judge.verdicts import CellVerdict, Verdict
from dprepro.papers.document import load_documents
from dprepro.report import layout as view_module
from dprepro.report.layout import ResultTable, build_tables
from dprepro.results.folder import Results
from dprepro.results.margins import margins

RESULTS = Path(__file__).resolve().parents[2] / "results"
PRINTED_ONLY = {"dp-gbdt-2021"}  # nothing here runs what it prints
PAPERS = sorted(load_documents().keys() - PRINTED_ONLY)


@cache
def _read_once(folder: Path, configs: tuple[str, ...]) -> Results:
    return read(folder, configs)


@pytest.fixture(autouse=True, scope="module")
def committed() -> Iterator[None]:
    """Every command reads the committed journals once for all tests."""
    patch = pytest.MonkeyPatch()
    for module in (table_module, check_module, plot_module):
        patch.setattr(
            module,
            "read",
            lambda folder, names=None, shipped=False: _read_once(folder, tuple(names or ())),
        )
    yield
    patch.undo()


def journals() -> list[str]:
    return sorted(journal.journal_files(RESULTS).keys() & {*config_names()})


@pytest.mark.parametrize("name", journals())
def test_a_run_with_nothing_left_to_do_leaves_its_journal_as_it_is(name: str) -> None:
    config = load_config(name)
    stated = state_plan(config, (planned.task for planned in plan(config)))
    assert stated.agrees_with(JournalTable(journal.journal_files(RESULTS)[name]).last_plan)


def output(command: str, *arguments: str, **environment: str) -> str:
    given = [command, *arguments, "--results", str(RESULTS)]
    outcome = CliRunner().invoke(app, given, env={"COLUMNS": "400", **environment})
    assert outcome.exit_code == 0, (outcome.output, outcome.exception)
    assert outcome.stderr == ""
    return outcome.stdout


def adult_at_half(rows: list[dict[str, Any]]) -> dict[str, Any]:
    place = ("2", "adult", "dp-ebm-gdp", "0.5", "auc")
    names = ("table", "dataset", "method", "epsilon", "metric")
    (row,) = [
        row
        for row in rows
        if row["paper"] == "dp-ebm-2021" and tuple(str(row[name]) for name in names) == place
    ]
    return row


FORMS = [
    ["--metric", "auc"],
    ["--compare"],
    ["--true-epsilon"],
    ["--metric", "auc", "--compare", "--true-epsilon"],
    ["--paper", "dp-ebm-2021"],
    ["--dataset", "adult"],
    ["--config", "adult"],
    ["adult"],
    ["table2"],
    ["dp-ebm"],
]


@pytest.mark.parametrize(
    ("form", "format"),
    [
        *((form, "json") for form in FORMS),
        *((form, name) for form in FORMS[:4] for name in ("rich", "markdown", "latex", "csv")),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_every_form_in_every_format_shows_the_numbers(form: list[str], format: str) -> None:
    text = output("table", *form, "--format", format)
    if format in ("csv", "json"):
        rows = json.loads(text) if format == "json" else list(csv.DictReader(io.StringIO(text)))
        row = adult_at_half(rows)
        assert float(row["mean"]) == pytest.approx(0.878, abs=6e-4)
        assert (int(row["splits"]), int(row["planned"])) == (25, 25)
    else:
        text = text.replace(r"$\pm$", "±")
        assert "Table 2" in text
        assert "0.878 ± 0.006" in text
        assert "0.905 ± 0.004" in text or form == ["--config", "adult"]


@cache
def _numbers_of(name: str) -> tuple[str, list[dict[str, str]]]:
    """Return the tables in Markdown, which has no width, and the rows of their CSV."""
    rows = csv.DictReader(io.StringIO(output("table", name, "--format", "csv")))
    return output("table", name, "--format", "markdown"), list(rows)


def mean_and_sd(row: dict[str, str]) -> set[str]:
    """Return a mean with its standard deviation as a table may write it."""
    mean, sd = float(row["mean"]), float(row["sd"])
    return {f"{mean:.{n}f} ± {sd:.{n}f}" for n in range(7)}


@pytest.mark.parametrize("width", [60, 80, 130])
@pytest.mark.parametrize("name", ["--metric=auc", "cod-rna", "--true-epsilon"])
def test_no_width_cuts_a_number(name: str, width: int) -> None:
    """Standard deviations are left out where there is no room; with --sd all are there."""
    whole, rows = _numbers_of(name)
    number = re.compile(r"-?\d[\d.]* ± \d[\d.]*")
    text = output("table", name, "--sd", COLUMNS=str(width))
    for shown in (text, output("table", name, COLUMNS=str(width))):
        assert "…" not in shown
        assert max(map(len, shown.splitlines())) <= width
        means = Counter(re.findall(r"(?<![\d.(ε] )(?<![\d.])\d+\.\d{3}(?![\d])", shown))
        assert means.keys() >= {found.split(" ")[0] for found in number.findall(whole)
                                if re.fullmatch(r"\d+\.\d{3}", found.split(" ")[0])}  # fmt: skip
    assert Counter(number.findall(text)) == Counter(number.findall(whole))
    found = set(number.findall(text))
    assert all(mean_and_sd(row) & found for row in rows if row["sd"])


@pytest.mark.parametrize("width", [60, 80, 180])
def test_no_width_cuts_a_published_number(width: int) -> None:
    text = output("table", "2", "--compare", "--sd", COLUMNS=str(width))
    whole = output("table", "2", "--compare", "--format", "markdown")
    published = re.findall(r"\(([-\d.]+(?: ± [\d.]+)?), [a-z ]+\)", whole)
    assert len(published) > 100
    found = re.findall(r"\(([-\d.]+(?: ± [\d.]+)?)\) ", text)
    assert Counter(found) == Counter(published)
    verdicts = re.findall(r"[\d*· ]([≈↑↓?·×])(?= )", text.split("Mean over")[0])
    assert len(verdicts) >= len(published)


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("more", [[], ["--compare"]], ids=["plain", "compare"])
def test_every_document_is_shown_alone(paper: str, more: list[str]) -> None:
    rows = json.loads(output("table", "--paper", paper, "--format", "json", *more))
    assert {row["paper"] for row in rows} == {paper}
    assert sum(row["mean"] is not None for row in rows) >= 10


@pytest.mark.parametrize("paper", sorted(PRINTED_ONLY))
def test_a_document_that_nothing_was_run_for_says_so(paper: str) -> None:
    done = CliRunner().invoke(app, ["table", "--paper", paper])
    assert f"no results of what {paper} prints" in str(done.exception)


def test_no_command_speaks_of_records_that_no_longer_count() -> None:
    assert "left out" not in output("table", "--metric", "auc")


def test_without_arguments_one_screen_lists_what_there_is() -> None:
    lines = output("table", COLUMNS="80").splitlines()
    assert len(lines) <= 52
    assert max(map(len, lines[1:])) <= 80  # the first has the folder's path
    assert re.fullmatch(r".*results: \d+ cells(, \d+ of them in part)?, from \d+ configs", lines[0])
    for paper in PAPERS:
        assert any(line.startswith(f"{paper}: dprepro table TABLE --paper") for line in lines)
    assert not any("±" in line for line in lines)


def test_the_index_counts_in_part_what_the_table_marks() -> None:
    counts = dict(re.findall(r"(?m)^  (\S+) .*\(\d+ cells(?:, (\d+) in part)?\)$", output("table")))
    for name in ("fig5", "fig5-maps", "text-4.1"):
        rows = json.loads(output("table", name, "--paper", "dp-llm", "--format", "json"))
        assert sum(row["splits"] < row["planned"] for row in rows) == int(counts[name] or 0)


def test_a_clash_is_shown_apart_and_ends_no_other_table() -> None:
    text = output("table", "--metric", "auc", "--format", "markdown")
    assert "| cod-rna (lazybb-cod-rna) |" in text
    assert "| cod-rna (lazybb-cod-rna-sparsity) |" in text
    assert "dp-ebm-2021, Table 2" in text


def test_all_verdicts_are_recorded() -> None:
    assert len((RESULTS / NAME).read_text(encoding="utf-8").splitlines()) > 1200


def test_the_check_passes_with_the_counts_that_are_documented() -> None:
    report = json.loads(output("check", "--format", "json"))
    assert report["passes"] is True
    assert not report["stale"]
    counts: dict[str, dict[str, int]] = {}
    for row in report["cells"]:
        found = counts.setdefault(row["paper"], {})
        found[row["verdict"]] = found.get(row["verdict"], 0) + 1
    assert counts["dp-ebm-2021"] == {
        "equivalent": 56, "better": 3, "worse": 7, "inconclusive": 95, "impossible": 23,
    }  # fmt: skip
    assert counts["dp-llm-2020"] == {
        "equivalent": 4, "better": 1, "inconclusive": 4, "impossible": 4,
    }  # fmt: skip
    assert counts["lazybb-2022"] == {"equivalent": 28, "inconclusive": 54, "impossible": 3}
    assert counts["lazybb-2022-authors"] == {"inconclusive": 328}
    assert counts["replication-report-2025"] == {"inconclusive": 37, "better": 2, "worse": 1}
    assert counts["replication-slides-2025"] == {
        "equivalent": 2, "better": 1, "inconclusive": 30,
    }  # fmt: skip
    assert counts["sbdt-2024"] == {"equivalent": 11, "inconclusive": 1, "worse": 3}
    assert report["documents"]["dp-ebm-2021"]["far"] == 10
    assert not report["untested_columns"]


def _differing(tables: list[ResultTable], verdicts: Sequence[CellVerdict]) -> list[str]:
    """Name the printed cells for which the tables show another result than the check judged."""
    shown = {
        (table.paper, table.table, group.dataset, entry.label, entry.epsilon, table.metric.name): (
            entry
        )
        for table in tables
        for group in table.groups
        for row in group.rows
        for entry in row
    }
    differ = []
    for verdict in verdicts:
        entry = shown.get(verdict.published.key)
        result = entry.result if entry else None
        clash = entry.clash if entry else None
        judged = verdict.result
        is_same = result is judged
        if judged is not None and judged.looks:  # it has more splits of the same cell
            is_same = result is not None and result.task.cell == judged.task.cell
        if not is_same or (clash and verdict.verdict is not Verdict.INCOMPLETE):
            differ.append(str(verdict.published))
    return differ


@pytest.fixture(scope="module")
def shown_and_judged() -> tuple[list[ResultTable], list[CellVerdict]]:
    found, documents = _read_once(RESULTS, ()), list(load_documents().values())
    report = check_documents(documents, found, [], margins())
    possible = [v for v in report.verdicts if v.verdict is not Verdict.IMPOSSIBLE]
    return build_tables(found, documents), possible


def test_table_and_check_pick_the_same_result_for_every_published_cell(
    shown_and_judged: tuple[list[ResultTable], list[CellVerdict]],
) -> None:
    tables, verdicts = shown_and_judged
    assert len(verdicts) > 300
    assert sum(verdict.result is not None for verdict in verdicts) > 300
    assert _differing(tables, verdicts) == []


def test_a_table_that_picked_another_result_would_be_named(
    shown_and_judged: tuple[list[ResultTable], list[CellVerdict]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, verdicts = shown_and_judged
    # The fall-back that tables once had: any result at the place, the first one found.
    monkeypatch.setattr(
        view_module,
        "answer_or_other",
        lambda cell, document, table, results, shown: shown[-1] if shown else None,
    )
    found, documents = _read_once(RESULTS, ()), list(load_documents().values())
    assert _differing(build_tables(found, documents), verdicts)


def test_curves_are_drawn(tmp_path: Path) -> None:
    written = output(
        "plot", "curves", "--dataset", "adult", "--format", "svg", "--output", str(tmp_path)
    )
    assert written.count(".svg") >= 2
    assert all(path.stat().st_size > 10_000 for path in tmp_path.glob("*.svg"))


def test_only_current_records_lie_in_the_results() -> None:
    for name, path in journal.journal_files(RESULTS).items():
        found = journal.JournalTable(path)
        asked = [key for cell in found.plan.cells for key in cell.keys]
        assert (found.table.positions(asked) >= 0).all(), name


@pytest.mark.parametrize("version", range(1, 9))
def test_earlier_versions_are_shown_when_asked_for(version: int) -> None:
    folder = RESULTS / "history" / f"v{version}"
    cells = read(folder).cells
    assert {(c.task.label, c.task.method_version) for c in cells} == {("dp-ebm-plus", version)}
    assert len({c.dataset for c in cells}) == 7
    assert all(len(next(iter(c.values.values()))) == 25 for c in cells)
    assert len(cells) == 7 * 6


def test_columns_that_fail_where_they_were_not_chosen_are_fitted() -> None:
    found = json.loads(output("check", "--format", "json"))
    fitted = {(column["method"], column["dataset"]) for column in found["fitted"]}
    assert fitted >= {
        ("dpboost-2021", "adult"), ("dpboost-2021", "telco"), ("dpboost-2021", "cal-housing"),
        ("dp-ebm-gdp-2021", "wine-white"), ("dp-ebm-classic-2021", "wine-white"),
    }  # fmt: skip
    forests = [cell for cell in found["known"] if "dp-random-forest" in cell]
    others = [cell for cell in found["known"] if "replication-slides" in cell]
    assert (len(forests), len(others)) == (5, 1)
    counts = {(row["paper"], row["settings"]): row for row in found["choices"]}
    chosen = counts["dp-ebm-2021", "chosen"]
    assert chosen["equivalent"] + chosen["inconclusive"] == 109
