"""What CI services read is well-formed, whatever names and messages hold."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from dprepro.judge.check import Again, check_documents
from dprepro.judge.rerun import compare_records
from dprepro.judge.verdicts import Verdict
from dprepro.papers.document import load_documents
from dprepro.report.ci_formats import (
    MOST_ANNOTATIONS,
    Case,
    cases,
    cases_again,
    github,
    junit,
    markdown_check,
)
from dprepro.report.findings import Finding, findings, findings_again
from dprepro.results.folder import Results
from dprepro.results.margins import margins
from tests.report.claims import FAILED
from tests.report.journals import cell, records, spread

PAPER = load_documents()["dp-ebm-2021"]
# The part of JUnit's schema (Jenkins, junit-10) that is written: children and attributes.
SHAPE = {
    "testsuites": ({"testsuite"}, {"name", "tests", "failures", "errors", "skipped"}),
    "testsuite": ({"testcase"}, {"name", "tests", "failures", "errors", "skipped"}),
    "testcase": ({"failure", "skipped", "system-out"}, {"name", "classname"}),
    "failure": (set(), {"message"}),
    "skipped": (set(), {"message"}),
    "system-out": (set(), set()),
}


def report(*means):
    cells = [
        cell(spread(mean, 0.005, 25), epsilon=epsilon)
        for mean, epsilon in zip(means, (0.5, 1.0, 2.0), strict=False)
    ]
    return check_documents([PAPER], Results(tuple(cells)), [], margins())


def parsed(found):
    """Return the root, after each element was held against the schema."""
    root = ElementTree.fromstring(junit(found))
    for element in root.iter():
        children, attributes = SHAPE[element.tag]
        assert {child.tag for child in element} <= children
        assert set(element.attrib) == attributes
    for suite in (root, *root.findall("testsuite")):
        tests = list(suite.iter("testcase"))
        assert int(suite.get("tests")) == len(tests)
        assert int(suite.get("failures")) == sum(t.find("failure") is not None for t in tests)
        assert int(suite.get("skipped")) == sum(t.find("skipped") is not None for t in tests)
    return root


def test_junit_has_a_case_for_each_cell_and_claim():
    checked = replace(report(0.875, 0.8), claims=[FAILED])
    root = parsed(cases(checked))
    failed = {t.get("name") for t in root.iter("testcase") if t.find("failure") is not None}
    assert "adult, dp-ebm-gdp-2021, ε 1, auc" in failed
    assert FAILED.claim.name in failed
    assert "adult, dp-ebm-gdp-2021, ε 0.5, auc" not in failed
    idle = checked.counts[Verdict.NOT_RUN] + checked.counts[Verdict.IMPOSSIBLE]
    assert int(root.get("skipped")) == idle
    required = parsed(cases(checked, require_all=True))
    more = int(required.get("failures")) - int(root.get("failures"))
    assert more == checked.counts[Verdict.NOT_RUN]


def test_junit_has_what_was_run_again():
    same = compare_records(records([0.5]), records([0.5]))
    root = parsed(cases_again(Again(same, None, 0)))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "0", "1")
    other = compare_records(records([0.5, 0.6]), records([0.5001]))
    root = parsed(cases_again(Again(other, ["a cell changed"], 2)))
    assert root.get("failures") == "3"
    text = "".join(root.itertext())
    for said in ("committed 0.5001", "no finished committed record", "a cell changed"):
        assert said in text


def test_junit_holds_any_name():
    hostile = 'a<b>&"\x1b[31m\x00\ufffe]]>'
    root = parsed([Case(hostile, hostile, hostile, hostile, failure=hostile)])
    (test,) = root.iter("testcase")
    assert 'a<b>&"\\x1b[31m' in test.get("name")
    assert "]]>" in test.find("failure").text


def test_annotations_are_escaped():
    found = [Finding(True, "a:b,c%\n::error::x", "50 %\r\n::set-output name=x::y")]
    first, line = github("100 % fails", False, found).split("\n")
    assert first == "::error title=dprepro check::100 %25 fails"
    assert line.startswith("::error title=a%3Ab%2Cc%25 %3A%3Aerror%3A%3Ax::50 %25")
    assert line.endswith("%0A::set-output name=x::y")
    assert "\r" not in line
    passed = github("fine", True, [Finding(False, "stale", "x")]).split("\n")
    assert passed == ["::warning title=stale::x", "::notice title=dprepro check::fine"]


@pytest.mark.parametrize("number", [9, 10, 40])
def test_github_gets_no_more_annotations_than_it_shows(number):
    lines = github("failed", False, [Finding(True, f"{k}", "x") for k in range(number)]).split("\n")
    assert len(lines) == MOST_ANNOTATIONS
    left = number - (MOST_ANNOTATIONS - 2)
    assert (f"{left} more" in lines[-1]) is (number > MOST_ANNOTATIONS - 1)


def test_markdown_counts_and_lists():
    checked = report(0.875, 0.8)
    found = [*findings(checked), Finding(True, "<b>|", "*x*")]
    text = markdown_check(checked, "outcome", False, found, False)
    assert text.startswith("## dprepro check: failed\n\noutcome\n\n- **worse: adult, dp-ebm-gdp")
    assert r"- **\<b\>\|**: \*x\*" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| dp-ebm-2021 ")]
    assert row.split(" | ")[1] == "184"
    assert "All cells" not in text
    whole = markdown_check(checked, "outcome", False, found, True)
    assert whole.count("(dp-ebm-2021, Table 2) |") + whole.count("(dp-ebm-2021, Table 3) |") == 184
    many = markdown_check(checked, "outcome", False, found * 40, False)
    assert "- and 30 more" in many


def test_stale_entries_and_reruns_are_found():
    other = Again(compare_records(records([0.5]), records([0.4])), None, 1)
    assert [one.title for one in findings_again(other)] == ["run again", "stale explanations"]
    nothing = Again(compare_records([], []), None, 0)
    assert [one.text for one in findings_again(nothing)] == ["no task has a committed record"]
