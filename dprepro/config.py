"""Configs of experiments: YAML files, read into validated, typed values."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    JsonValue,
    PrivateAttr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dprepro.errors import DpreproError, nearest
from dprepro.resources import builtin
from dprepro.yaml_model import explain
from dprepro.yaml_source import YamlSource, read_yaml

DomainKind = Literal["public", "observed"]
MetricName = Literal["auc", "rmse", "accuracy"]
Evaluation = Literal["random", "folds", "test-set"]
DEFAULT_DELTA = 1e-6


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


def _not_empty(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("at least one entry is needed")
    return values


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError("a value is given twice")
    return values


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Number = Annotated[FiniteFloat, BeforeValidator(_not_bool)]
Epsilon = Annotated[Number, Field(gt=0)]
Epsilons = Annotated[tuple[Epsilon, ...], AfterValidator(_not_empty), AfterValidator(_distinct)]
Delta = Annotated[Number, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, strict=True)] | None


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, int | str) else value


RowsPerUnit = Annotated[
    tuple[Literal["row"] | Annotated[int, Field(ge=1, le=1_000_000, strict=True)], ...],
    BeforeValidator(_listed),
    AfterValidator(_not_empty),
    AfterValidator(_distinct),
]
"""How many rows of one unit may train, several values after one another; "row" for no units."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Published(_Model):
    """The published table that an experiment reproduces."""

    paper: Text
    table: Annotated[Text, BeforeValidator(lambda v: str(v) if type(v) is int else v)]


class TunedOn(_Model):
    """The data that `dprepro tune` chose the parameters of a config on. `tune` writes this key.

    `dataset`, the name of the card, is only for the reader: a config with this key counts as tuned
    for any dataset that it names. The other keys are those of the config that was tuned.
    """

    dataset: Text
    evaluation: Evaluation = "random"
    seed: Seed = 0
    splits: Annotated[int, Field(ge=1, strict=True)] = 25
    test_share: Annotated[Number, Field(gt=0, lt=1)] | None = None


class MethodEntry(_Model):
    """A method to run, with settings that replace those of the experiment.

    `label` is the heading of the method's column, by default the method's name. `by_epsilon` has
    parameters for single privacy levels; they replace those of `params`. `grid` maps parameters to
    lists of values. Each combination of values is an entry of its own, with the label
    ``LABEL NAME=VALUE``. So is each of several values of `rows_per_unit`; see `ExperimentConfig`.
    """

    method: Text
    label: Text = ""
    params: dict[str, JsonValue] = Field(default_factory=dict)
    by_epsilon: dict[Epsilon, dict[str, JsonValue]] = Field(default_factory=dict)
    grid: dict[str, Annotated[list[JsonValue], AfterValidator(_not_empty)]] = Field(
        default_factory=dict
    )
    domain: DomainKind | None = None
    epsilons: Epsilons | None = None
    delta: Delta | None = None
    rows_per_unit: RowsPerUnit | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"method": value}
        if isinstance(value, Mapping) and "label" not in value:
            return {**value, "label": value.get("method", "")}
        return value

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


class ExperimentConfig(_Model):
    """One experiment: methods on one dataset, over privacy levels and splits.

    Attributes
    ----------
    dataset
        The name of a built-in card, or the path of a card (relative to the config's folder).
    seed
        With None each estimator's seed comes from the operating system. The splits are then those
        of seed 0, since the choice of the training rows does not protect them.
    evaluation
        How test rows are chosen: "random" splits with `test_share` of the rows, "folds" (`splits`
        of them), or the published "test-set". With a test set, splits differ only in the seeds of
        the methods.
    tuned_on
        The data that `dprepro tune` chose the parameters on; None if they were fixed beforehand.
    time_limit
        Longest time of one task, in seconds.
    rows_per_unit
        For a card with a `unit`: how many rows of one unit may train, or a list of such numbers,
        each of which is run. "row" stands for no bound, and guarantees about rows. By default what
        the card says.
    """

    title: str = ""
    dataset: Text
    metric: MetricName
    rows_per_unit: RowsPerUnit | None = None  # before `methods`, which get it
    methods: Annotated[tuple[MethodEntry, ...], AfterValidator(_not_empty)]
    epsilons: Epsilons
    delta: Delta = DEFAULT_DELTA
    domain: DomainKind = "observed"
    splits: Annotated[int, Field(ge=1, strict=True)] = 25
    test_share: Annotated[Number, Field(gt=0, lt=1)] = 0.2
    evaluation: Evaluation = "random"
    seed: Seed = 0
    tuned_on: TunedOn | None = None
    published: Published | None = None
    time_limit: Annotated[Number, Field(gt=0)] = 3600.0

    _source: YamlSource = PrivateAttr(default=YamlSource(Path("config.yaml"), "", {}))

    @field_validator("methods", mode="after")
    @classmethod
    def _pass_bounds_down(
        cls, methods: tuple[MethodEntry, ...], info: ValidationInfo
    ) -> tuple[MethodEntry, ...]:
        given = info.data.get("rows_per_unit")
        return tuple(
            entry.model_copy(update={"rows_per_unit": given})
            if entry.rows_per_unit is None
            else entry
            for entry in methods
        )

    @model_validator(mode="after")
    def _labels_differ(self) -> ExperimentConfig:
        labels = Counter(entry.label for m in self.methods for entry in m.expanded)
        repeated = [label for label, n in labels.items() if n > 1]
        if repeated:
            raise ValueError(
                f"two methods are labelled {repeated[0]!r}; give one of them another `label`"
            )
        return self

    @model_validator(mode="after")
    def _evaluation_fits(self) -> ExperimentConfig:
        if self.evaluation != "random" and "test_share" in self.model_fields_set:
            raise ValueError(f"`test_share` is for random splits, not for {self.evaluation}")
        if self.evaluation == "folds" and self.splits < 2:
            raise ValueError(
                "`evaluation: folds` needs `splits`, the number of folds, to be 2 or more"
            )
        return self

    @property
    def held_out(self) -> float:
        """The share of the rows that are test rows; 0 with a published test set."""
        shares = {"random": self.test_share, "folds": 1 / self.splits, "test-set": 0.0}
        return float(shares[self.evaluation])

    @property
    def name(self) -> str:
        """The stem of the config's file, which also names its journal."""
        return self._source.path.stem

    @property
    def is_builtin(self) -> bool:
        """Whether it is one of the configs that ship with dprepro."""
        return self._source.path.resolve().parent == builtin("configs").resolve()

    @property
    def text(self) -> str:
        """The text of the config's file."""
        return self._source.text

    @property
    def card(self) -> str:
        """What to give to `dprepro.data.load`: a built-in name, or the path of a card."""
        looks_like_path = "/" in self.dataset or self.dataset.endswith((".yaml", ".yml"))
        return str(self._source.path.parent / self.dataset) if looks_like_path else self.dataset

    def where(self, *keys: str | int) -> str:
        """Return the place of a key in the file, for error messages."""
        return self._source.where(*keys)


