"""A new card for a file: what is known is in it, and what a person has to say is marked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dprepro.errors import DpreproError, nearest
from dprepro.release.codebook import OTHERS, Entry
from dprepro.release.columns import Columns, Kind
from dprepro.yaml_source import FILL_IN

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_NOT_TEXT = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
_HEAD = """\
# The card of {file}: what is public about it. Put something in the place of each {mark};
# the text after # says what. `dprepro data check` says what is left, and reads no row.
# Names and types of the columns were read from the file: using this card makes them public.
# Bounds, categories and labels must be known without these rows: from a form, a codebook, a law.
name: {name}
title: {title}
file: {file}
{format}private: true
"""
_TARGET = """\
# labels: ["no", "yes"]        # if binary or multiclass: all possible classes
# positive: "yes"              # if binary: the class to predict, one of them
# target_bounds: [0, 100]      # if regression: lowest and highest possible value
"""
_UNIT = """\
# unit: COLUMN                 # if several rows can be of one person: the column that says whose
# rows_per_unit: 5             # and how many rows of each are used at most; the unit is no feature
"""
_DROP = """\
# drop: [COLUMN]               # columns that are not used, such as the number of a case: each
#                              # column is a feature, the target, the unit, or in this list
"""
_LIMIT = """\
# budget_limit: {epsilon: 1, delta: 1e-6}   # what all releases of these rows may spend together
# expect: {rows: 1000}         # if the number of rows is public: delta follows from it
"""


def new_card(path: Path, columns: Columns, card: Path, codebook: Mapping[str, Entry]) -> str:
    """Return the text of a card for a file.

    Parameters
    ----------
    path, columns
        The file, and what it says of itself.
    card
        Where the card is going to lie: its name, and the path of the file from there.
    codebook
        What is known beforehand; maybe nothing.

    Raises
    ------
    DpreproError
        If the codebook names a column that is not in the file, two targets or units, or says that a
        column of texts is numeric.
    """
    if OTHERS in codebook:
        rest = dict.fromkeys(columns.kinds, codebook[OTHERS])
        codebook = {n: e for n, e in {**rest, **codebook}.items() if n != OTHERS}
    _check(columns, codebook)
    of = {kind: [n for n, e in codebook.items() if e.kind == kind] for kind in ("target", "unit")}
    hidden = {n for n, e in codebook.items() if e.kind in ("target", "unit", "drop")}
    drop = [name for name, entry in codebook.items() if entry.kind == "drop"]
    features = [name for name in columns.kinds if name not in hidden]
    note = scalar("Bounds and categories are those of the codebook.") if codebook else FILL_IN
    lines = [
        _head(path, columns, card),
        *_target(of["target"], codebook),
        *_unit(of["unit"], codebook),
        f"drop: [{', '.join(map(scalar, drop))}]" if drop else _DROP.rstrip("\n"),
        _LIMIT + f"domain_note: {_commented(note, 'why all below is known without the rows')}",
        "features:",
        *(_feature(name, columns.kinds[name], codebook.get(name)) for name in features),
    ]
    return "\n".join(lines) + "\n"


def scalar(text: str) -> str:
    """Return a text as YAML, in quotes where it could be read as something else."""
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def card_name(path: Path) -> str:
    """Return the name that follows from the file of a card, or of its rows."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).strip("-._") or "data"


def _check(columns: Columns, codebook: Mapping[str, Entry]) -> None:
    for name in codebook:
        if name not in columns.kinds:
            raise DpreproError(
                f"the codebook describes {name!r}, which is not a column of the file"
                f"{nearest(name, list(columns.kinds)) or '.'} "
                f"Its columns: {', '.join(columns.kinds)}"
            )
    _check_commas(columns, codebook)
    for name, entry in codebook.items():
        if entry.kind == "numeric" and columns.kinds[name] == "text":
            raise DpreproError(
                f"the codebook says that {name!r} is numeric, but the file holds text there: say "
                "`categorical`, or correct the file"
            )
    for kind in ("target", "unit"):
        found = [name for name, entry in codebook.items() if entry.kind == kind]
        if len(found) > 1:
            raise DpreproError(f"the codebook names more than one {kind}: {', '.join(found)}")


