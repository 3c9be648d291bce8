"""The parts of a card: formats, sources, public domains of features, expectations, short forms."""

from __future__ import annotations

import codecs
import encodings.aliases
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlparse

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    StringConstraints,
    model_validator,
)

from dprepro.data.domain import CategoricalFeature, NumericFeature, TaskKind, is_date_format
from dprepro.privacy.budget import ROW
from dprepro.runtime.errors import nearest
from dprepro.runtime.yaml_files import beyond_floats

_NO_SEPARATORS = '"\r\n\0'
# Python encodes names of the internet with them, and Arrow does not know the first.
_OF_NAMES = ("punycode", "idna")


def _check_separator(mark: str) -> str:
    if not mark.isascii() or mark in _NO_SEPARATORS:
        raise ValueError(
            "`separator` must be one ASCII character, and no quote or line break, such as "
            '`separator: ";"`. Write the file with another one'
        )
    return mark


def _check_encoding(name: str) -> str:
    try:
        "a".encode(name)  # raises for codecs that are not from text to bytes, too
        known = codecs.lookup(name).name not in _OF_NAMES
    except (LookupError, ValueError):
        known = False
    if not known:
        names = [alias.replace("_", "-") for alias in encodings.aliases.aliases]
        raise ValueError(
            f"{name!r} is no encoding of text files that Python knows{nearest(name, names) or '.'} "
            "Usual ones are utf8, latin-1 and cp1252. `iconv -f OLD -t utf8` writes a file as "
            "UTF-8, which needs no `encoding`"
        )
    return name


Separator = Annotated[
    str, StringConstraints(min_length=1, max_length=1), AfterValidator(_check_separator)
]
Encoding = Annotated[str, AfterValidator(_check_encoding)]


def _in_range(value: Any) -> Any:
    """Refuse a text that is a number which a float cannot hold; others pydantic refuses."""
    try:
        problem = beyond_floats(value, float(value)) if isinstance(value, str) else ""
    except ValueError:
        return value
    if problem:
        raise ValueError(problem)
    return value


Number = Annotated[float, BeforeValidator(_in_range)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://")]
UnitOfMeasure = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)
]
RowsPerUnit = Annotated[int, Field(ge=1, le=1_000_000)]
SourceKind = Literal["file", "http", "openml", "sklearn", "pool", "join", "synthetic"]
SOURCE_KINDS: tuple[SourceKind, ...] = get_args(SourceKind)
FormatKind = Literal["csv", "arff", "parquet", "svmlight", "idx", "npz"]
KIND_OF_SUFFIX: dict[str, FormatKind] = {
    ".csv": "csv",
    ".data": "csv",
    ".test": "csv",
    ".txt": "csv",
    ".tsv": "csv",
    ".arff": "arff",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".npz": "npz",
}


