"""The card of a dataset: where it comes from, how it is cleaned, and what is public about it."""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, StringConstraints, model_validator

from dprepro.data import fingerprint as identity
from dprepro.data.card_parts import (
    KIND_OF_SUFFIX,
    MISSING_TEXTS,
    BudgetLimit,
    Deployment,
    Distinct,
    Expect,
    FeatureDomain,
    Format,
    Number,
    RowsPerUnit,
    Source,
    Strict,
    TestSet,
    check_stand_in,
    check_subgroups,
    check_test,
    check_unit,
    expand_names,
    one_line,
    with_lists,
)
from dprepro.data.domain import TOO_FAR, TaskKind
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.files import builtin, is_file
from dprepro.runtime.text import MOST_NAMED, in_short
from dprepro.runtime.yaml_files import read_model

_NAMED = ("target", "drop", "unit", "fill")
"""The keys whose values are names of columns."""

UnitTitle = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=40, pattern=r"^[^\r\n]*$"),
]
CardName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class Card(Strict):
    """A dataset's card, as in ``datasets/*.yaml``.

    The shortest one has ``name``, ``task``, ``file``, ``target`` and, for a binary task,
    ``positive``. ``missing`` lists the texts that stand for a missing value (a text that is also a
    category remains a category); ``fill`` gives columns a value for missing ones. ``distinct``
    drops rows that repeat an earlier one, see `Distinct`, and ``complete: true`` those that lack a
    value of some feature. The rows count as private without a
    checksum of all that is loaded, or with ``private: true``.

    With ``features`` the card has a public domain: one entry for each column of X, in X's order
    (``pixel{1..784}`` stands for 784 columns). A public domain needs ``target_bounds`` for
    regression, and ``labels`` for more than two classes. If two classes are not named by
    ``labels``, the negative one is called "not" and the name of the positive one. ``relabel`` maps
    texts of the target to ``labels``, where several texts are one class. ``target_transform: log``
    predicts the natural logarithm of a positive target; its bounds are those of the target itself.
    ``category_lists`` names lists of categories, so that many features can share one:
    ``{categories: yes-no}``.

    ``budget_limit`` limits what `dprepro release` may release of the dataset in all.

    ``subgroups`` lists features by whose values `--measure` of `dprepro release` looks for groups
    that the model serves worse. Of a numeric one it may give cuts, ``{age: [30, 60], sex: }``; else
    it has four intervals of equal width.

    ``deployment`` says who releases models of the data, for what and where: statements have it,
    and `dprepro release` writes a record for the registry of deployments from it.

    ``cite`` names entries of `dprepro.cli.cite`, for `dprepro cite`. Other cards need none.

    ``test`` says where the published test rows are; experiments with ``evaluation: test-set`` use
    them. A card with ``test`` and more than two classes needs ``labels`` of its own.

    ``unit`` names the column that says which rows belong to one unit of privacy, such as a patient.
    It is no feature. Of each unit at most ``rows_per_unit`` rows train, and guarantees are about
    units; see `dprepro.data.dataset`. ``unit_title`` is what people call one of them ("patient"),
    for statements; without ``unit`` it says whose each row is, one row each.
    """

    name: CardName
    title: str = ""
    task: TaskKind
    target: str
    positive: str | None = None
    private: bool = False
    labels: list[str] | None = None
    relabel: dict[str, str] = Field(default_factory=dict)
    target_bounds: tuple[Number, Number] | None = None
    target_transform: Literal["log"] | None = None
    category_lists: dict[str, list[str]] = Field(default_factory=dict)
    file: str | None = None
    sources: list[Source] = Field(default_factory=list)
    format: Format = Format()
    drop: list[str] = Field(default_factory=list)
    distinct: Distinct | None = None
    complete: bool = False
    missing: list[str] = Field(default_factory=lambda: list(MISSING_TEXTS))
    fill: dict[str, str] = Field(default_factory=dict)
    expect: Expect = Expect()
    test: TestSet | None = None
    features: dict[str, FeatureDomain] | None = None
    budget_limit: BudgetLimit | None = None
    subgroups: dict[str, list[Number] | None] = Field(default_factory=dict)
    deployment: Deployment | None = None
    unit: str | None = None
    rows_per_unit: RowsPerUnit | None = None
    unit_title: UnitTitle | None = None
    domain_note: str = ""
    cleaning_note: str = ""
    licence: str = ""
    citation: str = ""
    cite: list[str] = Field(default_factory=list)
    url: str = ""

    # The folder that relative paths start from; None for built-in cards (the data folder).
    _folder: Path | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, fields: Any) -> Any:
        if isinstance(fields, dict):
            fields = {k: _in_one_line(v) if k in _NAMED else v for k, v in fields.items()}
        if isinstance(fields, dict) and fields.get("file") and not fields.get("sources"):
            fields = {**fields, "sources": [{"file": fields["file"]}]}
        if isinstance(fields, dict) and isinstance(named := fields.get("subgroups"), list):
            fields = {**fields, "subgroups": {str(name): None for name in named}}
        elif isinstance(fields, dict) and isinstance(named, dict):
            fields = {**fields, "subgroups": {name: cuts or None for name, cuts in named.items()}}
        if isinstance(fields, dict) and fields.get("features"):
            features = with_lists(fields["features"], fields.get("category_lists"))
            fields = {**fields, "features": expand_names(features)}
        return fields

    @model_validator(mode="after")
    def _check(self) -> Card:
        if not self.sources:
            raise ValueError("give `file: path.csv` or a list of `sources`")
        if self.file and [source.file for source in self.sources] != [self.file]:
            raise ValueError("give either `file` or `sources`, not both")
        check_stand_in(self.sources, self.task, self.labels)
        self._check_target()
        self._check_columns()
        self._check_unit()
        check_subgroups(self.subgroups, self.features or {})
        if self.distinct is not None and not self.is_public:
            raise ValueError(
                "`distinct` is for public rows: of private ones, one row would decide whether "
                "another counts. Drop repeated rows from the file, or give its `sha256`"
            )
        if self.distinct is not None and self.unit is not None:
            raise ValueError(
                "`distinct` and `unit` exclude each other: a row of one unit would decide whether "
                "that of another counts. Drop repeated rows of each unit from the file"
            )
        check_test(self.test, self.task, self.labels)
        return self

    def _check_target(self) -> None:
        if self.task == "binary" and self.positive is None:
            raise ValueError("a binary task needs `positive`, the label to predict")
        if self.task != "binary" and self.positive is not None:
            raise ValueError(f"`positive` is for binary tasks; the task is {self.task}")
        if self.task == "regression" and self.labels is not None:
            raise ValueError("`labels` is for classification; the task is regression")
        if self.task != "regression" and self.target_bounds is not None:
            raise ValueError(f"`target_bounds` is for regression; the task is {self.task}")
        if self.target_bounds is not None:
            lower, upper = self.target_bounds
            if not (lower < upper and math.isfinite(upper - lower)):
                raise ValueError(
                    "`target_bounds` must be finite with lower < upper, and not "
                    f"{TOO_FAR}; given [{lower}, {upper}]"
                )
        if self.target_transform is not None:
            if self.task != "regression":
                raise ValueError(f"`target_transform` is for regression; the task is {self.task}")
            if self.target_bounds is not None and self.target_bounds[0] <= 0:
                raise ValueError(
                    "`target_transform: log` needs positive `target_bounds`, given "
                    f"{list(self.target_bounds)}"
                )
        if self.task == "binary" and self.labels is not None:
            if not len(set(self.labels)) == len(self.labels) == 2:
                raise ValueError(f"a binary task has two labels, given {self.labels}")
            if self.positive not in self.labels:
                raise ValueError(f"`positive` {self.positive!r} is not one of {self.labels}")
        for label in self.relabel.values():
            if label not in (self.labels or []):
                raise ValueError(
                    f"`relabel` maps to {label!r}, which is not one of `labels`, "
                    f"{self.labels or 'not given'}"
                )
        if self.relabel and self.test is not None and self.test.labels is not None:
            raise ValueError("`relabel` maps to `labels`, but `test` has `labels` of its own")
        if self.labels is not None and not 2 <= len(set(self.labels)) == len(self.labels):
            raise ValueError(f"`labels` must be two or more different labels, given {self.labels}")
        if self.features is not None and self.task == "multiclass" and self.labels is None:
            raise ValueError(
                "a public domain needs `labels`, the list of all labels of the target: labels "
                "that are read from the rows are not public. Add `labels: [...]`, or "
                "leave `features` out"
            )
        if self.features is not None and self.task == "regression" and self.target_bounds is None:
            raise ValueError("a public domain needs `target_bounds: [lower, upper]` of the target")

    def _check_columns(self) -> None:
        features = self.features or {}
        for role, names in (("drop", self.drop), ("target", [self.target])):
            for name in set(names) & set(features):
                raise ValueError(f"{name!r} is under both `features` and `{role}`")
        for name in set(self.fill) - set(features) if self.features is not None else ():
            raise ValueError(
                f"`fill` names {name!r}, which is not a feature{nearest(name, list(features))}"
            )

    def _check_unit(self) -> None:
        roles: dict[str, Any] = {"target": [self.target], "features": self.features or {}}
        roles |= {"drop": self.drop, "fill": self.fill}
        check_unit(self.unit, self.rows_per_unit, roles, self.sources)

    @property
    def public_target(self) -> tuple[float, float] | tuple[str, ...] | None:
        """What is public about the target: its bounds, or its labels in the order of their codes.

        Of two labels the positive one comes last. None if the card does not say.
        """
        if self.task == "regression":
            if self.target_transform is None or self.target_bounds is None:
                return self.target_bounds
            lower, upper = self.target_bounds
            return math.log(lower), math.log(upper)
        if self.labels is not None:
            return tuple(sorted(self.labels, key=lambda label: label == self.positive))
        return None if self.positive is None else (f"not {self.positive}", self.positive)

    @property
    def target_title(self) -> str:
        """What a model predicts: the target, or its logarithm."""
        return self.target if self.target_transform is None else f"log({self.target})"

    @property
    def measured_in(self) -> dict[str, str]:
        """The unit of measure of each feature that the card gives one for."""
        features = self.features or {}
        return {name: f.measured_in for name, f in features.items() if f.measured_in is not None}

    @property
    def folder(self) -> Path | None:
        """The folder of the card, for relative paths; None for a built-in card."""
        return self._folder

    @property
    def test_card(self) -> Card | None:
        """The card of the published test rows, with the same name; None if there are none."""
        if self.test is None:
            return None
        labels, positive = self.labels, self.positive
        if self.test.labels is not None:
            spelt = dict(zip(self.labels or [], self.test.labels, strict=True))
            labels, positive = self.test.labels, spelt.get(str(self.positive))
        card = self.model_copy(
            update={
                "sources": self.test.sources, "format": self.test.format or self.format,
                "expect": self.test.expect, "labels": labels, "positive": positive,
                "file": None, "test": None,
            }
        )  # fmt: skip
        card._folder = self._folder
        return card

    def format_of(self, source: Source) -> Format:
        """Return the format of `source`. If the card does not name its kind, the suffix decides.

        Raises DpreproError if neither the card nor the suffix determines the kind.
        """
        settings = source.format or self.format
        suffix = Path(source.filename.lower().removesuffix(".gz")).suffix
        kind = "arff" if source.openml else settings.kind or KIND_OF_SUFFIX.get(suffix)
        if kind is None:
            raise DpreproError(
                f"card {self.name!r}: cannot tell the format of {source.filename!r} by its suffix; "
                "add `format: {kind: csv}` (or arff, parquet, svmlight, idx, npz)"
            )
        return settings.model_copy(update={"kind": kind})

    @property
    def is_public(self) -> bool:
        """Whether the rows are public: the card identifies them, and does not call them private.

        Rows are identified by a checksum of the values or of every file, or by a source that has
        the same rows on every machine: scikit-learn, or a stand-in drawn from the card.
        """
        if self.private:
            return False
        known = [
            part.sha256 is not None or part.kind in identity.SAME_EVERYWHERE
            for _, part in self.parts
        ]
        return self.expect.values_sha256 is not None or all(known)

    def is_private(self, data_dir: Path | None = None, with_test: bool = False) -> bool:
        """Whether the rows that would be loaded are private; those of a stand-in never are."""
        if with_test and self.test_card is not None and self.test_card.is_private(data_dir):
            return True
        return not (self.is_public or identity.is_stood_in_for(self, data_dir))

    def is_known(self, data_dir: Path | None = None, with_test: bool = False) -> bool:
        """Whether `fingerprint` distinguishes the rows that would be loaded from any others.

        It does not if the rows are private and a file without a checksum is not on this machine,
        for example because it is not downloaded yet. After `dprepro.load` its bytes count.
        """
        if with_test and self.test_card is not None and not self.test_card.is_known(data_dir):
            return False
        return not self.is_private(data_dir) or identity.has_all_files(self, data_dir)

    def fingerprint(
        self, data_dir: Path | None = None, with_test: bool = False, identify: bool = True
    ) -> str:
        """Return a name for all that determines the loaded values and the domain.

        `with_test` adds ``+`` and the name of the published test rows. Titles, notes and the order
        of sources have no influence.

        For public rows it is 16 hex digits of a digest, after `SYNTHETIC_PREFIX` if a stand-in
        would be loaded. For private rows it is `PRIVATE_PREFIX`, 16 hex digits of a digest of the
        card, ``-``, and a token. The token is random, but equal for equal files on this machine,
        local or downloaded (see `dprepro.data.register`). It is ``none`` if there is no file, or if
        `identify` is false: then no file is read, and the name does not distinguish states of the
        rows (see `is_known`).

        Raises DpreproError if the register that private rows need cannot be used.
        """
        if with_test and self.test_card is not None:
            cards = (self, self.test_card)
            return "+".join(card.fingerprint(data_dir, identify=identify) for card in cards)
        return identity.name_of(self, data_dir, identify)

    def seal(self, nonce: str, data_dir: Path | None = None, with_test: bool = False) -> str:
        """Return an HMAC-SHA256, in hex, of all that determines the loaded values and the domain.

        Two machines compare it to see whether they have the same data. `nonce`, its key in hex, is
        drawn for one comparison and never stored, so that nobody else can check guesses by it.
        """
        from dprepro.data.register import keyed_digest

        states = [identity.state_of(self, data_dir)]
        if with_test and self.test_card is not None:
            states.append(identity.state_of(self.test_card, data_dir))
        return keyed_digest(bytes.fromhex(nonce), json.dumps(states, sort_keys=True))

    @property
    def parts(self) -> list[tuple[Source, Source]]:
        """Every single file, after the source that it is a part of."""
        return [(source, part) for source in self.sources for part in source.files]


