"""Configs of experiments: YAML files, read into validated, typed values."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dprepro.config_keys import (
    DEFAULT_DELTA,
    Delta,
    DomainKind,
    Epsilons,
    Evaluation,
    FrozenModel,
    Line,
    MethodEntry,
    MetricName,
    Published,
    RowsPerUnit,
    Seed,
    Share,
    Splits,
    Text,
    TimeLimit,
    TunedOn,
    not_empty,
)
from dprepro.errors import DpreproError, nearest
from dprepro.files import is_file
from dprepro.resources import builtin
from dprepro.text import shell
from dprepro.yaml_model import explain_all, refuse_other_kind
from dprepro.yaml_source import YamlSource, read_yaml

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
        adds splits to cells of another config, see `dprepro.config_keys.Published`.
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
    for other in include:
        _collect(other, source.path.parent, (*parents, path), found)
    if values:
        found.setdefault(path, _validate(values, source))


def to_run(name: str) -> str:
    """Return what `dprepro run` takes for the config of a journal: a name, or where a file lies."""
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
    config._source = source
    return config
