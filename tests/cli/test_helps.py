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


def command_at(path: tuple[str, ...]) -> Any:
    command: Any = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    return command


def test_no_name_of_an_option_argument_or_command_is_cut_at_80_columns() -> None:
    for path in commands(typer.main.get_command(app)):
        command = command_at(path)
        text = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).output
        assert "…" not in text, path
        names = {*getattr(command, "commands", {}), "--help"}
        for param in command.params:
            names |= {*param.opts, *param.secondary_opts}
            if param.param_type_name == "argument":
                names -= {*param.opts}
                names.add(param.metavar or param.name)
        shown = set(re.split(r"[\s,]+", text)) | {*re.findall(r"\[[A-Z |]+\]\.\.\.|\w+", text)}
        assert names <= shown, (path, names - shown)


def test_help_texts_that_name_an_extra_keep_it() -> None:
    """Rich takes [onnx] for markup, unless it is escaped."""
    named = 0
    for path in commands(typer.main.get_command(app)):
        command = command_at(path)
        texts = [command.help or "", *(getattr(p, "help", "") or "" for p in command.params)]
        extras = {extra for text in texts for extra in NAMED.findall(text)}
        if extras:
            outcome = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
            for extra in extras:
                assert f"dprepro[{extra}]" in outcome.output, path
        named += len(extras)
    assert named
