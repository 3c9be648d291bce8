"""Configs of experiments: YAML files, read into validated, typed values."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
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
from pydantic_core import InitErrorDetails, PydanticCustomError

from dprepro.papers.folders import find_paper, table_names
from dprepro.runtime.errors import DpreproError, nearest, require_known
from dprepro.runtime.files import builtin, is_file, written_as_path
from dprepro.runtime.text import shell
from dprepro.runtime.yaml_files import YamlSource, explain_all, read_yaml, refuse_other_kind

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

    `paper` is the name of a paper that comes with dprepro, the beginning of one, or the folder of
    one's own, relative to the config's; a config that was read has the name that stands in it.

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


_MOST_TASKS = 100_000


class ExperimentConfig(FrozenModel):
    """One experiment: methods on one dataset, over privacy levels and splits.

    Attributes
    ----------
    title
        For people: tables and lists show it.
    dataset
        The name of a built-in card, or the path of a card (relative to the config's folder).
    metric
        What tables show and `dprepro tune` chooses by.
    metrics
        More metrics that records must have: scikit-learn's scorers, by name. Which tasks are run
        does not depend on them, but a task whose record lacks one is run again.
    methods
        Names of methods, or mappings that also set their parameters.
    epsilons
        The privacy levels. Methods without privacy ignore them.
    delta
        The delta of every privacy level.
    domain
        Whether bounds and categories come from the card ("public"), or are read from the training
        rows ("observed"), which epsilon does not cover.
    splits
        How often rows are divided into training and test rows, each with a seed of its own.
    test_share
        Share of the rows that are test rows, where the evaluation is "random" or "stratified".
    published
        The printed table that the results are compared with: `paper` and `table`. With `looks` it
        adds splits to cells of another config, see `dprepro.experiment.config.Published`.
    seed
        With None each estimator's seed comes from the operating system. The splits are then those
        of seed 0, since the choice of the training rows does not protect them.
    evaluation
        How test rows are chosen: "random" splits with `test_share` of the rows, "stratified" ones
        with that share of each label, "folds", or the published "test-set". With a test set, splits
        differ only in the seeds of the methods.
    folds
        Of a partition of the rows, where the evaluation is "folds". After its folds, the splits go
        on with those of another partition. By default there is one, of `splits` folds.
    tuned_on
        The data that `dprepro tune` chose the parameters on; None if they were fixed beforehand.
    hypotheses
        Whether it tries what a document does not state. Its results are for `dprepro forensics`;
        other tables and checks leave them out.
    time_limit
        Longest time of one task, in seconds.
    rows_per_unit
        For a card with a `unit`: how many rows of one unit may train, or a list of such numbers,
        each of which is run. "row" stands for no bound, and guarantees about rows. By default what
        the card says.
    """

    title: Line = ""
    dataset: Text
    metric: MetricName
    metrics: tuple[Text, ...] = ()
    rows_per_unit: RowsPerUnit | None = None  # before `methods`, which get it
    methods: Annotated[tuple[MethodEntry, ...], AfterValidator(not_empty)]
    epsilons: Epsilons
    delta: Delta = DEFAULT_DELTA
    domain: DomainKind = "observed"
    splits: Splits = 25
    test_share: Share = 0.2
    evaluation: Evaluation = "random"
    folds: Annotated[int, Field(ge=2, le=10_000, strict=True)] | None = None
    seed: Seed = 0
    tuned_on: TunedOn | None = None
    published: Published | None = None
    hypotheses: Annotated[bool, Field(strict=True)] = False
    time_limit: TimeLimit = 3600.0

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
    def _is_not_too_large(self) -> ExperimentConfig:
        tasks = sum(
            entry.variants * len(entry.epsilons or self.epsilons) * (entry.splits or self.splits)
            for entry in self.methods
        )
        if tasks > _MOST_TASKS:
            raise ValueError(
                f"methods, grids, epsilons and splits come to {tasks:,} tasks; at most "
                f"{_MOST_TASKS:,} are allowed in one config. Divide it into several"
            )
        return self

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
        takes_share = self.evaluation in ("random", "stratified")
        if not takes_share and "test_share" in self.model_fields_set:
            raise ValueError(f"`test_share` is for random splits, not for {self.evaluation}")
        if self.folds is not None and self.evaluation != "folds":
            raise ValueError(f"`folds` is for `evaluation: folds`, not for {self.evaluation}")
        if self.folds is not None and self.splits < self.folds:
            raise ValueError(
                f"`splits`, {self.splits}, must be at least `folds`, {self.folds}: it counts the "
                "folds of all partitions"
            )
        if self.evaluation == "folds" and self.splits < 2:
            raise ValueError(
                "`evaluation: folds` needs `splits`, the number of folds, to be 2 or more"
            )
        return self

    @model_validator(mode="after")
    def _has_the_splits(self) -> ExperimentConfig:
        for entry in self.methods:
            if entry.splits is not None and entry.splits > self.splits:
                raise ValueError(
                    f"{entry.label!r} has {entry.splits} `splits`, more than the experiment, which "
                    f"has {self.splits}"
                )
        return self

    @model_validator(mode="after")
    def _looks_at_all_splits(self) -> ExperimentConfig:
        looks = self.published.looks if self.published else ()
        if looks and looks[-1] != self.splits:
            raise ValueError(
                f"the last of the `looks` of `published`, {looks[-1]}, must be `splits`, "
                f"{self.splits}: verdicts rest on all of them in the end"
            )
        return self

    @property
    def held_out(self) -> float:
        """The share of the rows that are test rows; 0 with a published test set."""
        shares = {"folds": 1 / (self.folds or self.splits), "test-set": 0.0}
        return float(shares.get(self.evaluation, self.test_share))

    @property
    def name(self) -> str:
        """The stem of the config's file, which also names its journal."""
        return self._source.path.stem

    def renamed(self, name: str) -> ExperimentConfig:
        """Return it under the name of a file beside its own, so that it gets another journal."""
        copy = self.model_copy()
        copy._source = replace(self._source, path=self._source.path.with_name(f"{name}.yaml"))
        return copy

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
        """What to give to `dprepro.data.dataset.load`: a built-in name, or the path of a card."""
        is_path = written_as_path(self.dataset) or self.dataset.endswith((".yaml", ".yml"))
        return str(self._source.path.parent / self.dataset) if is_path else self.dataset

    def where(self, *keys: str | int) -> str:
        """Return the place of a key in the file, for error messages."""
        return self._source.where(*keys)


def load_config(name_or_path: str | Path) -> ExperimentConfig:
    """Return the experiment that a config file describes, without those that it includes.

    Raises DpreproError as `load_experiments`, also if the file only includes others.
    """
    source = _read(name_or_path, Path())
    values, include = _split_include(source)
    if not values or (include and _only_methods(values)):
        raise DpreproError(
            f"{source.path} describes no experiment of its own; it only includes "
            f"{', '.join(include)}; name one of those"
        )
    return _validate(values, source)


def load_experiments(*names_or_paths: str | Path) -> list[ExperimentConfig]:
    """Return all experiments of config files, each once: included ones first, then the file's own.

    A file with `include` and `methods` alone runs these methods in the included experiments in the
    place of theirs.

    Raises DpreproError if a config is missing or not valid, or if configs include each other in a
    circle. The message names the file, line and key, what was given, and what is allowed.

    Parameters
    ----------
    names_or_paths
        Paths, or names of built-in configs. An existing file is preferred to a built-in name.
    """
    found: dict[Path, ExperimentConfig] = {}
    for name_or_path in names_or_paths:
        _collect(name_or_path, Path(), (), found)
    by_name: dict[str, Path] = {}
    for path, config in found.items():
        name = config.name.casefold()  # macOS and Windows tell no capitals apart in names of files
        if name in by_name:
            raise DpreproError(
                f"{path} and {by_name[name]} would share one journal, "
                f"{config.name}.jsonl; rename one of the files"
            )
        by_name[name] = path
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


def runs_hypotheses(name: str) -> bool:
    """Whether a built-in config of this name tries what a document does not state."""
    path = builtin("configs") / f"{name}.yaml"
    # Dozens are asked, and few have the key.
    return (
        path.is_file() and "hypotheses" in path.read_text("utf-8") and load_config(path).hypotheses
    )


def _collect(
    name: str | Path, folder: Path, parents: tuple[Path, ...], found: dict[Path, ExperimentConfig]
) -> None:
    source = _read(name, folder)
    path = source.path.resolve()
    if path in parents:
        circle = " -> ".join(p.name for p in (*parents[parents.index(path) :], path))
        raise DpreproError(f"{source.path}: configs include each other in a circle: {circle}")
    values, include = _split_include(source)
    methods = values.pop("methods") if include and _only_methods(values) else None
    included = found if methods is None else {}
    for other in include:
        _collect(other, source.path.parent, (*parents, path), included)
    if methods is not None:
        for config in included.values():
            replaced = _with_methods(config, methods, source)
            found.setdefault(replaced._source.path.resolve(), replaced)
    elif values:
        found.setdefault(path, _validate(values, source))


def _with_methods(config: ExperimentConfig, methods: Any, source: YamlSource) -> ExperimentConfig:
    """Return an included experiment with the methods of the config that includes it.

    It answers to no printed table, and has the name FILE-CONFIG and so a journal of its own.
    """
    own = {key: v for key, v in config._source.values.items() if key not in _OF_THE_OTHER}
    is_path = config.card != config.dataset
    card = str(Path(config.card).resolve()) if is_path else config.card
    values = {**own, "dataset": card, "methods": methods}
    return _validate(values, source).renamed(f"{source.path.stem}-{config.name}")


def _only_methods(values: Mapping[str, Any]) -> bool:
    """Whether a config has methods, and says nothing of its own of where to run them."""
    return "methods" in values and set(values) <= {"title", "methods"}


_OF_THE_OTHER = ("include", "published", "hypotheses", "tuned_on")
"""Keys of a config that are about its own methods."""


def is_config(path: Path) -> bool:
    """Whether a file is a config, valid or not, and no card. Raises DpreproError, if no YAML."""
    values = read_yaml(path).values
    return isinstance(values, dict) and not {"dataset", "include", "methods"}.isdisjoint(values)


def to_run(name: str) -> str:
    """Return what names the config of a journal for `dprepro run`: a name, or where a file lies."""
    return shell(name if name in config_names() else f"PATH/{name}.yaml")


def _read(name: str | Path, folder: Path) -> YamlSource:
    given = Path(name)
    for candidate in (folder / given, given):
        if is_file(candidate):
            return read_yaml(candidate)
    names = config_names()
    if str(name) in names:
        return read_yaml(builtin("configs") / f"{name}.yaml")
    near = next((c for c in _with_suffix(folder, given) if is_file(c)), None)
    meant = f"; did you mean {str(near)!r}?" if near else nearest(given.stem, names, 3) or "."
    raise DpreproError(
        f"no config {str(name)!r}: neither a file nor a built-in config{meant} `dprepro configs` "
        "lists all"
    )


def _with_suffix(folder: Path, given: Path) -> list[Path]:
    if not given.name:  # "." and "/" have none
        return []
    named = [given.with_name(given.name + suffix) for suffix in (".yaml", ".yml")]
    return [*named, *(folder / place for place in named)]


def _split_include(source: YamlSource) -> tuple[dict[str, Any], list[str]]:
    """Return the experiment's own keys (empty if it only includes others) and the includes."""
    values = source.values
    if not isinstance(values, dict) or not values:
        raise DpreproError(
            f"{source.path}: a config is a mapping with the keys "
            f"{', '.join((*ExperimentConfig.model_fields, 'include'))}"
        )
    refuse_other_kind(values, source.path, "config")
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
        raise DpreproError(explain_all(error, ExperimentConfig, source, ["include"])) from error
    if config.published is not None:
        named = _with_full_name(config.published, source)
        config = config.model_copy(update={"published": named})
    config._source = source
    return config


def _with_full_name(given: Published, source: YamlSource) -> Published:
    """Return it with the name of its paper. Raises DpreproError if that has no such table."""
    try:
        paper = find_paper(given.paper, source.path.parent)
    except DpreproError as error:
        raise DpreproError(f"{source.where('published', 'paper')}: {error}") from error
    where = f"{source.where('published', 'table')}: {paper} has no table"
    require_known(given.table, table_names(paper), where, "")
    return given.model_copy(update={"paper": paper})
