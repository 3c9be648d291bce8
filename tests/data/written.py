"""Tables as text files, written and read again by Python's `csv`: it knows nothing of dprepro."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dprepro.data.card import Card

MISSING = ["", "?", "n/a"]
CATEGORIES = ["Bonn", "Lyon", "a,b", 'the "old"', "x;y", "two words"]
LABELS = ["no", "yes"]
SEPARATORS = [",", ";", "\t", "|", " "]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"]
MARKS = ['"', ",", ";", "\t", "|", " ", "\r", "\n", "\r\n", "#", "'", "\\", "\xa0", '""', '"\n"']


def texts(encoding: str, most: int = 12) -> st.SearchStrategy[str]:
    """Any text: but NUL, a byte order mark, and the mark by which DOS ends a file."""
    codec = {"utf-8-sig": "utf-8", "utf-16": "utf-8"}.get(encoding, encoding)
    letters = st.characters(
        codec=codec, exclude_characters="\0\ufeff\x1a", exclude_categories=["Cs"]
    )
    return st.lists(st.one_of(st.sampled_from(MARKS), letters), max_size=most).map("".join)


def read_again(text: str, separator: str = ",") -> list[list[str]]:
    """Return all records but empty lines, as Python's csv reads them; it raises `csv.Error`."""
    limit = csv.field_size_limit(2**28)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        return [row for row in reader if row]
    finally:
        csv.field_size_limit(limit)


def as_name(text: str) -> str:
    """Return a column's name as a card has it."""
    return re.sub(r"\s*[\r\n]+\s*", " ", text.strip())


def number_in(cell: str, decimal: str = ".", missing: Sequence[str] = MISSING) -> float:
    cell = cell.strip()
    return math.nan if cell in missing else float(cell.replace(decimal, "."))


def text_in(cell: str, missing: Sequence[str] = MISSING) -> str | None:
    return None if cell.strip() in missing else cell.strip()


@dataclass
class Written:
    """A table in a file: columns number, city, note, who, target, in a drawn order.

    `names` are those in the file by these keys; `records` is what Python's csv reads.
    """

    names: dict[str, str]
    order: list[str]
    text: str
    content: bytes
    settings: dict[str, Any]
    task: str
    is_zipped: bool
    records: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        header, *rows = read_again(self.text, self.settings["separator"])
        assert header == [self.names[key] for key in self.order]
        self.records = [dict(zip(self.order, row, strict=True)) for row in rows]

    def write(self, folder: Path) -> Path:
        path = folder / ("t.csv.gz" if self.is_zipped else "t.csv")
        path.write_bytes(self.content)
        return path

    def name(self, key: str) -> str:
        return as_name(self.names[key])

    def card(self, path: Path, with_unit: bool = False, **more: Any) -> Card:
        """Return the card of the file; without a unit, its column is dropped."""
        target: dict[str, Any] = {"task": "regression", "target_bounds": [-1e9, 1e9]}
        if self.task == "binary":
            target = {"task": "binary", "labels": LABELS, "positive": "yes"}
        unit: dict[str, Any] = {"drop": [self.name("note"), self.name("who")]}
        if with_unit:
            unit = {"drop": [self.name("note")], "unit": self.name("who"), "rows_per_unit": 2}
        features = {
            self.name("number"): {"numeric": [-1e9, 1e9], "missing": True},
            self.name("city"): {"categories": CATEGORIES, "missing": True},
        }
        card = Card(
            name="t", target=self.name("target"), file=path.name, format=self.settings,
            missing=MISSING, features=features, **target, **unit, **more,
        )  # fmt: skip
        card._folder = path.parent
        return card

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Number, city and target of each record, as they are to be read; NaN as None."""
        decimal = self.settings["decimal"]
        return [
            (
                plain(number_in(record["number"], decimal)),
                text_in(record["city"]),
                number_in(record["target"], decimal)
                if self.task == "regression"
                else LABELS.index(record["target"].strip()),
            )
            for record in self.records
        ]


def plain(value: Any) -> Any:
    """Return a value to compare: None for NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def column(values: Any) -> list[Any]:
    """Return a column of pandas or NumPy as a list, with None where a value is missing."""
    return [plain(value) for value in values.tolist()]


@st.composite
def written(draw: st.DrawFn, most_rows: int = 8) -> Written:
    """Return a table as somebody may have written it."""
    encoding = draw(st.sampled_from(ENCODINGS))
    separator = draw(st.sampled_from(SEPARATORS))
    decimal = draw(st.sampled_from([".", ","]))
    line_end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    task = draw(st.sampled_from(["binary", "regression"]))
    cell = texts(encoding)
    keys = ["number", "city", "note", "who", "target"]
    names = draw(
        st.lists(cell.filter(as_name), min_size=5, max_size=5, unique_by=as_name)
        | st.just(["n", "c", "free text", "who", "y"])
    )
    order = draw(st.permutations(keys))
    blanks = st.sampled_from(["", "", " ", "  ", "\t", "\xa0", "\n"])

    def among(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.tuples(blanks, values, blanks).map("".join)

    numbers = st.one_of(
        st.floats(-1e9, 1e9).map(repr), st.integers(-999, 999).map(str),
        st.decimals(-999, 999, places=2).map(str), st.sampled_from(["007", "+1", "1.", ".5", "-0"]),
    ).map(lambda text: text.replace(".", decimal))  # fmt: skip
    label = st.sampled_from(LABELS)
    values = {
        "number": among(numbers | st.sampled_from(MISSING)),
        "city": among(st.sampled_from(CATEGORIES + MISSING)),
        "note": cell,
        "who": cell.filter(lambda text: text_in(text) is not None),
        "target": among(label if task == "binary" else numbers),
    }
    count = draw(st.integers(1, most_rows))
    rows = [[draw(values[key]) for key in order] for _ in range(count)]
    by_key = dict(zip(keys, names, strict=True))
    lines = [written_line([by_key[key] for key in order], separator, quoting, line_end)]
    lines += [written_line(row, separator, quoting, line_end) for row in rows]
    if draw(st.booleans()):
        lines[-1] = lines[-1].removesuffix(line_end)
    comment = draw(st.sampled_from([None, "#", "//"]))
    if any(line.startswith(str(comment)) for line in lines):
        comment = None
    between = [line_end, ""] + ([f'{comment} "not closed{line_end}'] if comment else [])
    whole = "".join(draw(st.sampled_from(between)) + line for line in lines)
    content = whole.encode(encoding)
    is_zipped = draw(st.booleans())
    settings = {
        "separator": separator,
        "decimal": decimal,
        "encoding": encoding,
        "comment": comment,
    }
    return Written(
        by_key, list(order), "".join(lines), gzip.compress(content, 1) if is_zipped else content,
        settings, task, is_zipped,
    )  # fmt: skip


def written_line(cells: Sequence[str], separator: str, quoting: Any, line_end: str) -> str:
    """Return a record as Python's csv writes it."""
    line = io.StringIO()
    csv.writer(line, delimiter=separator, quoting=quoting).writerow(cells)
    return line.getvalue().removesuffix("\r\n") + line_end
