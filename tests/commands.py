"""Run a command line of dprepro inside the test's process."""

from __future__ import annotations

from typer.testing import CliRunner

from dprepro.cli import app


def dprepro(*arguments: object) -> str:
    """Return what the command prints; a failure of any kind is raised."""
    outcome = CliRunner().invoke(app, list(map(str, arguments)))
    if outcome.exception and not isinstance(outcome.exception, SystemExit):
        raise outcome.exception
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout
