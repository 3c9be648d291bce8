"""Building blocks of the YAML files beside the published numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from dprepro.papers.published_cell import PublishedCell
from dprepro.runtime.errors import DpreproError, require_known


class Strict(BaseModel):
    """A model that refuses unknown keys and cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Printed = Callable[[str], Sequence[PublishedCell]]
"""Gives the printed cells of a paper by its name."""


def _one_or_list(*kinds: str) -> WithJsonSchema:
    one = {"type": [*kinds]}
    return WithJsonSchema({"anyOf": [one, {"type": "array", "items": one}]})


Names = Annotated[list[str], BeforeValidator(_as_list), _one_or_list("string")]
# The number inf is a text in YAML.
Numbers = Annotated[list[float], BeforeValidator(_as_list), _one_or_list("number", "string")]


class Selector(Strict):
    """Selects printed cells. A key that is left out matches all. Each value may be a list."""

    tables: Names | None = None
    datasets: Names | None = None
    methods: Names | None = None
    epsilons: Numbers | None = None
    metrics: Names | None = None

    def matches(self, cell: PublishedCell) -> bool:
        """Whether `cell` is among the selected ones."""
        return (
            (self.tables is None or cell.table in self.tables)
            and (self.datasets is None or cell.dataset in self.datasets)
            and (self.methods is None or cell.method in self.methods)
            and (self.epsilons is None or cell.epsilon in self.epsilons)
            and (self.metrics is None or cell.metric in self.metrics)
        )

    @property
    def words(self) -> str:
        """What it selects: ``"parkinson, dp-ebm-gdp, dp-ebm-classic"``; "all cells" if all."""
        values = [getattr(self, field) or [] for field in Selector.model_fields]
        return ", ".join(str(value) for found in values for value in found) or "all cells"

    def require_printed(self, cells: Iterable[PublishedCell], where: str) -> None:
        """Refuse names that are not printed, and combinations that are not.

        Raises DpreproError if a value occurs in none of `cells`, or in none that matches the rest
        of the selector.
        """
        printed = list(cells)
        asked = [
            (field, named) for field in Selector.model_fields if (named := getattr(self, field))
        ]
        selected = [cell for cell in printed if self.matches(cell)]
        if all({*named} <= {_value(cell, field) for cell in selected} for field, named in asked):
            return
        for field, named in asked:
            known = list(dict.fromkeys(_value(cell, field) for cell in printed))
            for value in named:
                require_known(value, known, f"{where}: {field}: no printed cell has", "")
        for field, named in asked:
            together = {_value(cell, field) for cell in selected}
            for value in named:
                if value not in together:
                    raise DpreproError(
                        f"{where}: {field}: {value!r} is not printed together with the rest of "
                        "the entry; correct it, or make two entries"
                    )


def _value(cell: PublishedCell, field: str) -> str | float:
    value: str | float = getattr(cell, field.removesuffix("s"))
    return value
