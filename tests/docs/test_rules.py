"""Nothing in a document escapes: each rule fits a command, each command an option that exists."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer

from dprepro.cli import app
from dprepro.experiment.config import load_experiments
from tests.docs.pages import (
    PAGES,
    ROOT,
    Block,
    blocks,
    commands,
    inline_commands,
    missing_lines,
)
from tests.docs.rules import ELSEWHERE, EXTRAS, NOT_RUN, RULES
from tests.docs.session import rule_of

KINDS = {"sh", "text", "python", "pycon", "yaml", "make", ""}
"""The languages that `test_pages.py` runs, writes or compares."""
SHELL = [
    (b.page, c) for p in PAGES for b in blocks(p) if b.language == "sh" for c in commands(b.text)
]


def parse(command: str) -> None:
    """Read a `dprepro` command as the command line does, without running it; errors are raised."""
    words = shlex.split(command)[1:]
    node: Any = typer.main.get_command(app)
    above = None  # without it a command would know no -h, from then on in all tests
    while words and hasattr(node, "commands"):
        assert words[0] in node.commands, f"{command}: no such command"
        above = typer.Context(node, above, node.name, **node.context_settings)
        node = node.commands[words.pop(0)]
    if hasattr(node, "commands") or not words:  # a sentence that only names the command
        return
    for name, value in node.make_context(node.name, words, parent=above).params.items():
        configs = value if isinstance(value, (list, tuple)) else [value]
        for config in configs if name in {"config", "configs"} else ():
            if config and config not in OWN:
                load_experiments(config)


OWN = {block.name for page in PAGES for block in blocks(page)} | {
    "CONFIG",
    "mine",
    "noisy-mean",
    "tuned.yaml",
    "secret.yaml",
    "model.json",
}
"""Configs that a page has its reader write, and a model file, which `ledger` takes as well."""


def commands_with_help() -> list[tuple[str, str]]:
    """Return (path, help) of every command without subcommands."""
    found: list[tuple[str, str]] = []

    def walk(node: Any, path: str) -> None:
        if hasattr(node, "commands"):
            for name, child in node.commands.items():
                walk(child, f"{path} {name}")
        else:
            found.append((path, node.help or ""))

    walk(typer.main.get_command(app), "dprepro")
    return found


@pytest.mark.parametrize(("path", "text"), commands_with_help())
def test_paragraphs_of_help_fill_the_terminal(path: str, text: str) -> None:
    assert "\n" not in text.replace("\n\n", "")
    assert "  " not in text.replace("\n\n", "")


def help_examples() -> list[str]:
    """Return the commands that stand after "Example:" in the help of each command, in order."""
    root = typer.main.get_command(app).help or ""
    texts = [root, *(text for _, text in commands_with_help())]
    lines = [line for text in texts for line in re.findall(r"Example: (.+)", text)]
    return list(dict.fromkeys(part.strip() for line in lines for part in line.split("&&")))


@pytest.mark.parametrize("page", PAGES)
def test_a_block_is_run_or_says_that_it_is_not(page):
    for block in blocks(page):
        if not any(o.page == page and block.text.startswith(o.begins) for o in NOT_RUN):
            assert block.language in KINDS, block
            is_file = block.language in {"yaml", "make"}
            assert block.name or not is_file, f"{block}: which file is it?"


@pytest.mark.parametrize("listed", NOT_RUN, ids=lambda listed: listed.begins)
def test_what_is_not_run_is_there_and_says_so(listed):
    assert [b for b in blocks(listed.page) if b.text.startswith(listed.begins)]
    assert listed.said in " ".join((ROOT / listed.page).read_text().split())


def test_every_rule_fits_a_command():
    given = {*SHELL, *(("--help", example) for example in help_examples())}
    stale = [
        (p, r.command) for p, rules in RULES.items() for r in rules if (p, r.command) not in given
    ]
    assert stale == []


def test_every_extra_fits_a_block():
    named = {block.name for page in PAGES for block in blocks(page)}
    assert {extra.block for extra in EXTRAS} <= named


def test_a_stated_output_follows_a_command():
    for page in PAGES:
        found = blocks(page)
        texts = [i for i, block in enumerate(found) if block.language == "text"]
        assert all(i and found[i - 1].language == "sh" for i in texts), page


@pytest.mark.parametrize("page", PAGES)
def test_commands_within_sentences_can_be_given(page):
    for command in inline_commands(page):
        for part in command.split("&&"):
            if part.strip().startswith("dprepro"):
                parse(part.strip())


@pytest.mark.parametrize("page", PAGES)
def test_tests_within_sentences_exist(page):
    for command in inline_commands(page):
        words = shlex.split(command)
        if words[0] == "pytest":
            path = ROOT / words[1]
            files = [path] if path.is_file() else list(path.rglob("test_*.py"))
            assert files, command
            word = words[words.index("-k") + 1] if "-k" in words else ""
            named = rf"def test_\w*{word}|^tests/.*{word}"
            texts = [f"{file.relative_to(ROOT)}\n{file.read_text()}" for file in files]
            assert any(re.search(named, text, re.MULTILINE) for text in texts), command


@pytest.mark.parametrize(("page", "command"), SHELL)
def test_a_command_of_a_block_can_be_given_in_short_form(page, command):
    rule = rule_of(page, command)
    for old, _ in rule.replace:
        assert old in command
    if command.startswith("dprepro "):
        parse(command)
        options = (
            rule.append.replace("--results mine", "") if "--results" in command else rule.append
        )
        parse(f"{command} {options}")


def test_every_command_has_an_example_that_can_be_given():
    for path, text in commands_with_help():
        assert f"Example: {path}" in text, path
    for example in help_examples():
        parse(example)


def test_an_example_that_is_run_elsewhere_is():
    assert set(ELSEWHERE) <= set(help_examples())
    for example, page in ELSEWHERE.items():
        begin = " ".join(example.split()[:3])
        assert any(p == page and command.startswith(begin) for p, command in SHELL), example


def test_the_readme_has_the_main_job_word_for_word():
    given = [command for page, command in SHELL if page == "README.md"]
    assert "dprepro run configs/adult.yaml" in given
    assert "dprepro table --metric auc" in given


def test_comments_and_long_lines_of_a_shell_block():
    text = "a b  # why\n# only a comment\nc \\\n    --d 'e#f'\n"
    assert commands(text) == ["a b", "c --d 'e#f'"]


def test_fenced_and_indented_blocks_are_found():
    text = "Words\n\n```sh\nmake\n```\n\n    f(x) = 1\n\n- item\n\n  ```yaml\n  # a.yaml\n  ```\n"
    found = blocks("page", text)
    assert [(block.line, block.language) for block in found] == [(3, "sh"), (7, ""), (11, "yaml")]
    assert [block.name for block in found] == ["", "", "a.yaml"]
    assert found[0] == Block("page", 3, "sh", "make\n")


def test_commands_are_found_in_sentences_and_tables():
    text = "Run `dprepro\ntable --config a`, not `--dry-run`.\n\n| a |\n|---|\n| `pytest tests` |\n"
    assert inline_commands("page", text) == ["dprepro table --config a", "pytest tests"]


@pytest.mark.parametrize(
    ("stated", "missing"),
    [
        ("a  0.899 ±0.055\n...\nc 3", []),
        ("a 0.898 ±0.055", []),  # machines differ in the last digit
        ("a 0.897 ±0.055", ["a 0.897 ±0.055"]),
        ("c 4", ["c 4"]),  # but not in a count
        ("c 3\nb", ["b"]),  # nor in the order
        ("d", ["d"]),
    ],
)
def test_a_stated_output_is_compared(stated, missing):
    assert missing_lines(stated, " a 0.899 ±0.055 \nb\nc 3\n") == missing


def test_an_option_that_does_not_exist_is_caught():
    with pytest.raises(Exception, match="No such option"):
        parse("dprepro table --no-such-option")
    with pytest.raises(AssertionError, match="no such command"):
        parse("dprepro tables")
    with pytest.raises(Exception, match="no-such-config"):
        parse("dprepro run no-such-config")
