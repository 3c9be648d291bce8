"""Claims that no result decides: what is computed, how methods are set, what is printed twice."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from dprepro.judge.claim import Claim, Finding, half_unit
from dprepro.judge.quantities import builtin_config, compute, entry_of, found_params
from dprepro.papers.cells import PublishedCell, load_published
from dprepro.papers.schema import Strict
from dprepro.runtime.errors import DpreproError, nearest

_WORDS: dict[str, JsonValue] = {"null": None, "true": True, "false": False}


def _plain(value: Any) -> Any:
    """Return a value of a YAML file that was read as text: numbers as numbers, in lists as well."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if not isinstance(value, str):
        return value
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return _WORDS.get(value, value)


Values = Annotated[dict[str, JsonValue], BeforeValidator(_plain)]


class FactClaim(Claim):
    """A claim that no result decides: about datasets, settings, noise, or other printed numbers."""

    @abstractmethod
    def stated(self) -> dict[str, str]:
        """Return the stated numbers by what they are, as printed."""

    @abstractmethod
    def establish(self) -> Finding:
        """Return what is the case, and whether it is as stated.

        Raises
        ------
        DpreproError
            If it names a quantity, config, method, parameter or cell that does not exist.
        """


def _finding(wrong: list[str], figures: Mapping[str, float], text: str) -> Finding:
    other = f"; not as stated: {', '.join(wrong)}" if wrong else ""
    return Finding(not wrong, figures, text + other)


class Figure(Strict):
    """A number as printed, and the quantity that it should be.

    `quantity` is a key of `dprepro.judge.quantities.QUANTITIES`, and `of` has its arguments.
    `within` is how far the number may be off; by default half a unit of its last digit.
    """

    quantity: str
    of: Values = Field(default_factory=dict)
    value: Decimal
    relation: Literal["is", "at most"] = "is"
    within: Decimal | None = None

    @model_validator(mode="after")
    def _check(self) -> Figure:
        if self.relation == "at most" and self.within is not None:
            raise ValueError("`within` is for the relation `is`; leave it out")
        return self

    def holds(self, found: float) -> bool:
        """Whether `found` agrees with the printed number."""
        if self.relation == "at most":
            return found <= float(self.value)
        width = half_unit(self.value) if self.within is None else float(self.within)
        off = abs(found - float(self.value))
        return off <= width or math.isclose(off, width, rel_tol=1e-9)


class Computed(FactClaim):
    """Numbers that can be computed from cards, configs, or formulas."""

    figures: dict[str, Figure] = Field(min_length=1)

    def stated(self) -> dict[str, str]:
        """Return the numbers, with "at most" where they are bounds."""
        return {
            title: f"at most {figure.value}" if figure.relation == "at most" else str(figure.value)
            for title, figure in self.figures.items()
        }

    def establish(self) -> Finding:
        """Compute each number; all must hold."""
        found = {title: compute(fig.quantity, fig.of) for title, fig in self.figures.items()}
        wrong = [title for title, figure in self.figures.items() if not figure.holds(found[title])]
        return _finding(wrong, found, ", ".join(f"{t} {_short(v)}" for t, v in found.items()))


def _short(value: float) -> str:
    """Return a number as text: whole numbers in full, others with four digits."""
    return f"{value:.0f}" if value == round(value) else f"{value:.4g}"


class SettingsOf(Strict):
    """Values as stated, of a method's parameters or of a config.

    Attributes
    ----------
    config
        The name of a config. Without one, the defaults of the method count.
    method
        The label of a method in the config, or a method's name.
    epsilon
        The privacy level, for values that hold at one level.
    params
        Parameters of the method.
    grid
        Lists of values that the config tries, by parameter.
    keys
        Keys of the config itself, such as ``splits``.
    """

    config: str | None = None
    method: str | None = None
    epsilon: float | None = None
    params: Values = Field(default_factory=dict)
    grid: Values = Field(default_factory=dict)
    keys: Values = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> SettingsOf:
        if (self.params or self.grid) and self.method is None:
            raise ValueError("`params` and `grid` need a `method`")
        if (self.grid or self.keys) and self.config is None:
            raise ValueError("`grid` and `keys` need a `config`")
        if not (self.params or self.grid or self.keys):
            raise ValueError("give `params`, `grid` or `keys`")
        return self

    @property
    def values(self) -> dict[str, JsonValue]:
        """All stated values."""
        return {**self.keys, **self.grid, **self.params}

    def ours(self) -> dict[str, Any]:
        """Return our value of everything that it names.

        Raises
        ------
        DpreproError
            If there is no such built-in config, key, method or parameter.
        """
        found: dict[str, Any] = {}
        if self.config is not None:
            keys = dict(builtin_config(self.config))
            found |= _select(keys, self.keys, f"config {self.config}")
        if self.method is not None:
            owner = f"{self.method} in {self.config or 'its defaults'}"
            if self.grid and self.config is not None:
                found |= _select(entry_of(self.config, self.method).grid, self.grid, owner)
            params = found_params(self.config, self.method, self.epsilon)
            found |= _select(params, self.params, owner)
        return found


