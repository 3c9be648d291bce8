"""Claims that no result decides: what is computed, how methods are set, what is printed twice."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from dprepro.published.claim import FactClaim, half_unit
from dprepro.published.schema import Strict

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


class Figure(Strict):
    """A number as printed, and the quantity that it should be.

    `quantity` is a key of `dprepro.report.judge.quantities.QUANTITIES`, and `of` has its arguments.
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


class Repeated(Strict):
    """A number printed a second time, and the cell that it repeats."""

    dataset: str
    method: str
    epsilon: float = math.inf
    value: Decimal
    std: Decimal | None = None


class Repeats(FactClaim):
    """Numbers that are printed in another table as well, up to the rounding of the shorter one."""

    paper: str
    table: str
    metric: str
    rows: list[Repeated] = Field(min_length=1)

    def stated(self) -> dict[str, str]:
        """Return how many numbers are repeated."""
        return {"repeated": str(len(self.rows))}