def _check_commas(columns: Columns, codebook: Mapping[str, Entry]) -> None:
    """Refuse numbers with commas, unless the codebook says that they are none or not used."""
    found = [n for n in columns.with_commas if n not in codebook or _is_number(codebook[n])]
    if found:
        read = f"pandas.read_csv(FILE, sep={columns.separator!r}, decimal=',')"
        raise DpreproError(
            f"numbers with a comma in {', '.join(found)}: as they stand, they are text. A number "
            "has a decimal point and no mark for thousands. If the commas are decimal commas, "
            f"{read}.to_csv(NEW, index=False) writes such a file; if they are marks for thousands, "
            "say thousands=',' in the place of decimal=','. If these are codes and no numbers, say "
            "`categorical` in a codebook (--codebook)"
        )


def _is_number(entry: Entry) -> bool:
    return entry.kind == "numeric" or (entry.kind == "target" and not entry.categories)


def _head(path: Path, columns: Columns, card: Path) -> str:
    here, there = card.resolve().parent, path.resolve()
    file = there.relative_to(here) if there.is_relative_to(here) else there
    name = card_name(card)
    separator = columns.separator
    settings = f"format: {{separator: {json.dumps(separator)}}}\n" if separator != "," else ""
    return _HEAD.format(
        file=scalar(file.as_posix()), name=scalar(name), title=scalar(name), mark=FILL_IN,
        format=settings,
    )  # fmt: skip


def _target(found: Sequence[str], codebook: Mapping[str, Entry]) -> Iterable[str]:
    if not found:
        yield f"task: {_commented(FILL_IN, 'binary, multiclass or regression')}"
        yield f"target: {_commented(FILL_IN, 'the column to predict; take it out of `features`')}"
        yield _TARGET
        return
    entry = codebook[found[0]]
    classes = [scalar(label) for label in entry.categories]
    task = "regression" if not classes else "binary" if len(classes) == 2 else "multiclass"
    yield f"task: {task}"
    yield _described(f"target: {scalar(found[0])}", entry)
    if not classes:
        yield f"target_bounds: {_bounds(entry)}"
        return
    yield f"labels: [{', '.join(classes)}]"
    if task == "binary":
        yield f"positive: {classes[-1]}"
    if entry.relabel:
        pairs = (f"{scalar(old)}: {scalar(label)}" for old, label in entry.relabel.items())
        yield f"relabel: {{{', '.join(pairs)}}}"
    yield ""


def _unit(found: Sequence[str], codebook: Mapping[str, Entry]) -> Iterable[str]:
    if not found:
        yield _UNIT
        return
    entry = codebook[found[0]]
    rows = FILL_IN if entry.upper is None else f"{entry.upper:g}"
    yield _described(f"unit: {scalar(found[0])}", entry)
    yield f"rows_per_unit: {_commented(rows, 'how many rows of each unit are used at most')}"


def _feature(name: str, kind: Kind, entry: Entry | None) -> str:
    numeric = kind == "numeric" if entry is None else entry.kind == "numeric"
    known = entry or Entry("numeric" if numeric else "categorical")
    if numeric:
        domain, wanted = f"numeric: {_bounds(known)}", "lowest and highest possible value"
    else:
        categories = ", ".join(map(scalar, known.categories)) or FILL_IN
        domain, wanted = f"categories: [{categories}]", "all possible values"
    more = ", missing: true" if known.missing else ""
    more += f", measured_in: {scalar(known.measured_in)}" if known.measured_in else ""
    line = f"  {scalar(name)}: {{{domain}{more}}}"
    if FILL_IN in line:
        return _commented(line, f"{wanted}; `missing: true` if values can be missing")
    return _described(line, known)


def _bounds(entry: Entry) -> str:
    given = (entry.lower, entry.upper)
    return f"[{', '.join(FILL_IN if v is None else repr(v).removesuffix('.0') for v in given)}]"


def _commented(text: str, comment: str) -> str:
    """Return a place to fill in with what is wanted there; else the text as it is."""
    return f"{text}  # {comment}" if FILL_IN in text else text


def _described(line: str, entry: Entry) -> str:
    comment = " ".join(entry.description.split())
    return f"{line}  # {comment}" if comment else line