def _select(ours: Mapping[str, Any], stated: Mapping[str, Any], owner: str) -> dict[str, Any]:
    for name in stated:
        if name not in ours:
            raise DpreproError(
                f"{owner} has no {name!r}{nearest(name, list(ours)) or '.'} "
                f"Allowed: {', '.join(ours)}"
            )
    return {name: ours[name] for name in stated}


def same(stated: Any, ours: Any) -> bool:
    """Whether two values agree; lists entry by entry, numbers up to the last binary digits."""
    if isinstance(stated, list):
        is_list = isinstance(ours, (list, tuple)) and len(stated) == len(ours)
        return is_list and all(map(same, stated, ours))
    if isinstance(stated, (int, float)) and isinstance(ours, (int, float)):
        return math.isclose(stated, ours, rel_tol=1e-9)
    return bool(stated == ours)


class Settings(FactClaim):
    """Hyper-parameters and protocols: what the document states is what our configs have."""

    settings: list[SettingsOf] = Field(min_length=1)

    def stated(self) -> dict[str, str]:
        """Return the values by name; a name that comes again has the method or config before it."""
        found: dict[str, str] = {}
        for entry in self.settings:
            for name, value in entry.values.items():
                title = f"{entry.method or entry.config} {name}" if name in found else name
                found[title] = str(value)
        return found

    def establish(self) -> Finding:
        """Look each value up in our config, or in the method's defaults; all must be the same."""
        wrong, total = [], 0
        for entry in self.settings:
            found = entry.ours()
            total += len(entry.values)
            for name, value in entry.values.items():
                if not same(value, found[name]):
                    owner = entry.method or entry.config
                    wrong.append(f"{owner} has {name} {_text(found[name])}")
        agree = total - len(wrong)
        text = f"{agree} of {total} values as stated"
        return _finding(wrong, {"agree": agree, "values": total}, text)


def _text(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, (list, tuple)) else str(value)


class Repeated(Strict):
    """A number printed a second time, and the cell that it repeats."""

    dataset: str
    method: str
    epsilon: float = math.inf
    value: Decimal
    std: Decimal | None = None

    def agrees_with(self, cell: PublishedCell) -> bool:
        """Whether it is the number of the cell, as far as its digits go."""
        means = abs(cell.mean - float(self.value)) <= half_unit(self.value) * (1 + 1e-9)
        return means and (self.std is None or float(self.std) == cell.std)


class Repeats(FactClaim):
    """Numbers that are printed in another table as well, up to the rounding of the shorter one."""

    paper: str
    table: str
    metric: str
    rows: list[Repeated] = Field(min_length=1)

    def stated(self) -> dict[str, str]:
        """Return how many numbers are repeated."""
        return {"repeated": str(len(self.rows))}

    def establish(self) -> Finding:
        """Compare each number with the cell that it repeats."""
        cells = [c for c in load_published(self.paper) if c.table == self.table]
        wrong = [
            f"{row.dataset}, {row.method}, ε={row.epsilon:g}: {cell.in_print}"
            for row in self.rows
            if not row.agrees_with(cell := self._cell_of(row, cells))
        ]
        agree, total = len(self.rows) - len(wrong), len(self.rows)
        text = f"{agree} of {total} agree with Table {self.table} of {self.paper}"
        return _finding(wrong, {"agree": agree, "repeated": total}, text)

    def _cell_of(self, row: Repeated, cells: list[PublishedCell]) -> PublishedCell:
        wanted = (row.dataset, row.method, row.epsilon, self.metric)
        for cell in cells:
            if (cell.dataset, cell.method, cell.epsilon, cell.metric) == wanted:
                return cell
        raise DpreproError(
            f"claim {self.name}: {self.paper} prints no {self.metric} of {row.method} on "
            f"{row.dataset} at epsilon {row.epsilon:g} in table {self.table}; correct the entry"
        )
