"""The page of exact releases names tests of each step, and these exist."""

import ast
import re

from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "evidence" / "exact.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^### (\d+)\. [^\n]+\n(.*?)(?=^##|\Z)", TEXT, flags=re.DOTALL | re.MULTILINE)
SPANS = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", TEXT)]


def functions_of(path):
    """Return the names of all test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def named_tests(text):
    """Return (file, test) pairs, test "" for the file itself; a test is of the file before it."""
    found, file = [], ""
    for span in re.findall(r"`(tests/\S+?\.py|test_\w+)`", text):
        file = span if span.startswith("tests/") else file
        found.append((file, "" if span == file else span))
    return found


def test_every_step_names_tests_that_exist():
    assert [int(number) for number, _ in STEPS] == list(range(1, len(STEPS) + 1))
    assert len(STEPS) >= 7
    for number, text in STEPS:
        _, _, named = text.partition("*Tests.*")
        assert any(test for _, test in named_tests(named)), number


def test_every_named_test_is_in_the_file_that_is_named_before_it():
    missing = [
        (file, test)
        for file, test in named_tests(TEXT)
        if not (ROOT / file).is_file() or (test and test not in functions_of(file))
    ]
    assert missing == []
    assert len(named_tests(TEXT)) > 50


def test_every_named_file_exists():
    named = [span for span in SPANS if re.fullmatch(r"(tests|dprepro)/[\w/.]+", span)]
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_test_that_does_not_exist_is_noticed():
    text = (
        "`tests/privacy/sampling/test_bits.py` (`test_nothing`), `test_the_block_of_the_standard`"
    )
    pairs = named_tests(text)
    assert [test in functions_of(file) for file, test in pairs if test] == [False, True]
