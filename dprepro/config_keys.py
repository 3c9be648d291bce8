"""The parts of a config: its types of values, a method's entry, the published table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

DomainKind = Literal["public", "observed"]
MetricName = Literal[
    "auc", "rmse", "accuracy", "log_loss", "average_precision", "brier_score", "calibration_error",
    "mae", "r2",
]  # fmt: skip
Evaluation = Literal["random", "stratified", "folds", "test-set"]
DEFAULT_DELTA = 1e-6
_MOST_ROWS_PER_UNIT = 10**6


MOST_VARIANTS = 10_000
"""Entries that the grid and the bounds of one method may come to."""

_LONGEST_TEXT = 1000


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


def _is_number(value: Any) -> Any:
    _not_bool(value)
    if isinstance(value, str):  # pydantic would read "1_0" as a number, which YAML does not
        raise ValueError("a number is needed, not a text")
    return value


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it may hold no line breaks and no control characters")
    return text


def not_empty(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values; ValueError if there are none."""
    if not values:
        raise ValueError("at least one entry is needed")
    return values


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError("a value is given twice")
    return values


def _ascending(values: tuple[int, ...]) -> tuple[int, ...]:
    if any(later <= earlier for earlier, later in itertools.pairwise(values)):
        raise ValueError("numbers of splits are needed in ascending order, as [25, 400]")
    return values


Line = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=_LONGEST_TEXT),
    AfterValidator(_printable),
]
Text = Annotated[Line, StringConstraints(min_length=1)]
# Last, so that the JSON Schema of a key keeps the bounds that stand before it.
_IsNumber = BeforeValidator(_is_number)
Epsilon = Annotated[FiniteFloat, Field(gt=0), _IsNumber]
# Keys of mappings are texts in JSON, which is YAML, too.
EpsilonKey = Annotated[FiniteFloat, Field(gt=0), BeforeValidator(_not_bool)]
Epsilons = Annotated[tuple[Epsilon, ...], AfterValidator(not_empty), AfterValidator(_distinct)]
Delta = Annotated[FiniteFloat, Field(ge=0, lt=1), _IsNumber]
Share = Annotated[FiniteFloat, Field(gt=0, lt=1), _IsNumber]
Seed = Annotated[int, Field(ge=0, lt=2**128, strict=True)] | None
Splits = Annotated[int, Field(ge=1, le=10_000, strict=True)]
Looks = Annotated[tuple[Splits, ...], AfterValidator(_ascending)]
"""After how many splits verdicts are looked at."""
LONGEST_TASK = 31_536_000.0
"""A year in seconds: clocks of the operating system cannot wait much longer."""
_NOT_FINITE = PydanticCustomError(
    "not_finite",
    "A record cannot hold a number that is not finite; give a large number in its place, or leave "
    "the parameter out",
)


def _all_finite(value: Any) -> Any:
    """Refuse infinities and NaN, also in lists and mappings, each at its place."""
    found = [
        InitErrorDetails(type=_NOT_FINITE, loc=keys, input=leaf)
        for keys, leaf in _leaves(value)
        if isinstance(leaf, float) and not math.isfinite(leaf)
    ]
    if found:
        raise ValidationError.from_exception_data("parameter", found)
    return value


def _leaves(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield what is no list and no mapping in a value, after the keys that lead there."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            yield from _leaves(part, (*keys, key))
    else:
        yield keys, value


ParameterValue = Annotated[JsonValue, AfterValidator(_all_finite)]
TimeLimit = Annotated[FiniteFloat, Field(gt=0, le=LONGEST_TASK), _IsNumber]


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, int | str) else value


def _row_or_number(value: Any) -> Any:
    if value == "row" or (type(value) is int and 1 <= value <= _MOST_ROWS_PER_UNIT):
        return value
    raise ValueError(f"allowed are `row`, or a whole number from 1 to {_MOST_ROWS_PER_UNIT}")


