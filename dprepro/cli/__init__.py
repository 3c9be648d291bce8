"""The command line: parses, calls, renders."""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TextIO

import typer
from typer.core import TyperGroup

from dprepro import __version__
from dprepro.cli.completion import complete_names
from dprepro.cli.streams import Streams, say
from dprepro.runtime.errors import DEBUG_VARIABLE, DpreproError, DpreproWarning, publishable
from dprepro.runtime.text import visible
from dprepro.runtime.threads import require_memory, settle_threads


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is asked for: a start asks for one of them."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a command, or a group of commands."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Any:
        module = _MODULES[name]
        found = getattr(importlib.import_module(f"{__name__}.{module}"), name.replace("-", "_"))
        alone = typer.Typer()
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=name)
        else:
            alone.command(name)(found)
        _flow(alone)
        complete_names(alone)
        return typer.main.get_group(alone).commands[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names in the order of the help."""
        return iter(_MODULES)

    def __len__(self) -> int:
        """Return how many commands there are."""
        return len(_MODULES)

    def __contains__(self, name: object) -> bool:
        """Whether there is a command of this name."""
        return name in _MODULES


class _Group(TyperGroup):
    """The command line as a whole."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Commands()  # type: ignore[assignment]


app = typer.Typer(
    name="dprepro",
    cls=_Group,
    help=(
        "Reproduce experiments on interpretable models trained with differential privacy.\n\n"
        "Example: dprepro run quickstart && dprepro table --config quickstart"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dprepro {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    require_memory()
    settle_threads()


_MODULES = {
    "audit": "audit", "budget": "budget", "check": "check", "cite": "cite", "compare": "compare",
    "configs": "catalogue", "documents": "catalogue", "edit": "models", "export": "export",
    "export-crate": "export", "fit": "models", "forensics": "forensics",
    "leaderboard": "leaderboard", "ledger": "ledger", "methods": "catalogue",
    "predict": "predict", "release": "release", "report": "report",
    "run": "run", "schema": "schema", "score": "models", "show": "show", "table": "table",
    "tree": "tree", "tune": "tune", "verify": "release", "votes": "show", "withdraw": "budget",
    "data": "data", "new": "new", "paper": "paper", "plot": "plot", "results": "results",
}  # fmt: skip
"""In which module of this folder each command is, a function or a group of its name."""


def _flow(commands: typer.Typer) -> None:
    """Let the paragraphs of all help texts fill the terminal: their lines end at 100 columns."""
    for command in commands.registered_commands:
        text = inspect.cleandoc(
            command.help or (command.callback and command.callback.__doc__) or ""
        )
        command.help = "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _flow(group.typer_instance)


_PRINTING = {
    "budget", "check", "cite", "compare", "configs", "data", "documents", "forensics",
    "leaderboard", "ledger", "methods", "paper", "results", "table", "tree", "votes",
}  # fmt: skip
"""Commands whose result is what they print: where that is lost, they have failed."""


_READING = {"check", "compare", "forensics", "leaderboard", "plot", "report", "results", "table"}
"""Commands that read journals and end."""


def _collect_seldom() -> None:
    """Look for circles of garbage less often: a sixth of the time of what reads many records.

    What fits models keeps Python's own thresholds, since a circle can hold a table there.
    """
    if not _READING.isdisjoint(sys.argv[1:2]):
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)


def main() -> None:
    """Run the command line; exit code 2 and one clear message on anything the user can mend.

    What a job shows of itself is not its result: no closed or full output changes its exit code.
    """
    try:
        leave_out_what_destructors_lack()
        _collect_seldom()
        code = _code_of_command()
    except MemoryError:  # also while another one was answered
        code = 2
        try:  # noqa: SIM105 - a context would take memory
            os.write(2, _NO_MEMORY)  # made beforehand, as to make it would take memory
        except OSError:  # nobody reads it, or the disk is full: the exit code says it
            pass
    except Exception as error:  # before there was a command, or after it
        if not (said := _of_memory(error)):
            raise
        code = 2
        _print_plainly(said)
    try:
        sys.exit(code)
    except MemoryError:  # there was none for the exception that ends the process
        os._exit(code)


def _code_of_command() -> int:
    streams = Streams()
    _show_warnings_as_lines()
    code = _code_of_app()
    lost = streams.lost_output()
    if code == 0 and lost and not _PRINTING.isdisjoint(sys.argv[1:2]):
        _print_error("error:", f"standard output could not be written: {lost}")
        return 2
    return code


def _code_of_app() -> int:
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except DpreproError as error:
        _print_error("error:", str(error))
        return 2
    except MemoryError:
        raise  # `main` answers it
    except OSError as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        _print_plainly(f"error: {_of_the_machine(error)}")
        return 2
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        if said := _of_memory(error):
            _print_plainly(said)
            return 2
        _print_error(
            "internal error:",
            f"{type(error).__name__}: {publishable(error)}\n"
            f"This is a bug in dprepro. Run again with {DEBUG_VARIABLE}=1 for the traceback.",
        )
        return 70
    return 0


def _print_error(what: str, text: str) -> None:
    from rich.text import Text

    from dprepro.runtime.terminal import error_console

    said = Text.assemble((what, "bold red"), f" {visible(text)}")
    error_console().print(said, soft_wrap=True)


_NO_MEMORY = (
    b"error: memory ran out. What was finished before is kept: close other programs, or give "
    b"--jobs a smaller number where the command has it, then give the same command again\n"
)


WITHOUT_A_REASON = ("without exception set", "without setting an exception")
"""What Python says where its own compiler, among others, got no memory."""
_NO_REASON = (
    "error: Python stopped this command without a reason, as it does where memory runs out: close "
    "other programs, then give the same command again. If it stops again, this is a bug, and "
    f"{DEBUG_VARIABLE}=1 shows where"
)


def _of_memory(error: Exception) -> str:
    """Return what to say where the machine, or Python for want of memory, has refused something."""
    from dprepro.experiment.machine_errors import machine_fault

    if fault := machine_fault(error):
        return f"error: {fault}. Correct that, then give the same command again"
    if type(error) is SystemError and str(error).endswith(WITHOUT_A_REASON):
        return _NO_REASON
    return ""


def leave_out_what_destructors_lack() -> None:
    """Say nothing of destructors that got no memory: they are a library's, and change no result."""
    usual = sys.unraisablehook

    def hook(told: sys.UnraisableHookArgs) -> None:
        if told.exc_type is not MemoryError:
            usual(told)

    sys.unraisablehook = hook


def _of_the_machine(error: OSError) -> str:
    """Return what the operating system refused, and of which file; no text of a library."""
    place = f"{error.filename}: " if isinstance(error.filename, str) else ""
    why = os.strerror(error.errno) if error.errno else type(error).__name__
    return f"{place[:500]}{why}. {DEBUG_VARIABLE}=1 shows where"


def _print_plainly(text: str) -> None:
    """Write a line to standard error, if there is one."""
    with suppress(OSError, ValueError):
        sys.stderr.write(visible(text) + "\n")
        sys.stderr.flush()


def _show_warnings_as_lines() -> None:
    """Print each of our own warnings once, without the line of code that Python shows."""
    usual, shown = warnings.showwarning, set[str]()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, DpreproWarning):
            usual(message, category, filename, lineno, file, line)
        elif str(message) not in shown:
            shown.add(str(message))
            say(f"warning: {message}", err=True)

    warnings.showwarning = show
