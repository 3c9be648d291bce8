"""Options and warnings that several commands share.

The option of all commands that score a config of `dprepro tune`.

`--epsilon`: a privacy level as somebody types it.

The warning of commands that show private rows, or exact functions of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

AllowTunedSplits = Annotated[
    bool,
    typer.Option(
        "--allow-tuned-splits",
        help="Score a config of `dprepro tune` on the splits that chose its parameters.",
    ),
]


_ALLOWED = "Allowed are numbers above 0, such as 0.5, 1 or 8"


def one_level(help: str) -> Any:
    """Return the option of a command that takes one level at a time."""
    return _option(help, "This command takes one level at a time: --epsilon {first}")


def repeated_levels(help: str) -> Any:
    """Return the option of a command that takes several levels."""
    return _option(help, "Give the option for each level: {each}")


def _option(help: str, advice: str) -> Any:
    return typer.Option("--epsilon", parser=_reader(advice), metavar="<float>", help=help)


def _reader(advice: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        number = _number(str(text))
        if number is not None:
            return number
        parts = [part.strip() for part in str(text).replace(";", ",").split(",")]
        if len(parts) < 2 or any(_number(part) is None for part in parts):
            raise typer.BadParameter(f"{text!r} is no number. {_ALLOWED}.")
        if len(parts) == 2 and parts[0] == "0":
            raise typer.BadParameter(
                f"{text!r} is no number. A fraction has a point: 0.{parts[1]}."
            )
        said = advice.format(first=parts[0], each=" ".join(f"--epsilon {part}" for part in parts))
        raise typer.BadParameter(f"{text!r} is not one number. {said}.")

    return read


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


SHOWS_SCORES = "the picture shows exact scores"


def warn(is_private: bool, what: str) -> None:
    """Print to standard error that `what` is not for release, if the rows are private."""
    if is_private:
        typer.echo(f"PRIVATE DATA: {what}, not covered by epsilon: keep it to yourself", err=True)
