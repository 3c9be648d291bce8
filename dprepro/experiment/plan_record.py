"""The plan line of a journal: what its config asks for, and which of these tasks are done."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from dprepro.experiment.machine_errors import was_fault
from dprepro.experiment.record import Record, Task

if TYPE_CHECKING:  # it imports the methods, and whoever reads journals imports this
    from dprepro.experiment.plan import PlannedTask

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


@dataclass(frozen=True)
class Pending:
    """What a run has before it.

    Attributes
    ----------
    planned
        The tasks asked for.
    done
        Records that stay as they are, of tasks asked for.
    todo
        Tasks to run.
    skips
        Records to write for tasks that cannot be run.
    stale
        Number of records in the journal that the config no longer asks for.
    others
        Records of the config's plan that are not asked for.
    again
        Number of tasks to run whose records lack a metric that the config asks for.
    """

    planned: tuple[PlannedTask, ...]
    done: tuple[Record, ...]
    todo: tuple[Task, ...]
    skips: tuple[Record, ...]
    stale: int
    others: tuple[Record, ...] = ()
    again: int = 0


def pending_of(
    planned: Sequence[PlannedTask],
    asked: Sequence[PlannedTask],
    known: dict[str, Record],
    retry_failed: bool,
    metrics: Sequence[str],
) -> Pending:
    """Return what is left of a plan where these records, by key, are `known`.

    Parameters
    ----------
    planned, asked
        The whole plan, and the part of it that is asked for.
    retry_failed
        Whether failed tasks are run again. Those that earlier versions recorded as failed because
        a worker was killed are, anyway.
    metrics
        What every record must have, or say why it has not; see `Record.lacks`.
    """
    done: list[Record] = []
    todo: list[Task] = []
    skips: list[Record] = []
    again = 0
    for entry in asked:
        record = known.get(entry.task.key)
        if entry.skip and (record is None or record.status == "skipped"):
            skip = Record(entry.task, "skipped", message=entry.skip)
            (done if record == skip else skips).append(skip)
        elif record is None or record.status == "skipped":
            todo.append(entry.task)  # what was in its way is gone
        elif record.status == "failed" and not entry.skip and (retry_failed or was_fault(record)):
            todo.append(entry.task)
        elif record.lacks(metrics):
            todo.append(entry.task)
            again += 1
        else:
            done.append(record)
    of_plan = {entry.task.key for entry in planned}
    rest = of_plan - {entry.task.key for entry in asked}
    others = tuple(record for key, record in known.items() if key in rest)
    stale = len(known.keys() - of_plan)
    return Pending(tuple(asked), tuple(done), tuple(todo), tuple(skips), stale, others, again)