class Strict(BaseModel):
    """A model that refuses unknown keys and cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Format(Strict):
    """How bytes become a table.

    ``kind`` follows from the file's suffix unless it is given. The other keys are for csv: a file
    without a header line has ``header: false`` and names its ``columns``; with a header line,
    ``columns`` stand in the place of its names. Lines that begin with ``comment`` are skipped, and
    blanks around a field are ignored. ``decimal: ","`` reads 1,5 as 1.5, and ``thousands: "."``
    reads 1.234 as 1234. csv and arff files can be gzipped. svmlight has no header, and its first
    column is the label. idx is the format of MNIST, plain or gzipped: an array of one dimension
    becomes the column ``class``, one of more dimensions the columns ``pixel1``, ``pixel2``, ... npz
    is an archive of NumPy with the arrays ``X`` and ``y``; its first column is the label, too.
    """

    kind: FormatKind | None = None
    separator: Separator = ","
    header: bool = True
    columns: list[str] | None = None
    comment: str | None = None
    encoding: Encoding = "utf8"
    decimal: Literal[".", ","] = "."
    thousands: Literal[".", ",", " ", "'"] | None = None

    @model_validator(mode="after")
    def _check(self) -> Format:
        if self.thousands == self.decimal:
            raise ValueError(
                f"`thousands` and `decimal` are both {self.decimal!r}: a number cannot have one "
                "mark for two things"
            )
        if not self.header and not self.columns:
            raise ValueError("without a header line, `columns` must name the columns in order")
        counts = Counter(name.strip() for name in self.columns or [])
        for name in [name for name, count in counts.items() if count > 1]:
            raise ValueError(f"`columns` names {name!r} twice; give one of them another name")
        return self


class Synthetic(Strict):
    """The shape of a stand-in for private data; see `dprepro.data.sources`."""

    rows: PositiveInt
    numeric: NonNegativeInt
    binary: NonNegativeInt
    positives: PositiveInt
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _check(self) -> Synthetic:
        if self.numeric + self.binary == 0:
            raise ValueError("a stand-in needs features: `numeric`, `binary` or both")
        if self.positives >= self.rows:
            raise ValueError(f"`positives` must be fewer than the {self.rows} `rows`")
        return self


class Source(Strict):
    """One place to get the data from: exactly one of `SourceKind`.

    Sources are tried in their order: first what is on this machine, then the network. ``openml``
    is the number of a dataset. OpenML has it as ARFF and as Parquet; Parquet is taken if ARFF
    cannot be had and the card has a ``values_sha256``.

    ``pool`` lists sources whose rows make one table, in this order; ``join`` lists sources whose
    columns are put side by side. ``rows: [start, stop]`` selects a part of an OpenML table.
    ``sha256`` is the checksum of the file or, with ``member``, of that member of the archive. A
    file with another one is refused, unless the card has a ``values_sha256`` and the file has
    these values, whatever its quotes or line ends. Such a file may also be Parquet.
    ``format`` replaces that of the card; ``rename`` maps the column names of this source to those
    of the card.
    """

    file: str | None = None
    http: Url | None = None
    openml: PositiveInt | None = None
    sklearn: Literal["breast_cancer", "diabetes", "digits", "iris", "wine"] | None = None
    pool: list[Source] | None = None
    join: list[Source] | None = None
    synthetic: Synthetic | None = None
    member: str | None = None
    rows: tuple[NonNegativeInt, PositiveInt] | None = None
    sha256: Sha256 | None = None
    format: Format | None = None
    rename: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Source:
        given = [kind for kind in SOURCE_KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            found = ", ".join(given) or "none of them"
            raise ValueError(f"a source is exactly one of {', '.join(SOURCE_KINDS)}; found {found}")
        if self.member and self.kind not in ("file", "http"):
            raise ValueError(f"`member` is for archives, not for {self.kind}")
        if self.sha256 and self.kind not in ("file", "http", "openml"):
            raise ValueError(f"{self.kind} has no file to check: use `expect: values_sha256`")
        if self.rows is not None and self.openml is None:
            raise ValueError(f"`rows` is for openml, not for {self.kind}")
        for name, parts in (("pool", self.pool), ("join", self.join)):
            if parts is not None and len(parts) < 2:
                raise ValueError(f"`{name}` lists two sources or more")
            for part in parts or []:
                if part.kind not in ("file", "http", "openml") or part.rename:
                    raise ValueError(
                        f"`{name}` lists file, http and openml sources, without `rename`"
                    )
        return self

    @property
    def kind(self) -> SourceKind:
        """The kind of the source."""
        return next(kind for kind in SOURCE_KINDS if getattr(self, kind) is not None)

    @property
    def files(self) -> list[Source]:
        """The sources of single files: itself, or its parts."""
        return self.pool or self.join or [self]

    @property
    def label(self) -> str:
        """The source in a few words, e.g. ``openml 42178``."""
        if self.pool or self.join:
            return " + ".join(part.label for part in self.files)
        member = f" ({self.member})" if self.member else ""
        place = self.file or self.http or self.openml or self.sklearn
        return f"{self.kind} {place}{member}" if place else self.kind

    @property
    def filename(self) -> str:
        """The name of the file that holds the data, without folders."""
        place = self.member or self.file or urlparse(self.http or "").path
        return f"{self.openml}.arff" if self.openml else Path(place).name


def check_stand_in(sources: Sequence[Source], task: TaskKind, labels: list[str] | None) -> None:
    """Refuse a stand-in beside sources that it cannot stand in for. Raises ValueError."""
    kinds = [source.kind for source in sources]
    if "synthetic" in kinds and kinds != [*["file"] * (len(kinds) - 1), "synthetic"]:
        raise ValueError(
            "a `synthetic` source stands in for private files: only `file` sources can come "
            "before it, and none after"
        )
    if "synthetic" in kinds and (task != "binary" or labels is None):
        raise ValueError("a `synthetic` source needs `task: binary` and two `labels`")


def check_test(test: TestSet | None, task: TaskKind, labels: list[str] | None) -> None:
    """Refuse test rows whose labels need not have the codes of the training rows.

    Raises ValueError as said, with what to do.
    """
    if test is None:
        return
    if test.labels is not None and labels is None:
        raise ValueError("if `test` has `labels`, the card itself needs `labels`, too")
    if task == "multiclass" and labels is None:
        raise ValueError(
            "`test` needs `labels`, the list of all labels of the target: a class that the test "
            "file lacks would move the codes of the others. Add `labels: [...]`"
        )
    if test.labels is None or labels is None:
        return
    if len(set(test.labels)) < len(test.labels):
        raise ValueError(f"the `labels` of `test` must be different labels, given {test.labels}")
    if len(test.labels) != len(labels):
        raise ValueError(
            "the `labels` of `test` must pair with those of the card: given "
            f"{len(test.labels)}, and {len(labels)} on the card. List them all, in the same order"
        )


def check_unit(
    unit: str | None,
    rows_per_unit: int | None,
    roles: Mapping[str, Collection[str]],
    sources: Sequence[Source],
) -> None:
    """Refuse a unit of privacy without a bound, or one that is no column of its own.

    `roles` has the other columns that the card names, by the key that names them.

    Raises ValueError as said, with what to do.
    """
    if (unit is None) != (rows_per_unit is None):
        raise ValueError(
            "give both `unit`, the column that says whose row it is, and `rows_per_unit`, how many "
            "rows of one unit may train; or neither"
        )
    if unit is None:
        return
    if unit == ROW:
        raise ValueError(f"`unit` is the name of a column; without it the unit is the {ROW}")
    for role, names in roles.items():
        if unit in names:
            raise ValueError(
                f"{unit!r} is the `unit` and under `{role}`: a unit only says whose row it is. "
                f"Take it out of `{role}`"
            )
    if any(source.kind in ("sklearn", "synthetic") for source in sources):
        raise ValueError("`unit` is for files: the rows of these sources have no owners")


MOST_SUBGROUPS = 100
"""Of one feature: noise hides more."""


def check_subgroups(
    subgroups: Mapping[str, Sequence[float] | None], features: Mapping[str, FeatureDomain]
) -> None:
    """Refuse subgroups of what is no feature, or between cuts that its domain does not have.

    Raises ValueError as said, with what to do.
    """
    for name, cuts in subgroups.items():
        if name not in features:
            raise ValueError(
                f"`subgroups` names {name!r}, which is not under `features`: groups follow from "
                f"public values of features{nearest(name, list(features))}"
            )
        bounds, categories = features[name].numeric, features[name].categories or []
        if cuts is not None and bounds is None:
            raise ValueError(
                f"`subgroups` has cuts for {name!r}, whose groups are its categories: leave them "
                f"out, `{name}:`"
            )
        if len(categories) > MOST_SUBGROUPS or len(cuts or ()) >= MOST_SUBGROUPS:
            raise ValueError(
                f"`subgroups`: {name!r} has more than {MOST_SUBGROUPS} groups, which noise hides: "
                "name a feature with fewer"
            )
        if cuts is not None and bounds is not None:
            ends = [bounds[0], *cuts, bounds[1]]
            if not cuts or any(not a < b for a, b in pairwise(ends)):
                raise ValueError(
                    f"`subgroups`: the cuts of {name!r} must ascend between its bounds, "
                    f"{bounds[0]:g} and {bounds[1]:g}, given {list(cuts)}"
                )


MISSING_TEXTS = ("", "?", "NA", "NaN", "nan", "null")
"""The texts that stand for a missing value where nothing else is said."""


class FeatureDomain(Strict):
    """What is public about one feature: ``numeric: [lower, upper]`` or ``categories: [...]``.

    ``missing: true`` says that values may be missing. ``measured_in`` names the unit of measure,
    such as years: model files and pictures show it, and nothing is computed from it.

    A numeric feature with ``date`` is written as a date, in this format of Python's strptime such
    as ``"%d.%m.%Y"``: it is read as a number of years, 2014.5 in the middle of 2014, or of hours
    where the format has no year. It is what the clock says: a time zone (``%z``) is not looked at.
    Of a categorical feature ``relabel`` maps texts of the file to categories, and ``groups`` maps a
    category to all the texts that it stands for, such as rare codes; ``ordered: true`` says that
    its categories have the order in which they are listed.
    """

    numeric: tuple[Number, Number] | None = None
    categories: list[str] | None = None
    missing: bool = False
    measured_in: UnitOfMeasure | None = None
    date: str | None = None
    relabel: dict[str, str] = Field(default_factory=dict)
    groups: dict[str, list[str]] = Field(default_factory=dict)
    ordered: bool = False

    @property
    def category_of(self) -> dict[str, str]:
        """The category of each text of the file that is not itself one."""
        grouped = {text: name for name, texts in self.groups.items() for text in texts}
        return {**grouped, **self.relabel}

    @model_validator(mode="after")
    def _check(self) -> FeatureDomain:
        if (self.numeric is None) == (self.categories is None):
            raise ValueError("give either `numeric: [lower, upper]` or `categories: [...]`")
        self._check_reading()
        try:
            self.named("")  # bounds in order, categories distinct
        except ValueError as error:
            raise ValueError(str(error).partition(": ")[2]) from error  # the key says which feature
        return self

    def _check_reading(self) -> None:
        """Refuse keys that do not fit the kind of the feature. Raises ValueError."""
        if self.numeric is not None and (self.relabel or self.groups or self.ordered):
            raise ValueError("`relabel`, `groups` and `ordered` are for `categories`")
        if self.categories is not None and self.date is not None:
            raise ValueError("`date` is for `numeric`: it is read as a number")
        if self.date is not None and not is_date_format(self.date):
            raise ValueError(
                f"`date` {self.date!r} is no format of dates: give one with a year (%Y), such as "
                '"%Y-%m-%d" or "%d.%m.%Y %H:%M", or one of a time of day, such as "%H:%M"'
            )
        counts = Counter(text for texts in self.groups.values() for text in texts)
        counts.update(list(self.relabel))
        for text in [text for text, count in counts.items() if count > 1]:
            raise ValueError(f"`relabel` and `groups` say twice what {text!r} is")
        for text, category in self.category_of.items():
            if category not in (self.categories or []):
                raise ValueError(
                    f"`relabel` or `groups` maps {text!r} to {category!r}, which is not one of the "
                    "`categories`"
                )
            if text in (self.categories or []):
                raise ValueError(
                    f"{text!r} is one of the `categories`, so that `relabel` or `groups` cannot "
                    "make another of it"
                )

    def named(self, name: str) -> NumericFeature | CategoricalFeature:
        """Return the feature of the domain, with this name."""
        if self.numeric is not None:
            return NumericFeature(name, *self.numeric, missing=self.missing)
        return CategoricalFeature(name, tuple(self.categories or ()), self.missing, self.ordered)


class TestSet(Strict):
    """The published test rows: where their file is, and how it differs from the training file.

    ``labels`` are spelt as in this file, in the order of the card's; ``format`` replaces that of
    the card.
    """

    sources: list[Source]
    format: Format | None = None
    labels: list[str] | None = None
    expect: Expect = Field(default_factory=lambda: Expect())

    @model_validator(mode="after")
    def _check(self) -> TestSet:
        if not self.sources:
            raise ValueError("give a list of `sources`")
        return self


class BudgetLimit(Strict):
    """What may be released of a dataset in all, over all its releases; see `budget_book`.

    It holds for the unit of privacy of its card: for a row, or for all rows of a unit.
    """

    epsilon: Annotated[Number, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[Number, Field(ge=0, lt=1)] = 0.0


Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]
"""As the public registry of deployments of differential privacy has them."""

Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Deployment(Strict):
    """Who releases models of the data, for what and where; nothing of it is read from rows.

    ``curators`` are who publishes, ``authors`` who filled in this record (the curators, unless
    named), ``contact`` whom to ask, ``region`` is what the data describe or whose laws apply, and
    ``until`` how long the release is meant to be used. ``actors`` says who may see the release and
    who is trusted with what, ``justification`` how epsilon, the unit and the rest were chosen,
    ``withdrawal`` what happens if somebody in the table withdraws, and ``sources`` where more is
    written.
    """

    curators: Annotated[list[Said], Field(min_length=1)]
    intended_use: Said
    region: Said
    sector: Sector | None = None
    contact: str = ""
    until: str = ""
    withdrawal: str = ""
    description: str = ""
    actors: str = ""
    justification: str = ""
    sources: str = ""
    authors: list[Said] = Field(default_factory=list)


class Distinct(Strict):
    """Of rows that agree, the first alone is kept. Columns under ``but_for`` need not agree.

    All columns of the file count, the target and those that are dropped included.
    """

    but_for: list[str] = Field(default_factory=list)


class Expect(Strict):
    """What every load must find. ``columns`` is the number of features.

    ``positive_share`` gives bounds, for data of which only a rounded share is known. For
    ``values_sha256`` see `dprepro.data.dataset.values_digest`.
    """

    rows: PositiveInt | None = None
    columns: PositiveInt | None = None
    positives: PositiveInt | None = None
    positive_share: tuple[Number, Number] | None = None
    values_sha256: Sha256 | None = None


MOST_FEATURES = 20_000
"""Of one card. Models of more would take hours."""

_BREAK = re.compile(r"\s*[\r\n]+\s*")
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


def one_line(name: str) -> str:
    """Return a name as it is compared: without blanks around it, a line break in it as one blank.

    Examples
    --------
    >>> one_line(" age\\n(years)")
    'age (years)'
    """
    return _BREAK.sub(" ", name.strip())


def expand_names(features: Any) -> Any:
    """Return a card's ``features`` with a name like ``pixel{1..784}`` written out, in place.

    Raises ValueError if a range is decreasing, a name occurs twice, or there are more than
    `MOST_FEATURES`.
    """
    if not isinstance(features, dict):
        return features
    expanded: dict[str, Any] = {}
    for name, domain in features.items():
        for full in _written_out(one_line(str(name)), MOST_FEATURES - len(expanded)):
            if full in expanded:
                raise ValueError(f"{full!r} is described twice, the second time by {name!r}")
            expanded[full] = domain
    return expanded


def with_lists(features: Any, lists: Any) -> Any:
    """Return a card's ``features`` in which the name of a list of categories is that list.

    Raises ValueError if there is no list of that name.
    """
    if not isinstance(features, dict):
        return features
    known = lists if isinstance(lists, dict) else {}
    return {name: _with_list(name, domain, known) for name, domain in features.items()}


def _with_list(name: Any, domain: Any, lists: dict[str, Any]) -> Any:
    wanted = domain.get("categories") if isinstance(domain, dict) else None
    if not isinstance(wanted, str):
        return domain
    if wanted not in lists:
        raise ValueError(
            f"feature {name!r}: there is no list {wanted!r} under `category_lists`"
            f"{nearest(wanted, list(lists)) or '.'} Write the categories as a list, "
            "or add one of that name"
        )
    return {**domain, "categories": lists[wanted]}


def _written_out(name: str, room: int) -> list[str]:
    """Return the names that a name stands for, at most `room` of them. Raises ValueError."""
    found = _RANGE.search(name)
    # Longer numbers are beyond any limit, and take long to read.
    first, last = (0, 0) if found is None else (int(found[1][-19:]), int(found[2][-19:]))
    if (found and max(map(len, found.groups())) > 18) or last - first >= room:
        raise ValueError(f"{name[:80]!r}: more than {MOST_FEATURES:,} features in all")
    if found is None:
        return [name]
    if first > last:
        raise ValueError(f"{name!r}: the range must not be decreasing")
    return [name[: found.start()] + str(k) + name[found.end() :] for k in range(first, last + 1)]