RowsPerUnit = Annotated[
    tuple[Annotated[Literal["row"] | int, BeforeValidator(_row_or_number)], ...],
    BeforeValidator(_listed),
    AfterValidator(not_empty),
    AfterValidator(_distinct),
]
"""How many rows of one unit may train, several values after one another; "row" for no units."""


class FrozenModel(BaseModel):
    """Checked values that cannot change; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Published(FrozenModel):
    """The published table that an experiment reproduces.

    `looks` says that the experiment adds splits to cells of a config that has as many as were
    printed, and after how many splits verdicts are looked at; tables go on to show the printed
    number.
    """

    paper: Text
    table: Annotated[Text, BeforeValidator(lambda v: str(v) if type(v) is int else v)]
    looks: Looks = ()


class TunedOn(FrozenModel):
    """The data that `dprepro tune` chose the parameters of a config on. `tune` writes this key.

    `dataset`, the name of the card, is only for the reader: a config with this key counts as tuned
    for any dataset that it names. The other keys are those of the config that was tuned.
    """

    dataset: Text
    evaluation: Evaluation = "random"
    seed: Seed = 0
    splits: Splits = 25
    test_share: Share | None = None


class MethodEntry(FrozenModel):
    """A method to run, with settings that replace those of the experiment.

    `label` is the heading of the method's column, by default the method's name. `by_epsilon` has
    parameters for single privacy levels; they replace those of `params`. `grid` maps parameters to
    lists of values. Each combination of values is an entry of its own, with the label
    ``LABEL NAME=VALUE``. So is each of several values of `rows_per_unit`; see `ExperimentConfig`.
    `splits` runs the first so many of the experiment's splits.
    """

    method: Text
    label: Text = ""
    params: dict[str, ParameterValue] = Field(default_factory=dict)
    by_epsilon: dict[EpsilonKey, dict[str, ParameterValue]] = Field(default_factory=dict)
    grid: dict[str, Annotated[list[ParameterValue], AfterValidator(not_empty)]] = Field(
        default_factory=dict
    )
    domain: DomainKind | None = None
    epsilons: Epsilons | None = None
    delta: Delta | None = None
    rows_per_unit: RowsPerUnit | None = None
    splits: Splits | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"method": value}
        if isinstance(value, Mapping) and "label" not in value:
            return {**value, "label": value.get("method", "")}
        return value

    @model_validator(mode="after")
    def _is_not_too_large(self) -> MethodEntry:
        if self.variants > MOST_VARIANTS:
            raise ValueError(
                f"`grid` and `rows_per_unit` of {self.label!r} have {self.variants:,} "
                f"combinations; at most {MOST_VARIANTS:,} are allowed. Try fewer values at a time"
            )
        return self

    @property
    def variants(self) -> int:
        """How many entries `expanded` has."""
        return math.prod(map(len, (*self.grid.values(), self.rows_per_unit or [None])))

    @property
    def expanded(self) -> list[MethodEntry]:
        """The entries of all combinations of `grid` and `rows_per_unit`, with one value of each."""
        combinations = itertools.product(*self.grid.values())
        found = [dict(zip(self.grid, values, strict=True)) for values in combinations]
        bounds = [None] if self.rows_per_unit is None else [(k,) for k in self.rows_per_unit]
        return [
            self.model_copy(
                update={
                    "label": " ".join([self.label, *_named(params), *self._named_bound(bound)]),
                    "params": {**self.params, **params},
                    "grid": {},
                    "rows_per_unit": bound,
                }
            )
            for params in found
            for bound in bounds
        ]

    def _named_bound(self, bound: tuple[Any, ...] | None) -> list[str]:
        if bound is None or len(self.rows_per_unit or ()) < 2:
            return []
        return ["unit=row"] if bound == ("row",) else [f"rows_per_unit={bound[0]}"]


def _named(params: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in params.items()]
