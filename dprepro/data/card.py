"""A dataset's card: where it comes from, how it is cleaned, and what of it is public."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlparse

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    PrivateAttr,
    StringConstraints,
    model_validator,
)

from dprepro.data.domain import CategoricalFeature, NumericFeature, TaskKind
from dprepro.errors import DpreproError, nearest
from dprepro.resources import builtin
from dprepro.yaml_model import read_model

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
CardName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://")]
Separator = Annotated[str, StringConstraints(min_length=1, max_length=1)]
SourceKind = Literal["file", "http", "openml", "sklearn"]
FormatKind = Literal["csv", "arff", "parquet"]

_SUFFIXES: dict[str, FormatKind] = {
    ".csv": "csv",
    ".data": "csv",
    ".test": "csv",
    ".txt": "csv",
    ".arff": "arff",
    ".parquet": "parquet",
    ".pq": "parquet",
}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Format(_Strict):
    """How bytes become a table.

    ``kind`` is told by the file's suffix unless given. The other keys are for csv: a file without
    a header line has ``header: false`` and names its ``columns``; lines that begin with
    ``comment`` are skipped. Blanks around a field never count.
    """

    kind: FormatKind | None = None
    separator: Separator = ","
    header: bool = True
    columns: list[str] | None = None
    comment: str | None = None
    encoding: str = "utf8"

    @model_validator(mode="after")
    def _check(self) -> Format:
        if not self.header and not self.columns:
            raise ValueError("without a header line, `columns` must name the columns in order")
        if self.header and self.columns:
            raise ValueError("`columns` is only for files without a header: add `header: false`")
        return self


class Source(_Strict):
    """One place to get the data from: exactly one of file, http, openml and sklearn.

    ``sha256`` is that of the file; with ``member``, of that member of the zip file. ``format``
    takes the place of the card's; ``rename`` maps this source's column names to the card's.
    """

    file: str | None = None
    http: Url | None = None
    openml: PositiveInt | None = None
    sklearn: Literal["breast_cancer", "diabetes", "digits", "iris", "wine"] | None = None
    member: str | None = None
    sha256: Sha256 | None = None
    format: Format | None = None
    rename: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Source:
        kinds: tuple[SourceKind, ...] = ("file", "http", "openml", "sklearn")
        given = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(given) != 1:
            found = ", ".join(given) or "none of them"
            raise ValueError(f"a source is exactly one of {', '.join(kinds)}; found {found}")
        if self.member and self.kind not in ("file", "http"):
            raise ValueError(f"`member` is for zip files, not for {self.kind}")
        if self.sha256 and self.kind == "sklearn":
            raise ValueError("scikit-learn has no file to check: use `expect: values_sha256`")
        return self

    @property
    def kind(self) -> SourceKind:
        """Which of the four kinds it is."""
        if self.file is not None:
            return "file"
        if self.http is not None:
            return "http"
        return "openml" if self.openml is not None else "sklearn"

    @property
    def label(self) -> str:
        """The source in a few words, e.g. ``openml 42178``."""
        member = f" ({self.member})" if self.member else ""
        return f"{self.kind} {self.file or self.http or self.openml or self.sklearn}{member}"

    @property
    def filename(self) -> str:
        """The name of the file that holds the data, without folders."""
        place = self.member or self.file or urlparse(self.http or "").path
        return f"{self.openml}.arff" if self.openml else Path(place).name


class FeatureDomain(_Strict):
    """What is public of one feature: ``numeric: [lower, upper]`` or ``categories: [...]``.

    ``missing: true`` says that values may be missing.
    """

    numeric: tuple[float, float] | None = None
    categories: list[str] | None = None
    missing: bool = False

    @model_validator(mode="after")
    def _check(self) -> FeatureDomain:
        if (self.numeric is None) == (self.categories is None):
            raise ValueError("give either `numeric: [lower, upper]` or `categories: [...]`")
        self.named("the feature")  # bounds in order, categories distinct
        return self

    def named(self, name: str) -> NumericFeature | CategoricalFeature:
        """Return it as the domain's feature called `name`."""
        if self.numeric is not None:
            return NumericFeature(name, *self.numeric, missing=self.missing)
        return CategoricalFeature(name, tuple(self.categories or ()), self.missing)


class Expect(_Strict):
    """What every load must find: ``columns`` counts features; see `values_digest` for the last."""

    rows: PositiveInt | None = None
    columns: PositiveInt | None = None
    positives: PositiveInt | None = None
    values_sha256: Sha256 | None = None