def _in_one_line(names: Any) -> Any:
    """Return names of columns as they are compared; see `one_line`."""
    if isinstance(names, str):
        return one_line(names)
    if isinstance(names, list):
        return [_in_one_line(name) for name in names]
    if isinstance(names, dict):
        return {_in_one_line(name): value for name, value in names.items()}
    return names


def card_names() -> list[str]:
    """Return the names of the built-in cards, sorted."""
    return sorted(path.stem for path in builtin("datasets").glob("*.yaml"))


@cache
def builtin_card(name: str) -> Card:
    """Return a built-in card, read once; also where a file of this name would win."""
    return read_model(builtin("datasets") / f"{name}.yaml", Card)


@lru_cache
def _card_at(path: Path, folder: Path, state: tuple[int, ...]) -> Card:
    """Return the card in a file; one command reads it once, as long as the file's state is one."""
    card = read_model(path, Card, "card")
    card._folder = folder
    return card


def load_card(name_or_path: str | Path) -> Card:
    """Return the card with this built-in name, or in the YAML file at this path; a path wins.

    Raises DpreproError if there is no such card, or it is not valid; the message names file and
    key.
    """
    path = Path(name_or_path)
    if is_file(path):
        found = path.stat()
        state = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
        return _card_at(path, path.resolve().parent, state)
    names = card_names()
    if str(name_or_path) in names:
        return read_model(builtin("datasets") / f"{name_or_path}.yaml", Card)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        raise DpreproError(
            f"no dataset card at {path}. Give an existing path, or one of: "
            f"{in_short(names, MOST_NAMED)}"
        )
    raise DpreproError(
        f"unknown dataset {str(name_or_path)!r}{nearest(str(name_or_path), names) or '.'} "
        f"Allowed: {in_short(names, MOST_NAMED)} (`dprepro data` lists them), or the path of a "
        "card of your own (a .yaml file)"
    )
