"""Several results with different settings for one cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dprepro.report.levels import NON_PRIVATE, level
from dprepro.report.read.results import ResultCell
from dprepro.text import shell


@dataclass(frozen=True)
class Clash:
    """Two or more results of one label, dataset and epsilon, with different settings."""

    cells: tuple[ResultCell, ...]

    @property
    def mark(self) -> str:
        """What a table shows instead of a number."""
        return f"{len(self.cells)} results"

    @property
    def differences(self) -> str:
        """Name the settings that differ, parameters one by one, and their values."""
        tasks = [_settings(cell) for cell in self.cells]
        names = dict.fromkeys(name for task in tasks for name in task)
        differ = {
            name: values
            for name in names
            if len(set(values := [str(task.get(name, "default")) for task in tasks])) > 1
        }
        return ", ".join(f"{name} {' or '.join(found)}" for name, found in differ.items())

    @property
    def place(self) -> str:
        """The dataset and the label."""
        return f"{self.cells[0].dataset}, {self.cells[0].task.label}"

    def __str__(self) -> str:
        return _sentence(self, "")


def clash_notes(clashes: Iterable[Clash]) -> list[str]:
    """Say once for each dataset, label and set of configs how their results differ.

    The settings are those at the first privacy level; all levels are named.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[Clash]] = {}
    for clash in clashes:
        journals = tuple(_names(cell) for cell in clash.cells)
        groups.setdefault((clash.place, journals), []).append(clash)
    return [_sentence(found[0], _levels(found)) for found in groups.values()]


def apart_notes(cells: Iterable[ResultCell]) -> list[str]:
    """Say once for each label and set of configs why their results stand apart."""
    places: dict[tuple[str, float], list[ResultCell]] = {}
    for cell in cells:
        if cell.has_records:
            places.setdefault((cell.task.label, cell.task.epsilon), []).append(cell)
    groups: dict[tuple[str, ...], list[Clash]] = {}
    for found in places.values():
        if len(found) > 1:
            clash = Clash(tuple(found))
            groups.setdefault((clash.place, *map(_names, found)), []).append(clash)
    return [
        f"{clashes[0].place}{_levels(clashes)}: {' and '.join(names)} differ in their settings "
        f"({clashes[0].differences}), and stand apart"
        for (_, *names), clashes in groups.items()
    ]


def _sentence(clash: Clash, levels: str) -> str:
    names = [_names(cell) for cell in clash.cells]
    return (
        f"{clash.place}{levels}: {clash.mark} with different settings ({clash.differences}), in "
        f"{' and '.join(names)}. Choose one with --config "
        f"{shell(clash.cells[0].journals[0])}, or give one of them a label of its own in its config"
    )


def _levels(clashes: Sequence[Clash]) -> str:
    levels = dict.fromkeys(level(clash.cells[0].task.epsilon) for clash in clashes)
    return f" at epsilon {', '.join(levels)}" if list(levels) != [NON_PRIVATE] else ""


def _settings(cell: ResultCell) -> dict[str, object]:
    fields = cell.task.to_json()
    parameters = fields.pop("params")
    del fields["split"]
    return {**fields, **parameters}


def _names(cell: ResultCell) -> str:
    return "+".join(cell.journals)