class Card(_Strict):
    """A dataset's card, as in ``datasets/*.yaml``.

    The shortest one has ``name``, ``task``, ``file``, ``target`` and, for a binary task,
    ``positive``. ``missing`` lists the texts that stand for a missing value (a text that is
    also a category stays one); ``fill`` gives columns a value for missing ones. With
    ``features`` (one entry a column of X, in X's order) the card has a public domain.
    """

    name: CardName
    title: str = ""
    task: TaskKind
    target: str
    positive: str | None = None
    labels: list[str] | None = None
    target_bounds: tuple[float, float] | None = None
    file: str | None = None
    sources: list[Source] = Field(default_factory=list)
    format: Format = Format()
    drop: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=lambda: ["", "?", "NA", "NaN", "nan", "null"])
    fill: dict[str, str] = Field(default_factory=dict)
    expect: Expect = Expect()
    features: dict[str, FeatureDomain] | None = None
    domain_note: str = ""
    cleaning_note: str = ""
    licence: str = ""
    citation: str = ""
    url: str = ""

    # The folder that relative paths start from; None for built-in cards (the data folder).
    _folder: Path | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _expand_file(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and fields.get("file") and not fields.get("sources"):
            return {**fields, "sources": [{"file": fields["file"]}]}
        return fields

    @model_validator(mode="after")
    def _check(self) -> Card:
        if not self.sources:
            raise ValueError("give `file: path.csv` or a list of `sources`")
        if self.file and [source.file for source in self.sources] != [self.file]:
            raise ValueError("give either `file` or `sources`, not both")
        self._check_target()
        self._check_columns()
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
        if self.task == "binary" and self.labels is not None:
            if len(set(self.labels)) != 2 or len(self.labels) != 2:
                raise ValueError(f"a binary task has two labels, given {self.labels}")
            if self.positive not in self.labels:
                raise ValueError(f"`positive` {self.positive!r} is not one of {self.labels}")
        if self.features and self.task == "regression" and self.target_bounds is None:
            raise ValueError("a public domain needs `target_bounds: [lower, upper]` of the target")

    def _check_columns(self) -> None:
        features = self.features or {}
        for role, names in (("drop", self.drop), ("target", [self.target])):
            for name in set(names) & set(features):
                raise ValueError(f"{name!r} is under both `features` and `{role}`")
        if self.features is None:
            return
        for name in set(self.fill) - set(features):
            raise ValueError(f"`fill` names {name!r}, no feature{nearest(name, list(features))}")

    @property
    def folder(self) -> Path | None:
        """Where the card lies, for relative paths; None for a built-in card."""
        return self._folder

    def format_of(self, source: Source) -> Format:
        """Return the format of `source`, its kind settled by the file's suffix if need be.

        Raises
        ------
        DpreproError
            If neither the card nor the suffix tells the kind.
        """
        settings = source.format or self.format
        suffix = Path(source.filename).suffix.lower()
        kind = "arff" if source.openml else settings.kind or _SUFFIXES.get(suffix)
        if kind is None:
            raise DpreproError(
                f"card {self.name!r}: cannot tell the format of {source.filename!r} by its suffix; "
                "add `format: {kind: csv}` (or arff, parquet)"
            )
        return settings.model_copy(update={"kind": kind})

    def fingerprint(self, data_dir: Path | None = None) -> str:
        """Return 16 hex digits over all that determines the loaded values and the domain.

        Titles, notes and the order of sources do not count. Where the card has no checksum, the
        bytes of a local file do, so that an edited file is a new dataset.
        """
        kept = ("task", "target", "positive", "labels", "target_bounds", "drop", "missing", "fill")
        state: dict[str, Any] = {key: getattr(self, key) for key in kept}
        if self.features is not None:
            # A list, since the order of the columns counts.
            state["features"] = [
                (k, v.model_dump(exclude_defaults=True)) for k, v in self.features.items()
            ]
        state["values"] = self.expect.values_sha256 or self._source_state(data_dir)
        text = json.dumps(state, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _source_state(self, data_dir: Path | None) -> list[Any]:
        from dprepro.data.places import find_file

        state = []
        for source in self.sources:
            digest = source.sha256
            if digest is None and source.file is not None:
                path = find_file(source.file, self.folder, data_dir)
                digest = hashlib.sha256(path.read_bytes()).hexdigest() if path else None
            fields = source.model_dump(exclude={"sha256", "format"})
            state.append([digest or fields, self.format_of(source).model_dump(), source.rename])
        return state


def card_names() -> list[str]:
    """Return the names of the built-in cards, sorted."""
    return sorted(path.stem for path in builtin("datasets").glob("*.yaml"))


def load_card(name_or_path: str | Path) -> Card:
    """Return the card with this built-in name, or in the YAML file at this path; a path wins.

    Raises
    ------
    DpreproError
        If there is no such card, or it is not valid; the message names file and key.
    """
    path = Path(name_or_path)
    if path.is_file():
        card = read_model(path, Card)
        card._folder = path.resolve().parent
        return card
    names = card_names()
    if str(name_or_path) in names:
        return read_model(builtin("datasets") / f"{name_or_path}.yaml", Card)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        raise DpreproError(
            f"no dataset card at {path}. Give an existing path, or one of: {', '.join(names)}"
        )
    raise DpreproError(
        f"unknown dataset {str(name_or_path)!r}{nearest(str(name_or_path), names) or '.'} "
        f"Allowed: {', '.join(names)}, or the path of a card of your own (a .yaml file)"
    )
