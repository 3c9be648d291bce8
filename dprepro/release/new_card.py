"""A new card for a file: what is known is in it, and what a person has to say is marked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from dprepro.data.card_parts import MISSING_TEXTS, Format
from dprepro.release.codebook import Codebook, Entry
from dprepro.release.columns import KNOWN_LISTS, Columns, Convention, convention
from dprepro.release.rows import OBSERVED, observed_codes, observed_entry
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.text import json_text, one_line
from dprepro.runtime.yaml_files import FILL_IN, in_words

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_NOT_TEXT = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
_NUMBERED = re.compile(r"([^{}]*?)(0|[1-9][0-9]{0,5})")
_SHORTEST_RUN = 3
_HEAD = """\
# The card of {file}: what is public about it. Put something in the place of each {mark};
# the text after # says what. `dprepro data check` says what is left, and reads no row.
{read}# Bounds, categories and labels must be known without these rows: from a form, a codebook, a
# law.
name: {name}
title: {title}
file: {file}
{format}private: true
"""
_READ = {
    "": "# Names and types of the columns were read from the file: using this card makes them "
    "public.\n",
    "schema": "# Names and types of the columns were read from the schema of the file: using this "
    "card makes\n# them public.\n",
    "header": "# Names, types, categories and ranges were read from the header of the file, and no "
    "row was read:\n# using this card makes them public. Check that they were not made from the "
    "rows.\n",
}
_ALSO_READ = """\
# Read from the rows as well, for what is proposed below. No value was copied, but each line is a
# fact about rows that one row can change. Using this card makes it public, and no epsilon covers
# it. Of a column without a line in a codebook, it is also read that it is not so. If a fact must
# not be known, take the proposal and its line here away, or let a codebook describe all columns.
"""
_OBSERVED_HEAD = """\
# WARNING: bounds and categories marked "observed" are values of the rows (--observed). Such a card
# is for rows that are public: of private ones, it and every model made with it disclose values.
"""
_FACTS = {
    "listed": "no other values than those of a list that everybody knows",
    "numbers": "numbers with decimal commas or marks for thousands",
    "sign": "numbers with a currency or percent sign",
    "dates": "dates or times, all in one format",
    "lacks": "missing values",
    "codes": "a number that often stands for a missing value, far from all other values",
    "identifier": "running numbers, or a different value in every row",
}
"""What a card can say of the rows of a column, in the order of its head."""

_TARGET = """\
# labels: ["no", "yes"]        # if binary or multiclass: all possible classes
# positive: "yes"              # if binary: the class to predict, one of them
# target_bounds: [0, 100]      # if regression: lowest and highest possible value
"""
_UNIT = """\
# unit: COLUMN                 # if several rows can be of one person: the column that says whose
# rows_per_unit: 5             # and how many rows of each are used at most; the unit is no feature
# unit_title: person           # what people call the owner of a row, for statements
"""
_DROP = """\
# drop: [COLUMN]               # columns that are not used, such as the number of a case: each
#                              # column is a feature, the target, the unit, or in this list
"""
_LIMIT = """\
# budget_limit: {epsilon: 1, delta: 1e-6}   # what all releases of these rows may spend together
# expect: {rows: 1000}         # if the number of rows is public: delta follows from it
"""
_OF_CODEBOOK = "Bounds and categories are those of the codebook."
_OF_HEADER = "Bounds and categories are those that the header of the file declares."
_OF_ROWS = "The domain was read from the rows, so it is public only if they are."


@dataclass(frozen=True)
class Choices:
    """What a person says beforehand, in the place of a codebook or above it.

    Attributes
    ----------
    target, unit, drop
        Names of columns.
    positive
        The class to predict.
    missing
        Texts that stand for a missing value in all columns, besides the usual ones.
    decimal, thousands
        How numbers are written; None to find it out.
    """

    target: str | None = None
    unit: str | None = None
    positive: str | None = None
    drop: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    decimal: str | None = None
    thousands: str | None = None


@dataclass(frozen=True)
class NewCard:
    """The text of a card, and what to tell the person who is to fill it in.

    Attributes
    ----------
    text
        The card.
    facts
        Columns by the fact about their rows that the card makes public.
    warnings
        What no reader can do with the file as it is.
    """

    text: str
    facts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    warnings: Sequence[str] = ()


def new_card(
    path: Path,
    columns: Columns,
    card: Path,
    codebook: Codebook | None = None,
    choices: Choices | None = None,
) -> NewCard:
    """Return a card for a file.

    Parameters
    ----------
    path, columns
        The file, and what it says of itself.
    card
        Where the card is going to lie: its name, and the path of the file from there.
    codebook, choices
        What is known beforehand; maybe nothing.

    Raises
    ------
    DpreproError
        If a choice names a column that is not in the file, or choices exclude each other; or if
        they exclude what the codebook says.
    """
    codebook, choices = codebook or Codebook(), choices or Choices()
    _check_choices(columns, choices)
    way = _convention(columns, codebook, choices)
    entries = {name: _known(name, columns, codebook, choices, way) for name in columns.forms}
    _check_roles(entries, choices)
    features = list(_runs(entries))
    facts, lists = _facts(columns, entries), _shared([entry for _, entry in features])
    missing = tuple(dict.fromkeys((*codebook.missing, *choices.missing)))
    observed = columns.rows is not None
    shared = [f"  {scalar(name)}: {_listed(texts)}" for name, texts in lists.items()]
    lines = [
        _head(path, columns, card, way, facts, observed),
        *_target(_one("target", entries), entries, columns, choices.positive),
        *_unit(_one("unit", entries), entries),
        _drop(entries),
        *_codes(columns, entries, missing),
        f"{_LIMIT}domain_note: {_note(codebook, columns, entries, observed)}",
        *(["category_lists:", *shared] if shared else []),
        "features:",
        *(_feature(name, entry, lists) for name, entry in features),
    ]
    return NewCard("\n".join(lines) + "\n", facts, tuple(_warnings(columns, entries, way)))


def scalar(text: str) -> str:
    """Return a text as YAML, in quotes where it could be read as something else."""
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT
    return text if is_plain else json_text(text)


def card_name(path: Path) -> str:
    """Return the name that follows from the file of a card, or of its rows."""
    stem = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-._") or "data"


def check_format(keys: Mapping[str, str | None]) -> None:
    """Refuse options about the file that no card can have. Raises DpreproError."""
    given = {key: value for key, value in keys.items() if value is not None}
    try:
        Format.model_validate(given)
    except ValidationError as error:
        found = error.errors()[0]
        where = f"--{found['loc'][0]}: " if found["loc"] else ""
        raise DpreproError(where + in_words(found["type"], found["msg"])) from None


def _check_choices(columns: Columns, choices: Choices) -> None:
    names, seen = list(columns.forms), dict[str, str]()
    given = [("--target", choices.target), ("--unit", choices.unit)]
    for option, name in [*given, *(("--drop", name) for name in choices.drop)]:
        if name is None:
            continue
        if name not in names:
            raise DpreproError(
                f"{option} {name}: not a column of the file{nearest(name, names) or '.'} "
                f"Its columns: {', '.join(names)}"
            )
        if seen.setdefault(name, option) != option:
            raise DpreproError(f"{name!r} is given for {seen[name]} and for {option}: choose one")


def _check_roles(entries: Mapping[str, Entry], choices: Choices) -> None:
    for kind in ("target", "unit"):
        found = [name for name, entry in entries.items() if entry.kind == kind]
        if len(found) > 1:
            raise DpreproError(
                f"more than one {kind}: {', '.join(found)}. The codebook names one, and --{kind} "
                f"another: leave out --{kind}, or correct the codebook"
            )
    if choices.positive is None:
        return
    target = _one("target", entries)
    if target is None:
        raise DpreproError("--positive is a class of the target: name the target with --target")
    classes = entries[target].categories
    if classes and choices.positive not in classes:
        raise DpreproError(
            f"--positive {choices.positive}: not a class of {target!r}"
            f"{nearest(choices.positive, classes) or '.'} Allowed: {', '.join(classes)}"
        )


def _convention(columns: Columns, codebook: Codebook, choices: Choices) -> Convention:
    """Return how numbers are written in the columns that are used as numbers."""
    used = [
        form
        for name, form in columns.forms.items()
        if form.kind == "numeric"
        and name not in (choices.unit, *choices.drop)
        and _is_number(codebook.entries.get(name))
    ]
    separator = columns.format.get("separator", ",")
    way = convention(used, separator, choices.decimal, choices.thousands)
    check_format({"decimal": way[0], "thousands": way[1] or None})
    return way


def _is_number(entry: Entry | None) -> bool:
    if entry is None:
        return True
    return entry.kind == "numeric" or (entry.kind == "target" and not entry.categories)


def _known(
    name: str, columns: Columns, codebook: Codebook, choices: Choices, way: Convention
) -> Entry:
    """Return what is known of a column: chosen, of the codebook, declared, observed, proposed."""
    form, entry = columns.forms[name], codebook.entries.get(name)
    if name in choices.drop:
        return Entry("drop")
    if name == choices.unit:
        return replace(entry or Entry("unit"), kind="unit")
    if entry is None:
        blanks = (*MISSING_TEXTS, *codebook.missing, *choices.missing)
        entry = _proposed(name, columns, way, blanks, is_target=name == choices.target)
    elif entry.kind == "date" and not entry.date and form.dates:
        entry = replace(entry, date=form.dates[0], proposed=("dates",))
    return replace(entry, kind="target") if name == choices.target else entry


def _proposed(
    name: str, columns: Columns, way: Convention, blanks: Sequence[str], is_target: bool
) -> Entry:
    form = columns.forms[name]
    if name == columns.index and not is_target:
        return Entry("drop", description="it is called like the index of a table")
    if form.categories or form.bounds:
        lower, upper = form.bounds or (None, None)
        said = "from the ARFF header" if columns.declared == "header" else "from the type"
        kind = "categorical" if form.categories else "numeric"
        lacks = ("lacks",) if form.lacks else ()
        return Entry(kind, lower, upper, form.categories, bool(lacks), description=said,
                     proposed=lacks)  # fmt: skip
    if form.identifier and not is_target:
        return Entry("drop", description=form.identifier, proposed=("identifier",))
    if columns.rows is not None:
        return observed_entry(columns.rows[name], form, way, blanks)
    coded = (*(("lacks",) if form.lacks else ()), *(("codes",) if form.codes else ()))
    if form.listed:
        known = KNOWN_LISTS[form.listed]
        return Entry(
            "categorical", categories=known, shared=form.listed, missing=bool(coded),
            description=f"proposed: the column looks like {'/'.join(known)}; check",
            proposed=("listed", *coded),
        )  # fmt: skip
    if form.dates:
        also = f" ({' and '.join(form.dates)} fit)" if len(form.dates) > 1 else ""
        said = f"proposed: its values are dates or times{also}; check"
        return Entry("date", date=form.dates[0], missing=bool(coded), description=said,
                     proposed=("dates", *coded))  # fmt: skip
    if form.sign:
        said = f"its numbers have {form.sign}, which no command takes off: take it out of the file"
        return Entry("numeric", missing=bool(coded), description=said, proposed=("sign", *coded))
    kind = "numeric" if form.kind == "numeric" else "categorical"
    return Entry(kind, missing=bool(coded), proposed=coded)


def _facts(columns: Columns, entries: Mapping[str, Entry]) -> dict[str, list[str]]:
    """Return columns by the fact about their rows that the card makes public."""
    facts: dict[str, list[str]] = {fact: [] for fact in _FACTS}
    for name, entry in entries.items():
        form = columns.forms[name]
        for fact in entry.proposed:
            facts[fact].append(name)
        if form.kind != "numeric" or columns.declared or not _is_number(entry):
            continue
        if form.sign:
            facts["sign"] += [name] if "sign" not in entry.proposed else []
        elif (".", "") not in form.numbers:
            facts["numbers"].append(name)
    return {fact: names for fact, names in facts.items() if names}


def _warnings(columns: Columns, entries: Mapping[str, Entry], way: Convention) -> Iterator[str]:
    """Yield what no reader can do with the file as it is."""
    numbers = [
        (name, columns.forms[name])
        for name, entry in entries.items()
        if columns.forms[name].kind == "numeric" and _is_number(entry) and not columns.declared
    ]
    for sign in sorted({form.sign for _, form in numbers if form.sign}):
        names = ", ".join(name for name, form in numbers if form.sign == sign)
        yield (
            f"numbers with {sign} in {names}: no command takes it off. Take it out of the file, "
            "and say on the card what the numbers are measured in (`measured_in`)"
        )
    odd = [name for name, form in numbers if not form.sign and way not in form.numbers]
    if odd:
        marks = f"{way[0]!r} for decimals" + (f" and {way[1]!r} for thousands" if way[1] else "")
        yield (
            f"numbers in {', '.join(odd)} are written otherwise than those of other columns, which "
            f"have {marks}. Write all in one way; if they are codes and no numbers, say "
            "`categorical` in a codebook (--codebook)"
        )


def _shared(entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
    """Return the lists of categories that several lines of features share, by name."""
    features = [entry for entry in entries if entry.kind == "categorical" and entry.shared]
    counts = Counter((entry.shared, entry.categories) for entry in features)
    features.sort(key=lambda entry: not entry.proposed)  # a list of the codebook keeps its name
    return {e.shared: e.categories for e in features if counts[e.shared, e.categories] > 1}


def _one(kind: str, entries: Mapping[str, Entry]) -> str | None:
    return next((name for name, entry in entries.items() if entry.kind == kind), None)


def _head(
    path: Path, columns: Columns, card: Path, way: Convention, facts: Mapping[str, Sequence[str]],
    observed: bool,
) -> str:  # fmt: skip
    here, there = card.resolve().parent, path.resolve()
    file = there.relative_to(here) if there.is_relative_to(here) else there
    name = card_name(card)
    read = _READ[columns.declared]
    if facts:
        lines = (
            f"#   {_FACTS[fact]}: {one_line(', '.join(names))}\n" for fact, names in facts.items()
        )
        read += _ALSO_READ + "".join(lines)
    if observed:
        read += _OBSERVED_HEAD
    settings = dict(columns.format)
    if way[0] != ".":
        settings["decimal"] = way[0]
    if way[1]:
        settings["thousands"] = way[1]
    pairs = ", ".join(f"{key}: {_setting(value)}" for key, value in settings.items())
    return _HEAD.format(
        file=scalar(file.as_posix()), name=scalar(name), title=scalar(name), mark=FILL_IN,
        format=f"format: {{{pairs}}}  # as the file is written; check\n" if pairs else "",
        read=read,
    )  # fmt: skip


def _setting(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else json_text(value)


def _target(
    name: str | None, entries: Mapping[str, Entry], columns: Columns, positive: str | None
) -> Iterator[str]:
    if name is None:
        yield f"task: {_commented(FILL_IN, 'binary, multiclass or regression')}"
        yield f"target: {_commented(FILL_IN, 'the column to predict; take it out of `features`')}"
        yield _TARGET
        return
    entry = entries[name]
    classes, said = entry.categories, ""
    if entry.description == OBSERVED:
        entry, said = replace(entry, description=""), f"  # {OBSERVED}"
    line = _described(f"target: {scalar(name)}", entry)
    if not classes and positive is None:
        if columns.forms[name].kind == "numeric":
            bounds = _commented(_bounds(entry), "lowest and highest possible value")
            yield "task: regression  # the target holds numbers; binary or multiclass if of classes"
            yield line
            yield f"target_bounds: {bounds}{said}"
        else:
            yield f"task: {_commented(FILL_IN, 'binary or multiclass')}"
            yield line
            yield _TARGET
        return
    if positive is None and len(classes) == 2:
        positive = FILL_IN if said and not entry.shared else classes[-1]
    yield f"task: {'binary' if positive is not None else 'multiclass'}"
    yield line
    if classes:
        yield f"labels: {_listed(classes)}{said}"
    if positive is not None:
        yield f"positive: {_commented(scalar(positive), 'the class to predict')}"
    if entry.relabel:
        yield f"relabel: {_mapped(entry.relabel)}"
    yield ""


def _unit(name: str | None, entries: Mapping[str, Entry]) -> Iterator[str]:
    if name is None:
        yield _UNIT
        return
    entry = entries[name]
    rows = FILL_IN if entry.upper is None else f"{entry.upper:g}"
    yield _described(f"unit: {scalar(name)}", entry)
    yield f"rows_per_unit: {_commented(rows, 'how many rows of each unit are used at most')}"
    yield "# unit_title: person           # what people call such a unit, for statements"


def _drop(entries: Mapping[str, Entry]) -> str:
    dropped = {name: entry for name, entry in entries.items() if entry.kind == "drop"}
    if not dropped:
        return _DROP.rstrip("\n")
    index = "it is called like the index of a table"
    reasons = [
        f"{name or 'the column without a name'}: {entry.description}"
        for name, entry in dropped.items()
        if entry.proposed or entry.description == index
    ]
    why = f"  # proposed: {one_line('; '.join(reasons))}; check" if reasons else ""
    return f"drop: {_listed(dropped)}{why}"


def _codes(columns: Columns, entries: Mapping[str, Entry], missing: Sequence[str]) -> Iterator[str]:
    """Yield the line of missing values, and one that proposes it."""
    coded = (name for name, entry in entries.items() if "codes" in entry.proposed)
    forms = [columns.forms[name] for name in coded]
    found = [form.codes if columns.rows is None else observed_codes(form) for form in forms]
    codes = list(dict.fromkeys(code for codes in found for code in codes))
    texts = _listed(dict.fromkeys((*MISSING_TEXTS, *missing, *codes)))
    if codes and columns.rows is not None:
        yield f"missing: {texts}  # {OBSERVED}"
        return
    if missing:
        yield f"missing: {_listed(dict.fromkeys((*MISSING_TEXTS, *missing)))}"
    if codes:
        yield f"# missing: {texts}"
        yield (
            f"#   proposed: {one_line(', '.join(codes))}, in columns that the head names. If this "
            "is how a missing value is"
        )
        also = " and take away the line above it" if missing else ""
        yield f"#   written, take away the # before `missing`{also}"


def _runs(entries: Mapping[str, Entry]) -> Iterator[tuple[str, Entry]]:
    """Yield the features; those that are numbered and alike are one, called such as q{1..40}."""
    run: list[tuple[str, Entry]] = []
    for name, entry in [*entries.items(), ("", Entry("drop"))]:
        if run and not _continues(run, name, entry):
            yield from [_as_one(run)] if len(run) >= _SHORTEST_RUN else run
            run = []
        if entry.kind not in ("target", "unit", "drop"):
            run.append((name, entry))


def _continues(run: Sequence[tuple[str, Entry]], name: str, entry: Entry) -> bool:
    before, number = _numbered(run[-1][0])
    return (
        number is not None
        and _numbered(name) == (before, number + 1)
        and _alike(run[0][1]) == _alike(entry)
    )


def _alike(entry: Entry) -> Entry:
    """Return what features of one line have in common: of some, values may be missing."""
    return replace(entry, missing=False, proposed=tuple(set(entry.proposed) & {"listed", "dates"}))


def _numbered(name: str) -> tuple[str, int | None]:
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, None)


def _as_one(run: Sequence[tuple[str, Entry]]) -> tuple[str, Entry]:
    before, first = _numbered(run[0][0])
    proposed = dict.fromkeys(fact for _, entry in run for fact in entry.proposed)
    merged = replace(
        run[0][1], missing=any(entry.missing for _, entry in run), proposed=tuple(proposed)
    )
    return f"{before}{{{first}..{_numbered(run[-1][0])[1]}}}", merged


def _feature(name: str, entry: Entry, lists: Mapping[str, Sequence[str]]) -> str:
    if entry.kind in ("numeric", "date"):
        domain, wanted = f"numeric: {_bounds(entry)}", "lowest and highest possible value"
        if entry.kind == "date":
            domain += f", date: {json_text(entry.date) if entry.date else FILL_IN}"
            wanted += ", in years (in hours for times of day)"
    else:
        shared = entry.shared if lists.get(entry.shared) == entry.categories else ""
        found = scalar(shared) if shared else _listed(entry.categories or [FILL_IN])
        domain, wanted = f"categories: {found}", "all possible values"
    more = _grouped(entry) if entry.kind == "categorical" else ""
    more += ", ordered: true" if entry.ordered and entry.kind == "categorical" else ""
    more += ", missing: true" if entry.missing else ""
    more += f", measured_in: {scalar(entry.measured_in)}" if entry.measured_in else ""
    line = f"  {scalar(name)}: {{{domain}{more}}}"
    if FILL_IN in line:
        said = f"; {entry.description}" if entry.proposed and entry.description else ""
        if ".." in name:
            said += "; give columns that differ a line of their own"
        if not entry.missing:
            wanted += "; `missing: true` if values can be missing"
        return _commented(line, wanted + said)
    return _described(line, entry)


def _grouped(entry: Entry) -> str:
    """Return the key that says which texts of the file a category stands for."""
    groups = {
        label: [old for old, to in entry.relabel.items() if to == label]
        for label in dict.fromkeys(entry.relabel.values())
    }
    if not groups:
        return ""
    texts = (f"{scalar(label)}: {_listed(olds)}" for label, olds in groups.items())
    return f", groups: {{{', '.join(texts)}}}"


def _note(
    codebook: Codebook, columns: Columns, entries: Mapping[str, Entry], observed: bool
) -> str:
    """Return the line that says why the domain is public; what was proposed cannot say it."""
    is_said = all(
        entry.kind in ("drop", "unit") or (name in codebook.entries and not entry.proposed)
        or ((columns.forms[name].categories or columns.forms[name].bounds) and not entry.proposed)
        for name, entry in entries.items()
    )  # fmt: skip
    said = [_OF_CODEBOOK] if codebook.entries else []
    said += [_OF_HEADER] if columns.declared == "header" else []
    if observed:
        return scalar(" ".join([*said, _OF_ROWS]))
    if not said or not is_said:
        return _commented(FILL_IN, "why all below is known without the rows")
    return scalar(" ".join(said))


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(text if text == FILL_IN else scalar(text) for text in texts)}]"


def _mapped(pairs: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{scalar(old)}: {scalar(new)}' for old, new in pairs.items())}}}"


def _bounds(entry: Entry) -> str:
    given = (entry.lower, entry.upper)
    return f"[{', '.join(FILL_IN if v is None else repr(v).removesuffix('.0') for v in given)}]"


def _commented(text: str, comment: str) -> str:
    """Return a place to fill in with what is wanted there; else the text as it is."""
    return f"{text}  # {one_line(comment)}" if FILL_IN in text else text


def _described(line: str, entry: Entry) -> str:
    comment = one_line(entry.description)
    return f"{line}  # {comment}" if comment else line