def load_config(name_or_path: str | Path) -> ExperimentConfig:
    """Return the experiment that a config file describes, without those that it includes.

    Raises
    ------
    DpreproError
        See `load_experiments`; also if the file only includes others.
    """
    source = _read(name_or_path, Path())
    values, include = _split_include(source)
    if not values:
        raise DpreproError(
            f"{source.path} describes no experiment of its own; it only includes "
            f"{', '.join(include)}; name one of those"
        )
    return _validate(values, source)


def load_experiments(*names_or_paths: str | Path) -> list[ExperimentConfig]:
    """Return all experiments of config files, each once: included ones first, then the file's own.

    Parameters
    ----------
    names_or_paths
        Paths, or names of built-in configs. An existing file is preferred to a built-in name.

    Raises
    ------
    DpreproError
        If a config is missing or not valid, or if configs include each other in a circle. The
        message names the file, line and key, what was given, and what is allowed.
    """
    found: dict[Path, ExperimentConfig] = {}
    for name_or_path in names_or_paths:
        _collect(name_or_path, Path(), (), found)
    by_name: dict[str, Path] = {}
    for path, config in found.items():
        if config.name in by_name:
            raise DpreproError(
                f"{path} and {by_name[config.name]} would share one journal, "
                f"{config.name}.jsonl; rename one of the files"
            )
        by_name[config.name] = path
    return list(found.values())


def config_names() -> list[str]:
    """Return the names of the built-in configs, sorted."""
    return sorted(path.stem for path in builtin("configs").glob("*.yaml"))


def config_titles() -> dict[str, str]:
    """Return the titles of the built-in configs by name, sorted; else what they run on."""
    found = {}
    for name in config_names():
        values = read_yaml(builtin("configs") / f"{name}.yaml").values
        found[name] = str(values.get("title") or values.get("dataset") or "")
    return found


def _collect(
    name: str | Path, folder: Path, parents: tuple[Path, ...], found: dict[Path, ExperimentConfig]
) -> None:
    source = _read(name, folder)
    path = source.path.resolve()
    if path in parents:
        circle = " -> ".join(p.name for p in (*parents[parents.index(path) :], path))
        raise DpreproError(f"{source.path}: configs include each other in a circle: {circle}")
    values, include = _split_include(source)
    for other in include:
        _collect(other, source.path.parent, (*parents, path), found)
    if values:
        found.setdefault(path, _validate(values, source))


def _read(name: str | Path, folder: Path) -> YamlSource:
    given = Path(name)
    for candidate in (folder / given, given):
        if candidate.is_file():
            return read_yaml(candidate)
    names = config_names()
    if str(name) in names:
        return read_yaml(builtin("configs") / f"{name}.yaml")
    raise DpreproError(
        f"no config {str(name)!r}: neither a file nor a built-in config"
        f"{nearest(given.stem, names) or '.'} Built-in: {', '.join(names)}"
    )


def _split_include(source: YamlSource) -> tuple[dict[str, Any], list[str]]:
    """Return the experiment's own keys (empty if it only includes others) and the includes."""
    values = source.values
    if not isinstance(values, dict) or not values:
        raise DpreproError(
            f"{source.path}: a config is a mapping with the keys "
            f"{', '.join((*ExperimentConfig.model_fields, 'include'))}"
        )
    own = {str(key): value for key, value in values.items()}
    include = own.pop("include", [])
    if not isinstance(include, list) or not all(isinstance(name, str) for name in include):
        raise DpreproError(
            f"{source.where('include')}: a list of config names or paths is needed, "
            f"given {include!r}"
        )
    if include and set(own) <= {"title"}:
        own = {}
    return own, include


def _validate(values: dict[str, Any], source: YamlSource) -> ExperimentConfig:
    try:
        config = ExperimentConfig.model_validate(values)
    except ValidationError as error:
        problems = [
            explain(detail, ExperimentConfig, source, ["include"]) for detail in error.errors()
        ]
        raise DpreproError("\n".join(problems)) from error
    config._source = source
    return config
