"""The plan line of a journal: what its config asks for, by the keys of all its tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    WithJsonSchema,
    field_validator,
)

from dprepro.experiment.config import ExperimentConfig, MetricName, Published, Splits
from dprepro.experiment.record import Task

_LENGTH, _DIGITS = 16, b"0123456789abcdef"  # of a key
KEY_SCHEMA = {"type": "string", "pattern": f"^[0-9a-f]{{{_LENGTH}}}$"}


def _hexadecimal(keys: tuple[str, ...]) -> tuple[str, ...]:
    # A plan can have 10^6 keys: they are looked at together.
    if set(map(len, keys)) != {_LENGTH} or "".join(keys).encode().translate(None, _DIGITS):
        raise ValueError("keys are 16 hex digits each, one or more")
    return keys


_Epsilon = Annotated[
    float,
    Field(gt=0),
    BeforeValidator(lambda given: math.inf if given is None else given),
    PlainSerializer(lambda epsilon: None if math.isinf(epsilon) else epsilon),
    WithJsonSchema(
        {"type": ["number", "null"], "exclusiveMinimum": 0, "description": "null: no privacy"}
    ),
]
_Keys = Annotated[
    tuple[str, ...],
    Strict(False),  # lists of JSON
    AfterValidator(_hexadecimal),
    WithJsonSchema({"type": "array", "items": KEY_SCHEMA, "minItems": 1}),
]


class StatedCell(BaseModel):
    """One method at one privacy level: the keys of its tasks, in the order of the splits."""

    model_config = ConfigDict(frozen=True, strict=True)

    label: str
    epsilon: _Epsilon
    keys: _Keys


class StatedPlan(BaseModel):
    """All that a config asks for, whatever part of it a run is told to do.

    Attributes
    ----------
    config, title, metric, splits
        The config's; `config` is its name.
    published
        The printed table that it answers to.
    builtin, builtin_card
        Whether the config, and the card of its dataset, are those that ship with dprepro.
    hypotheses
        Whether the config tries what a document does not state; None in plans that are older than
        this field.
    cells
        In the order of the config's methods, then by epsilon.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    config: str
    title: str
    metric: MetricName
    splits: Splits
    published: Published | None
    builtin: bool
    builtin_card: bool
    hypotheses: bool | None = None
    cells: Annotated[tuple[StatedCell, ...], Strict(False)]

    @field_validator("hypotheses")
    @classmethod
    def _is_said(cls, given: bool | None) -> bool:
        if given is None:
            raise ValueError("true or false, or the field is left out")
        return given

    def to_json(self) -> dict[str, Any]:
        """Return one journal line as a dict that strict JSON can hold."""
        line = {"kind": "plan", **self.model_dump()}
        if self.hypotheses is None:
            del line["hypotheses"]
        if self.published is not None and not self.published.looks:
            del line["published"]["looks"]
        return line

    def agrees_with(self, earlier: StatedPlan | None) -> bool:
        """Whether an earlier plan says the same.

        One of earlier versions does not say whether its config runs hypotheses. Of a built-in
        config that is known.
        """
        if earlier is not None and earlier.hypotheses is None and self.builtin:
            earlier = earlier.model_copy(update={"hypotheses": self.hypotheses})
        return self == earlier

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> StatedPlan:
        """Read what `to_json` wrote.

        Raises ValueError if a field is missing, of another type, or beyond what a plan can say.
        """
        plan = cls.model_validate(line)
        if not plan.cells:
            raise ValueError("cells are none")
        return plan


def state_plan(config: ExperimentConfig, tasks: Iterable[Task]) -> StatedPlan:
    """Return the plan line of a config, given all of its tasks."""
    keys: dict[tuple[str, float], list[tuple[int, str]]] = {}
    for task in tasks:
        keys.setdefault((task.label, task.epsilon), []).append((task.split, task.key))
    labels = [entry.label for method in config.methods for entry in method.expanded]
    order = {label: position for position, label in enumerate(dict.fromkeys(labels))}
    return StatedPlan(
        config=config.name,
        title=config.title,
        metric=config.metric,
        splits=config.splits,
        published=config.published,
        builtin=config.is_builtin,
        builtin_card=not Path(config.card).is_file(),
        hypotheses=config.hypotheses,
        cells=tuple(
            StatedCell(
                label=label,
                epsilon=epsilon,
                keys=tuple(key for _, key in sorted(keys[label, epsilon])),
            )
            for label, epsilon in sorted(keys, key=lambda cell: (order[cell[0]], cell[1]))
        ),
    )
