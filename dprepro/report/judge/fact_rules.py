"""What is the case about a claim that no result decides: one rule for each kind of claim."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from dprepro.errors import DpreproError
from dprepro.published.claim import FactClaim, half_unit
from dprepro.published.facts import Computed, Repeated, Repeats, Settings
from dprepro.published.published import PublishedCell, load_published
from dprepro.report.judge.finding import Finding
from dprepro.report.judge.quantities import compute
from dprepro.report.judge.settings import found_values, same


def stated(claim: FactClaim) -> Finding:
    """Return what the document states."""
    values = claim.stated()
    return Finding(True, {}, ", ".join(f"{name} {value}" for name, value in values.items()))


@singledispatch
def establish(claim: FactClaim) -> Finding:
    """Return what is the case, and whether it is as stated.

    Raises
    ------
    DpreproError
        If the claim names a quantity, config, method, parameter or cell that does not exist.
    """
    raise TypeError(f"no rule for claims of the kind {type(claim).__name__}")


@establish.register
def _computed(claim: Computed) -> Finding:
    """Compute each number; all must hold."""
    found = {title: compute(figure.quantity, figure.of) for title, figure in claim.figures.items()}
    wrong = [title for title, figure in claim.figures.items() if not figure.holds(found[title])]
    words = [f"{title} {_short(value)}" for title, value in found.items()]
    return Finding(not wrong, found, ", ".join(words) + _other(wrong))


@establish.register
def _settings(claim: Settings) -> Finding:
    """Look each value up in our config, or in the method's defaults; all must be the same."""
    wrong, total = [], 0
    for entry in claim.settings:
        found = found_values(entry)
        total += len(entry.values)
        for name, value in entry.values.items():
            if not same(value, found[name]):
                owner = entry.method or entry.config
                wrong.append(f"{owner} has {name} {_text(found[name])}")
    agree = total - len(wrong)
    text = f"{agree} of {total} values as stated"
    return Finding(not wrong, {"agree": agree, "values": total}, text + _other(wrong))


@establish.register
def _repeats(claim: Repeats) -> Finding:
    """Compare each number with the cell that it repeats, as far as its digits go."""
    cells = [c for c in load_published(claim.paper) if c.table == claim.table]
    wrong = []
    for row in claim.rows:
        cell = _cell_of(row, claim, cells)
        means = abs(cell.mean - float(row.value)) <= half_unit(row.value) * (1 + 1e-9)
        spreads = row.std is None or float(row.std) == cell.std
        if not (means and spreads):
            wrong.append(f"{row.dataset}, {row.method}, ε={row.epsilon:g}: {cell.in_print}")
    total = len(claim.rows)
    text = f"{total - len(wrong)} of {total} agree with Table {claim.table} of {claim.paper}"
    return Finding(
        not wrong, {"agree": total - len(wrong), "repeated": total}, text + _other(wrong)
    )


def _cell_of(row: Repeated, claim: Repeats, cells: list[PublishedCell]) -> PublishedCell:
    wanted = (row.dataset, row.method, row.epsilon, claim.metric)
    for cell in cells:
        if (cell.dataset, cell.method, cell.epsilon, cell.metric) == wanted:
            return cell
    raise DpreproError(
        f"claim {claim.name}: {claim.paper} prints no {claim.metric} of {row.method} on "
        f"{row.dataset} at epsilon {row.epsilon:g} in table {claim.table}; correct the entry"
    )


def _other(wrong: list[str]) -> str:
    return f"; not as stated: {', '.join(wrong)}" if wrong else ""


def _text(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, (list, tuple)) else str(value)


def _short(value: float) -> str:
    """Return a number as text: whole numbers in full, others with four digits."""
    return f"{value:.0f}" if value == round(value) else f"{value:.4g}"
