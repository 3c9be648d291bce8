"""Every parser of what users give, as a function of bytes: what a fuzzer calls."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

from dprepro.additive.file import load_model
from dprepro.data.card import Card, load_card
from dprepro.data.dataset import load_by
from dprepro.experiment.config import load_experiments
from dprepro.experiment.journal import JournalTable, read_journal
from dprepro.experiment.plan import plan
from dprepro.judge.snapshot import read_recorded
from dprepro.release.codebook import read_codebook
from dprepro.release.columns import read_columns
from dprepro.results.audits import read_audits
from dprepro.results.folder import usual
from dprepro.rows.table import Table
from dprepro.runtime.errors import DpreproError, DpreproWarning

CORPUS = Path(__file__).parent / "corpus"
MOST_SECONDS = 1.0
"""Of processor time that a parser may take for one input."""
LONGEST_MESSAGE = 20_000

_CARD = """\
name: mine
task: binary
file: {file}
target: {target}
positive: "1"
format: {format}
"""
_DOMAIN = """\
fill: {c: a}
features: {x: {numeric: [0, 10], missing: true}, c: {categories: [a, b]}}
"""


def _config(path: Path) -> None:
    for config in load_experiments(path):
        plan(config, identify=False)


def _journal(path: Path) -> None:
    usual([JournalTable(path)])  # reads the plan alone
    read_journal(path)


def _data(settings: str, target: str = "y", more: str = "") -> Callable[[Path], None]:
    cards: dict[Path, Card] = {}

    def read(path: Path) -> None:
        if path not in cards:
            place = path.with_name("card.yaml")
            place.write_text(_CARD.format(file=path.name, format=settings, target=target) + more)
            cards[path] = load_card(place)
        load_by(cards[path], online=False)

    return read


def _chunks(path: Path) -> None:
    table = Table.open(path)
    list(table.chunks(dict.fromkeys(table.names, "text"), 100))


def _lines(kind: str) -> str:
    return f"{{kind: {kind}, header: false, columns: [y, x, c]}}"


PARSERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "config": ("mine.yaml", _config),
    "card": ("card.yaml", load_card),
    "model": ("model.json", load_model),
    "journal": ("mine.jsonl", _journal),
    "codebook": ("codebook.csv", read_codebook),
    "audits": ("audit.json", lambda path: read_audits(path.parent)),
    "verdicts": ("verdicts.csv", read_recorded),
    "columns": ("new.csv", read_columns),
    "table": ("rows.csv", _chunks),
    "csv": ("rows.csv", _data("{kind: csv}", more=_DOMAIN)),
    "arff": ("rows.arff", _data("{kind: arff}", more=_DOMAIN)),
    "svmlight": ("rows.svm", _data(_lines("svmlight"))),
    "npz": ("rows.npz", _data(_lines("npz"))),
    "idx": ("rows.idx", _data("{kind: idx}", "pixel1")),
    "parquet": ("rows.parquet", _data("{kind: parquet}")),
}
"""By name: what the file is called, and what reads it."""


class UnclearError(AssertionError):
    """An input got no clear answer: another error than ours, too long a message, or too late."""


def read(parser: str, data: bytes, folder: Path) -> str:
    """Give a parser an input; return what it said, empty if it took it.

    Raises
    ------
    UnclearError
        If the answer is anything but a `DpreproError` of moderate length in moderate time.
    """
    path = folder / PARSERS[parser][0]
    path.write_bytes(data)
    return answer(parser, path)


def answer(parser: str, path: Path) -> str:
    """Do what `read` does with an input that is in a file; the same errors."""
    parse = PARSERS[parser][1]
    said, began = "", time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DpreproWarning)
            parse(path)
    except DpreproError as error:
        said = str(error) or "nothing"
    except Exception as error:
        raise UnclearError(f"{parser}: {type(error).__name__}: {str(error)[:300]}") from error
    took = time.process_time() - began
    if took > MOST_SECONDS:
        raise UnclearError(f"{parser}: took {took:.1f} s")
    if len(said) > LONGEST_MESSAGE or said == "nothing" or "Traceback" in said:
        raise UnclearError(f"{parser}: said {said[:300]!r} ({len(said)} characters)")
    return said


def corpus(parser: str) -> list[bytes]:
    """Return the inputs that are kept for a parser: ordinary ones, and what once went wrong."""
    return [path.read_bytes() for path in sorted((CORPUS / parser).iterdir())]
