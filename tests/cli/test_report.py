import re

import pytest
from typer.testing import CliRunner

from dprepro.cli import app
from dprepro.runtime.errors import DpreproError
from tests.in_process import in_process
from tests.private_table import rows_of, write_table
from tests.report.journals import records, write
from tests.report.page.pages import content_of, hostile_journals, journals, whole, write_page

__all__ = ["in_process"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = journals(tmp_path_factory.mktemp("results"))
    write(folder, "forensics-splits-credit", records([0.5], label="a mere hypothesis"))
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return write_page(folder, folder / "report.html")


def test_the_page_needs_nothing_beside_it(page):
    assert page.startswith("<!doctype html>")
    addresses = re.findall(r'(?:src|href|action)="([^"]*)"|url\(([^)]*)\)', page)
    assert addresses
    assert all("".join(address).startswith("#") for address in addresses)
    assert "http" not in re.sub(r'http-equiv="Content-Security-Policy"', "", page)
    assert "@import" not in page


def test_every_link_leads_to_one_place_and_no_identifier_comes_twice(page):
    names = re.findall(r' id="([^"]*)"', page)
    assert len(names) == len(set(names))
    targets = re.findall(r'href="#([^"]*)"|aria-labelledby="([^"]*)"|url\(#([^)]*)\)', page)
    # The script makes the rows of single cells.
    cells = [row["cells"] for row in content_of(page)["sheets"]["all-cells"]]
    names += [f"cell-{number}" for number in range(len(cells))]
    targets += [(cell[3], "", "") for row in cells for cell in row]
    assert {"".join(target) for target in targets} - {""} <= set(names)


def test_hypotheses_are_left_out_unless_their_config_is_named(folder, page, tmp_path):
    assert "a mere hypothesis" not in whole(page)
    named = write_page(folder, tmp_path / "n.html", "--config", "forensics-splits-credit")
    assert "a mere hypothesis" in named


def test_the_same_journals_give_the_same_bytes(folder, page):
    assert write_page(folder, folder / "again.html") == page


def test_everything_stands_on_it(page):
    for text in (
        "Adult-Income",
        "0.8830 ± 0.0050",
        "↓ worse",
        "No reason known yet.",
        "real patient data that was never released",
        "3 of 25 splits",
        "not published",
        "4321.0 ± 9.0",
        "1\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}0.876",
        "Read, but not covered by epsilon: bounds of age",
        "a row more or less; 2,000 runs, bound by GDP",
        "abacus",
        "2025-01-02 03:04:05 UTC",
        "0123456789 with changes",
        "<svg",
    ):
        assert text in whole(page), text
    assert "fixed seed:" not in whole(page)


def test_the_command_counts_what_the_page_shows(folder, tmp_path):
    output = tmp_path / "two.html"
    given = ["report", "--results", str(folder), "--config", "two", "--output", str(output)]
    said = CliRunner().invoke(app, given).output
    assert re.search(r"two.html: 1 measured cell, \d+ kB\n", said)
    assert "1 measured cell of 1 method." in output.read_text(encoding="utf-8")
    assert "hours of computing" not in output.read_text(encoding="utf-8")
    assert "PRIVATE" not in said


def test_the_page_says_where_the_published_value_stands(page):
    assert "Below ours the published value and the verdict" in page
    assert "In brackets" not in page


def test_one_document_and_one_config_can_be_chosen(folder, tmp_path):
    paper = write_page(folder, tmp_path / "paper.html", "--paper", "dp-ebm-2021")
    assert "prices" not in whole(paper)
    assert "lazybb" not in whole(paper)
    config = write_page(folder, tmp_path / "config.html", "--config", "two")
    assert "prices" in config
    assert "0.8830" not in whole(config)


def test_the_margin_can_be_overridden(folder, tmp_path):
    page = write_page(folder, tmp_path / "wide.html", "--margin", "auc=0.5")
    assert "AUROC: 0.5;" in page
    assert "No reason known yet." not in page


def test_hostile_text_is_shown_and_never_obeyed(tmp_path):
    page = write_page(hostile_journals(tmp_path), tmp_path / "report.html")
    assert page.count("<script>") == page.count("</script>") == 1
    assert page.count("<style>") == page.count("</style>") == 1
    assert "<img" not in page
    assert "<b id=" not in page
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;" in page
    assert "{{ 7 * 7 }} \ufffd \ufffd \ufffd ]]&gt; $x_1$" in page


def test_mistakes_are_said(folder, tmp_path):
    def refused(*arguments):
        outcome = CliRunner().invoke(app, ["report", *map(str, arguments)])
        assert isinstance(outcome.exception, DpreproError)
        return str(outcome.exception)

    assert "allowed endings are .html" in refused("--output", tmp_path / "page.pdf")
    assert "no journals" in refused("--results", tmp_path, "--output", tmp_path / "page.html")
    (tmp_path / "file").touch()
    blocked = tmp_path / "file" / "page.html"
    assert "cannot write" in refused("--results", folder, "--output", blocked)
    # Found before a journal is read: that folder has none.
    long = tmp_path / f"{300 * 'x'}.html"
    assert "File name too long" in refused("--results", tmp_path / "none", "--output", long)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", ["m.json", "m.local.json"])
def test_notes_beside_the_model_of_a_private_split_are_not_taken_for_a_model(tmp_path, name):
    methods = [{"method": "dp-ebm-gdp", "params": {"n_epochs": 2}}]
    config = write_table(tmp_path, "binary", rows_of("binary"), methods=methods, splits=1)
    results = tmp_path / "results"
    fit = ["--method", "dp-ebm-gdp", "--split", "0", "-o", str(results / "models" / name)]
    output = str(tmp_path / "report.html")
    for command in (
        ["fit", str(config), *fit],
        ["run", str(config), "--jobs", "1", "--results", str(results)],
        ["report", "--results", str(results), "--output", output],
    ):
        said = CliRunner().invoke(app, command)
        assert said.exit_code == 0, (command, said.output, said.exception)
    assert len(list((results / "models").iterdir())) == 2
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "age on patients: dp-ebm-gdp, ε=1" in page
    assert "PRIVATE rows: patients." in page.split("<main")[0]  # a banner above all else
    assert 'content: "PRIVATE rows: not for release"' in page  # at the foot of each sheet
    assert "PRIVATE DATA: the page holds exact scores" in said.output
