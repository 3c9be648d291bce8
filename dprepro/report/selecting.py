"""Which methods, datasets and rows of a table are shown, in which order, with how many digits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dprepro.papers.document import Column
from dprepro.report.layout import Entry, Group, ResultTable, mark_best
from dprepro.runtime.errors import DpreproError
from dprepro.runtime.text import MOST_NAMED, in_short


def methods_meant(given: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the labels that a user means by names, headings, or lists of these between commas.

    Raises DpreproError if one is not known; the message says which there are.
    """
    from dprepro.experiment.method_names import name_meant, nearest_meant, split_names
    from dprepro.methods.registry import refuse_shared

    meant = [name_meant(name, known) for name in split_names(given, known)]
    for name in meant:
        refuse_shared(name, known)
        if name not in known:
            raise DpreproError(
                f"no method {name!r} here{nearest_meant(name, known) or '.'} "
                f"There are: {in_short(list(known), MOST_NAMED)}"
            )
    return list(dict.fromkeys(meant))


def labels_of(tables: Iterable[ResultTable]) -> list[str]:
    """Return the labels of all columns, then those of non-private twins, each once."""
    columns = [column for table in tables for column in table.columns]
    twins = [column.nonprivate for column in columns if column.nonprivate]
    return list(dict.fromkeys([*(column.method for column in columns), *twins]))


def select(
    tables: Sequence[ResultTable],
    methods: Sequence[str] = (),
    datasets: Sequence[str] = (),
    digits: int | None = None,
    drop_empty: bool = False,
    titles: Mapping[str, str] | None = None,
) -> list[ResultTable]:
    """Return the tables with the chosen columns and groups, in the order in which they are named.

    The best of a row is the best of what is shown, at so many digits. A table that holds none of
    the methods is left out.

    Parameters
    ----------
    methods
        Labels, headings, or lists of these between commas; default all columns.
    datasets
        Their order; groups of other datasets follow. Default: the order of the printed table.
    digits
        After the point; default those of the printed table.
    drop_empty
        Leave out rows, columns and datasets without any number.
    titles
        Headings of non-private methods that get a column of their own, by label.

    Raises
    ------
    DpreproError
        If a method stands in none of the tables, or nothing is left to show.
    """
    wanted = methods_meant(methods, labels_of(tables))
    names = titles or {}
    found = [_selected(table, wanted, datasets, digits, drop_empty, names) for table in tables]
    left = [table for table in found if table.columns and table.groups]
    if not left:
        raise DpreproError(
            "nothing is left to show: no row has a number. Leave out --drop-empty, or name other "
            "methods or datasets"
        )
    return left


def _selected(
    table: ResultTable,
    methods: Sequence[str],
    datasets: Sequence[str],
    digits: int | None,
    drop_empty: bool,
    titles: Mapping[str, str],
) -> ResultTable:
    places = list(enumerate(table.columns))
    if methods:
        places = list(_places(table, methods, titles))
    order = {name: place for place, name in enumerate(datasets)}
    groups = sorted(table.groups, key=lambda group: order.get(group.dataset, len(order)))
    groups = [_group(group, places, table, digits) for group in groups]
    columns = [column for _, column in places]
    if drop_empty:
        rows = [row for group in groups for row in group.rows]
        kept = [k for k in range(len(columns)) if any(has_number(row[k]) for row in rows)]
        columns = [columns[k] for k in kept]
        groups = [
            replace(group, rows=tuple(tuple(row[k] for k in kept) for row in group.rows
                                      if any(map(has_number, row))))
            for group in groups
        ]  # fmt: skip
        groups = [group for group in groups if group.rows]
    return replace(table, columns=tuple(columns), groups=tuple(groups))


def has_number(entry: Entry) -> bool:
    """Whether an entry has a measured number, or a printed one beside it."""
    measured = entry.result is not None and any(entry.result.values.values())
    return measured or entry.verdict is not None or entry.clash is not None


def _places(
    table: ResultTable, methods: Sequence[str], titles: Mapping[str, str]
) -> Iterator[tuple[int, Column]]:
    """Yield the place and heading of each method; a twin that has no column gets one."""
    for label in methods:
        own = [k for k, column in enumerate(table.columns) if column.method == label]
        twins = [k for k, column in enumerate(table.columns) if column.nonprivate == label]
        if own:
            yield own[0], table.columns[own[0]]
        elif twins:
            yield twins[0], Column(title=titles.get(label, label), method=label)


def _group(
    group: Group, places: Sequence[tuple[int, Column]], table: ResultTable, digits: int | None
) -> Group:
    decimals = group.decimals if digits is None else digits
    rows = []
    for row in group.rows:
        entries = [_entry(row[k], column) for k, column in places]
        rows.append(mark_best(entries, table.metric, decimals))
    return replace(group, decimals=decimals, rows=tuple(rows))


def _entry(entry: Entry, column: Column) -> Entry:
    """Return an entry, or an empty one where the column does not show its label."""
    label = column.label(entry.epsilon)
    return entry if entry.label == label else Entry(label, entry.epsilon)
