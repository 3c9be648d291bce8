"""What all help texts have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from typer.testing import CliRunner

from dprepro.cli import app

NAMED = re.compile(r"dprepro\\?\[(\w+)\]")


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, found in getattr(command, "commands", {}).items():
        yield from commands(found, (*path, name))
    yield path


def test_help_texts_that_name_an_extra_keep_it() -> None:
    """Rich takes [onnx] for markup, unless it is escaped."""
    named = 0
    group: Any = typer.main.get_command(app)
    for path in commands(group):
        command = group
        for name in path:
            command = command.commands[name]
        texts = [command.help or "", *(getattr(p, "help", "") or "" for p in command.params)]
        extras = {extra for text in texts for extra in NAMED.findall(text)}
        if extras:
            outcome = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
            for extra in extras:
                assert f"dprepro[{extra}]" in outcome.output, path
        named += len(extras)
    assert named
