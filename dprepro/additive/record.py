"""What a model file holds: every field with its type and its rules, checked before it is used."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from dprepro.additive.bins import MOST_GROUPS, pair_name
from dprepro.additive.editing import Action
from dprepro.additive.measurement import Measurement
from dprepro.additive.units import LEAST_POWER, MOST_POWER
from dprepro.privacy.ledger import Ledger, LedgerEntry
from dprepro.rows.partition import MAX_BINS
from dprepro.runtime.errors import DpreproError

FORMAT = "dprepro additive model"
VERSIONS = (1, 2, 3, 4, 5)
"""Of the format, all of which are read. A model of counts is written in the last one, one of
several classes in version 4, one with functions of pairs in version 3, any other in version 2,
which older releases read, too."""

PREDICTION = (
    "Values and noise are whole numbers of 2 to the power of units.functions, the intercept of 2 "
    "to the power of units.intercept, counts of 2 to the power of units.counts. "
    "Add to the intercept one value of each feature. Numeric: values[number of cuts <= x]. "
    "Categorical: values[groups[position of x among the categories]]; an unlisted category takes "
    "the bin labelled (other). Missing: values[missing_bin]. Where there is no such bin, add 0. "
    "The sum s is the prediction (regression; clipped to the range, if one is given) or the log "
    "odds of the second class (binary): its probability is 1 / (1 + exp(-s)). The labels, if "
    "given, are what the data call both classes."
)
"""How to use a file without this package; it is part of the file."""

PREDICTION_OF_COUNTS = (
    PREDICTION.partition("The sum s is")[0]
    + "With the sum s, the prediction is exp(s), clipped to the range."
)
"""How to use a file of counts without this package; it is part of the file."""

PREDICTION_OF_CLASSES = (
    "Values and noise are whole numbers of 2 to the power of units.functions, the intercept of 2 "
    "to the power of units.intercept, counts of 2 to the power of units.counts. "
    "The intercept, each of the values and the noise of each are as many numbers as there are "
    "classes, in their order. Add to the intercept, class by class, one value of each feature. "
    "Numeric: values[number of cuts <= x]. "
    "Categorical: values[groups[position of x among the categories]]; an unlisted category takes "
    "the bin labelled (other). Missing: values[missing_bin]. Where there is no such bin, add 0. "
    "With the sums s, the probability of class k is exp(s[k]) over the sum of all exp(s). "
    "The labels, if given, are what the data call the classes."
)
"""How to use a file of several classes without this package; it is part of the file."""

INTERVALS = (
    "About percents[j] percent of rows like those fitted to have a target that is at most sizes[j] "
    "whole numbers of 2 to the power of power from the prediction. Between two percents, "
    "interpolate. An interval is the prediction plus and minus a size, clipped to the range. If "
    "functions were edited, sizes count from the prediction before that."
)
"""How to use `intervals` without this package; it is part of the file."""

PREDICTION_OF_PAIRS = (
    f"{PREDICTION} Each of the pairs adds one value more: find the bin of x in both features as "
    "above, then g = first_groups[bin] and h = second_groups[bin]. With H = the largest of "
    "second_groups plus 1, add values[g H + h]; where a feature has no such bin, add 0."
)
"""The same for a file with functions of pairs."""

# More than any fit leaves, and about what can be recomposed in a few seconds and a gigabyte.
_MOST_SPENT = 300.0
_MOST_USES = 10_000
_MOST_ENTRIES = 64
_LEDGERS = TypeAdapter(Ledger)
_KEYS = {"unaccounted": "unpaid"}
"""Keys of a file that are not called as the attributes of a ledger are."""
_NAMES = {key: name for name, key in _KEYS.items()}

Text = Annotated[str, Field(max_length=10_000)]
MOST_CLASSES = 1000

NotNegative = Annotated[float, Field(ge=0)]
Values = Annotated[list[float], Field(min_length=1, max_length=MAX_BINS)]
Counts = Annotated[list[NotNegative], Field(max_length=MAX_BINS)]
OfClasses = Annotated[list[float], Field(min_length=3, max_length=MOST_CLASSES)]
NoiseOfClasses = Annotated[list[NotNegative], Field(min_length=3, max_length=MOST_CLASSES)]


_KINDS = _SINGLE, _SEVERAL = "one number a bin", "a number of each class"


def _kind(values: object) -> str:
    """Return which of both a list is, by its first entry: messages are about that one alone."""
    first = values[0] if isinstance(values, list) and values else None
    return _SEVERAL if isinstance(first, list) else _SINGLE


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _Feature(_Record):
    name: Text
    missing: bool
    missing_bin: Annotated[int, Field(ge=0)] | None
    labels: Annotated[list[Text], Field(max_length=MAX_BINS)]
    values: Annotated[
        Annotated[Values, Tag(_SINGLE)]
        | Annotated[list[OfClasses], Field(min_length=1, max_length=MAX_BINS), Tag(_SEVERAL)],
        Discriminator(_kind),
    ]
    counts: Counts
    noise: (
        Annotated[
            Annotated[Counts, Tag(_SINGLE)]
            | Annotated[list[NoiseOfClasses], Field(max_length=MAX_BINS), Tag(_SEVERAL)],
            Discriminator(_kind),
        ]
        | None
    )
    measured_in: Text | None = None

    @model_validator(mode="after")
    def _one_of_each_a_bin(self) -> _Feature:
        wanted = len(self.values)
        for name in ("labels", "counts", "noise"):
            given = getattr(self, name)
            if given is not None and len(given) != wanted:
                raise ValueError(f"{wanted} bins have values, but {len(given)} have {name}")
        if self.missing_bin is not None and self.missing_bin >= wanted:
            raise ValueError(f"missing_bin is {self.missing_bin}, but bins end at {wanted - 1}")
        return self


class NumericRecord(_Feature):
    """A number in [lower, upper], cut into bins."""

    kind: Literal["numeric"]
    lower: float
    upper: float
    cuts: Annotated[list[float], Field(max_length=MAX_BINS)]

    @model_validator(mode="after")
    def _bins_between_cuts(self) -> NumericRecord:
        if not self.lower <= self.upper:
            raise ValueError(f"lower is {self.lower:g}, above upper, {self.upper:g}")
        if any(a >= b for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must ascend")
        if self.cuts and not self.lower <= self.cuts[0] <= self.cuts[-1] <= self.upper:
            raise ValueError("cuts must lie between lower and upper")
        ordinary = len(self.cuts) + 1
        has_own_bin = self.missing_bin == ordinary
        if len(self.values) != ordinary + has_own_bin:
            raise ValueError(f"{len(self.cuts)} cuts make {ordinary} bins, not {len(self.values)}")
        return self


class CategoricalRecord(_Feature):
    """One of a list of categories, each in a bin; `ordered` if their order means something."""

    kind: Literal["categorical"]
    categories: Annotated[list[Text], Field(max_length=100_000)]
    groups: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=100_000)]
    ordered: bool = False

    @model_validator(mode="after")
    def _a_bin_a_category(self) -> CategoricalRecord:
        if len(set(self.categories)) != len(self.categories):
            raise ValueError("categories repeat")
        if len(self.groups) != len(self.categories):
            raise ValueError(f"{len(self.categories)} categories, but {len(self.groups)} groups")
        if any(group >= len(self.values) for group in self.groups):
            raise ValueError(f"groups must lie below the number of bins, {len(self.values)}")
        return self


FeatureRecord = Annotated[NumericRecord | CategoricalRecord, Field(discriminator="kind")]


Groups = Annotated[
    list[Annotated[int, Field(ge=0, lt=MOST_GROUPS)]], Field(min_length=1, max_length=MAX_BINS)
]


class PairRecord(_Record):
    """A function of two features: see `dprepro.additive.bins.PairTerm`. Cells stand row by row."""

    first: Text
    second: Text
    first_groups: Groups
    second_groups: Groups
    values: Values
    counts: Counts
    noise: Counts | None

    @property
    def name(self) -> str:
        """What it is called."""
        return pair_name(self.first, self.second)

    @model_validator(mode="after")
    def _one_of_each_a_cell(self) -> PairRecord:
        cells = 1
        for groups in (self.first_groups, self.second_groups):
            if set(groups) != set(range(max(groups) + 1)):
                raise ValueError("groups must be numbered from 0 without a gap")
            cells *= max(groups) + 1
        for name in ("values", "counts", "noise"):
            given = getattr(self, name)
            if given is not None and len(given) != cells:
                raise ValueError(f"the groups make {cells} cells, but {len(given)} have {name}")
        return self


Power = Annotated[int, Field(ge=LEAST_POWER, le=MOST_POWER)]
Percent = Annotated[int, Field(ge=1, le=99)]
Size = Annotated[int, Field(ge=0, le=2**30)]


class UnitsRecord(_Record):
    """The powers of two that whole numbers count in; see `dprepro.additive.units.Powers`."""

    functions: Power
    intercept: Power
    counts: Power


class IntervalsRecord(_Record):
    """How wide prediction intervals are; see `dprepro.additive.model.ResidualSizes`."""

    about: Text
    power: Power
    percents: Annotated[list[Percent], Field(min_length=2, max_length=99)]
    sizes: Annotated[list[Size], Field(min_length=2, max_length=99)]

    @model_validator(mode="after")
    def _sizes_rise(self) -> IntervalsRecord:
        if any(a >= b for a, b in pairwise(self.percents)):
            raise ValueError("percents must ascend")
        if any(a > b for a, b in pairwise(self.sizes)):
            raise ValueError("sizes must not fall")
        if len(self.sizes) != len(self.percents):
            raise ValueError(f"{len(self.percents)} percents, but {len(self.sizes)} sizes")
        return self


class EditRecord(_Record):
    """An edit: see `dprepro.additive.editing.Edit`."""

    feature: Text
    action: Action
    detail: Text
    before: Values
    after: Values


def flat(numbers: Iterable[float | list[float]]) -> Iterator[float]:
    """Yield numbers, and those of lists of them."""
    for each in numbers:
        yield from each if isinstance(each, list) else (each,)


class ModelRecord(_Record):
    """The whole file."""

    format: Literal["dprepro additive model"]
    version: Literal[1, 2, 3, 4, 5]
    prediction: Text
    task: Literal["binary", "multiclass", "regression"]
    classes: (
        Annotated[list[bool | int | float | Text], Field(min_length=2, max_length=MOST_CLASSES)]
        | None
    )
    target: Text | None = None
    labels: Annotated[list[Text], Field(min_length=2, max_length=MOST_CLASSES)] | None = None
    range: Annotated[list[float], Field(min_length=2, max_length=2)] | None
    link: Literal["log"] | None = None
    named_columns: bool
    units: UnitsRecord | None = None
    intercept: float | OfClasses
    features: Annotated[list[FeatureRecord], Field(min_length=1, max_length=100_000)]
    pairs: Annotated[list[PairRecord], Field(min_length=1, max_length=10_000)] | None = None
    edits: Annotated[list[EditRecord], Field(max_length=10_000)]
    intervals: IntervalsRecord | None = None
    measurement: Measurement | None = None
    ledger: dict[str, JsonValue] | None
    origin: dict[str, JsonValue]

    @model_validator(mode="after")
    def _fits_together(self) -> ModelRecord:
        is_regression = self.task == "regression"
        self._check_classes()
        if self.range is not None and (not is_regression or self.range[0] > self.range[1]):
            raise ValueError("a range is [lower, upper] of a regression model")
        if self.intervals is not None and not is_regression:
            raise ValueError("intervals are for regression")
        known = self.measurement
        if known is not None and known.task != self.task:
            raise ValueError(
                "a measurement has scores for two classes, a bound for regression, and neither for "
                "several classes"
            )
        names = [feature.name for feature in self.features]
        if len(set(names)) != len(names):
            raise ValueError("feature names repeat")
        if len({feature.noise is None for feature in self.features}) != 1:
            raise ValueError("either every feature has noise or none")
        self._check_link()
        self._check_units()
        self._check_pairs()
        self._check_edits()
        return self

    def _check_link(self) -> None:
        if (self.link is not None) != (self.version == 5):
            raise ValueError("a link is for version 5, which needs it")
        if self.link is None:
            return
        if self.range is None or self.range[0] < 0 or self.intervals:
            raise ValueError(
                "a model with a link is a regression with a range of numbers that are not "
                "negative, and has no intervals"
            )

    def _check_classes(self) -> None:
        classes, several = self.classes, self.task == "multiclass"
        if (classes is None) != (self.task == "regression"):
            raise ValueError("classes are for models of classes, which need them")
        if classes is not None and len(set(map(type, classes))) != 1:
            raise ValueError("classes must be of one type")
        if classes is not None and not all(a < b for a, b in pairwise(classes)):  # type: ignore[operator]
            raise ValueError("classes must ascend")
        size = len(classes or ())
        if classes is not None and (size > 2) != several:
            raise ValueError("a binary model has two classes, a multiclass one more")
        labels = self.labels
        if labels is not None and not len(labels) == len(set(labels)) == size:
            raise ValueError("labels are different names of the classes, one for each")
        if several != (self.version == 4):
            raise ValueError("several classes are for version 4, which needs them")
        if several and (self.edits or self.pairs):
            raise ValueError("a model of several classes has no edits or pairs")
        each = [self.intercept]
        for feature in self.features:
            each += [*feature.values, *([] if feature.noise is None else feature.noise)]
        sizes = {len(numbers) if isinstance(numbers, list) else 1 for numbers in each}
        if sizes != {size if several else 1}:
            raise ValueError(
                "the intercept, each value and each noise must be one number, or of several "
                "classes one for each class"
            )

    def _check_pairs(self) -> None:
        if (self.pairs is not None) != (self.version == 3):
            raise ValueError("pairs are for version 3, which needs them")
        place = {feature.name: k for k, feature in enumerate(self.features)}
        for pair in self.pairs or ():
            for name, groups in (pair.first, pair.first_groups), (pair.second, pair.second_groups):
                if name not in place:
                    raise ValueError(f"a pair has {name!r}, which is not a feature")
                bins = len(self.features[place[name]].values)
                if len(groups) != bins:
                    raise ValueError(f"{name!r} has {bins} bins, but {len(groups)} have groups")
            if place[pair.first] >= place[pair.second]:
                raise ValueError("the first feature of a pair must stand before the second")
            if (pair.noise is None) != (self.features[0].noise is None):
                raise ValueError("pairs have noise where features have it, and only there")
        names = [*place, *(pair.name for pair in self.pairs or ())]
        if len(set(names)) != len(names):
            raise ValueError("a pair is there twice, or has the name of a feature")

    def _check_units(self) -> None:
        if (self.units is None) != (self.version == 1):
            raise ValueError("units are for version 2 and later, which need them")
        if self.units is not None and not all(map(float.is_integer, self._numbers())):
            raise ValueError("values, counts, noise and the intercept must be whole numbers")

    def _numbers(self) -> Iterator[float]:
        yield from flat([self.intercept])
        for term in (*self.features, *(self.pairs or ())):
            yield from chain(flat(term.values), term.counts, flat(term.noise or ()))
        for edit in self.edits:
            yield from chain(edit.before, edit.after)

    def _check_edits(self) -> None:
        """Refuse edits that do not lead, one after the other, to the present values."""
        now: dict[str, Any] = {
            term.name: term.values for term in (*self.features, *(self.pairs or ()))
        }
        for number, edit in reversed(list(enumerate(self.edits, start=1))):
            if edit.feature not in now:
                raise ValueError(
                    f"edit {number} is of {edit.feature!r}, which is neither a feature nor a pair"
                )
            if edit.after != now[edit.feature] or len(edit.before) != len(edit.after):
                raise ValueError(
                    f"edit {number} of {edit.feature!r} does not lead to the values that follow it"
                )
            now[edit.feature] = edit.before


BEFORE_EXACT_NOISE = "all releases: the file was written before noise was exact"
"""What the ledger of a file lists as floating point that says nothing of it."""


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    """Return a ledger as a dict of JSON values, without what follows from the edits."""
    values = {_KEYS.get(name, name): value for name, value in asdict(ledger).items()}
    del values["post_processing"]
    if not ledger.code:
        del values["code"]  # files of our own methods stay as they are
    entries = [entry | {"budget": list(entry["budget"])} for entry in values["entries"]]
    return values | {"entries": entries}


def ledger_from_json(values: dict[str, JsonValue]) -> Ledger:
    """Return the ledger that `ledger_to_json` wrote.

    Raises ValueError if a field is missing, unknown, of another type, or out of range.
    """
    # Files without it were written before noise was exact.
    values = {"floating_point": [BEFORE_EXACT_NOISE], **values}
    # Left out, these would make a ledger look better than it is.
    for name in ("entries", "unpaid", "gaps"):
        if name not in values:
            raise ValueError(f"ledger: {name} is missing")
    named = {_NAMES.get(key, key): value for key, value in values.items()}
    ledger = _LEDGERS.validate_json(json.dumps(named), strict=True)
    # Dataclasses drop the keys that they do not know.
    known = ledger_to_json(ledger)
    for given, kept in zip(_mappings(values), _mappings(known), strict=True):
        for key in given:
            if key not in kept:
                raise ValueError(f"ledger: unknown key {key!r}; allowed: {', '.join(kept)}")
    _check_ledger(ledger)
    return ledger


def _mappings(ledger: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [ledger, *ledger["entries"]]


def _check_ledger(ledger: Ledger) -> None:
    if not (0 < ledger.epsilon < math.inf and 0 <= ledger.delta < 1):
        raise ValueError(f"ledger: not a budget: {ledger.budget}")
    of_unit = [entry.for_group(ledger.rows_per_unit) for entry in ledger.entries]
    for entry in (*ledger.entries, *of_unit):
        _check_entry(entry)
    _check_total(of_unit)
    exchanged = [entry.under_replace_one() for entry in of_unit]
    for entry in exchanged:
        _check_entry(entry)
    # What one unit can reach twice over.
    _check_total(exchanged, 2 * _MOST_SPENT)


def _check_total(entries: Sequence[LedgerEntry], most: float = _MOST_SPENT) -> None:
    gaussian = [e for e in entries if _adds_up_exactly(e)]
    others = [e for e in entries if not _adds_up_exactly(e)]
    mu = math.sqrt(sum(e.uses / e.noise_multiplier**2 for e in gaussian))
    rest = sum(
        e.uses * (e.budget[0] if e.mechanism == "cited" else 1 / e.noise_multiplier) for e in others
    )
    if mu + rest > most or sum(e.uses for e in others) > _MOST_USES:
        raise ValueError("ledger: its releases add up to more than any promise of privacy")
    if len(entries) > _MOST_ENTRIES:
        raise ValueError(f"ledger: more than {_MOST_ENTRIES} kinds of release")


def _adds_up_exactly(entry: LedgerEntry) -> bool:
    return entry.mechanism == "gaussian" and entry.sampling == 1


def _check_entry(entry: LedgerEntry) -> None:
    epsilon, delta = entry.budget
    scale_is_known = entry.scale > 0 or (entry.mechanism == "cited" and entry.scale == 0)
    if not (
        all(map(math.isfinite, (entry.sensitivity, entry.scale, epsilon, delta)))
        and entry.sensitivity > 0
        and scale_is_known
        and (entry.mechanism == "cited" or 1e-3 < entry.noise_multiplier < 1e12)
        and 1 <= entry.uses <= 10**12
        and epsilon >= 0
        and 0 <= delta < 1
        and (entry.replace_one is None or 0 < entry.replace_one < math.inf)
        and 0 < entry.sampling <= 1
    ):
        raise ValueError(f"ledger: numbers out of range in the release of {entry.releases!r}")


_WRITTEN_BY = "`dprepro release CARD` and `dprepro fit CONFIG --output FILE` write one"
_MOST_LEVELS = 8
# More would take long, and memory, to refuse. The largest file has about as many numbers, and the
# most features, 100,000, have fewer keys.
_MOST_VALUES, _MOST_KEYS = 10_000_000, 1_500_000
_MOST_PROBLEMS = 5
# pydantic lists all or none, and takes a second for 300,000.
_MOST_LISTED = 10_000
_LONGEST_LINE = 240
# Half of a character: JSON can name it, but no file in UTF-8 can hold it.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def refuse_countless(text: str, where: Path | str) -> None:
    """Raise `DpreproError` if the text of a file has more values or keys than a model file."""
    if text.count(",") > _MOST_VALUES:
        raise DpreproError(f"{where}: more than {_MOST_VALUES:,} values, which no model file has")
    # A quote before a colon ends a key, unless it is escaped or a text begins with the colon, as
    # few do. Keys with a blank before the colon are counted where they are read, at length.
    if text.count('":') - text.count('\\":') > _MOST_KEYS:
        raise DpreproError(f"{where}: more than {_MOST_KEYS:,} keys, which no model file has")


def parse_strictly(text: str, path: Path | str) -> Any:
    """Return the JSON values of the text of `path`: no NaN, no infinities, no key twice.

    Raises DpreproError if it is anything else, or has more values or keys than a model file.
    """
    refuse_countless(text, path)
    keys = 0

    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal keys
        keys += len(pairs)
        if keys > _MOST_KEYS:
            raise ValueError(f"more than {_MOST_KEYS:,} keys")
        return _without_repeats(pairs)

    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=counted,
        )
    except RecursionError as error:
        raise DpreproError(f"{path}: nested more than {_MOST_LEVELS} levels deep") from error
    except ValueError as error:
        raise DpreproError(
            f"{path}: not JSON as a model file needs it: {error}. {_WRITTEN_BY}"
        ) from error


def checked_record(values: Any, where: str) -> ModelRecord:
    """Return what the JSON values of a model file say, each field checked, alone and with the rest.

    Raises DpreproError if they are not those of such a file, or of another version of the format,
    or if a field is wrong. The message begins with `where`.
    """
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise DpreproError(f'{where}: not a model file: "format" must be {FORMAT!r}; {_WRITTEN_BY}')
    if _is_deeper(values, _MOST_LEVELS):
        raise DpreproError(f"{where}: nested more than {_MOST_LEVELS} levels deep")
    if values.get("version") not in VERSIONS:
        known = ", ".join(map(str, VERSIONS))
        raise DpreproError(
            f"{where}: version {_brief(repr(values.get('version')))} of the format is not known "
            f"here (allowed: {known}); use the release of dprepro that wrote it"
        )
    _refuse_half_characters(values, where)
    try:
        record = ModelRecord.model_validate(values)
        if record.ledger is not None:
            ledger_from_json(record.ledger)
    except ValidationError as error:
        lines = [f"{where}: {line}" for line in _problems(error)]
        raise DpreproError("\n".join(lines)) from error
    except ValueError as error:
        raise DpreproError(f"{where}: {_brief(str(error))}") from error
    return record


def _problems(error: ValidationError) -> list[str]:
    """Return what is wrong with a file, field by field; the first few."""
    if (count := error.error_count()) > _MOST_LISTED:
        return [f"{count:,} fields are unknown, missing or wrong; {_WRITTEN_BY}"]
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [
        _brief(
            f"{'.'.join(str(p) for p in problem['loc'] if p not in _KINDS) or 'model'}: "
            f"{problem['msg'].removeprefix('Value error, ')}"
        )
        for problem in found[:_MOST_PROBLEMS]
    ]
    more = len(found) - _MOST_PROBLEMS
    return [*lines, f"and {more} more"] if more > 0 else lines


def _refuse_half_characters(values: Any, where: str) -> None:
    """Raise `DpreproError` for a lone surrogate: with it, the model could not be saved again."""
    if not _LONE_SURROGATE.search(json.dumps(values, ensure_ascii=False)):
        return  # to look for the place takes much longer
    for place, text in _texts(values):
        if half := _LONE_SURROGATE.search(text):
            raise DpreproError(
                f"{where}: {_brief(place)}: holds {half[0]!a}, a lone surrogate (half of a "
                "character), which no text file can hold; take it out"
            )


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large for a number")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        repeated, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {repeated[:40]!r} is given twice")
    return values


def _is_deeper(values: Any, levels: int) -> bool:
    """Whether lists and mappings are nested more than `levels` deep; without recursion."""
    layer = [values]
    for _ in range(levels + 1):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, (list, dict))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(layer)


def _texts(values: Any, place: str = "model") -> Iterator[tuple[str, str]]:
    """Yield every text, keys of mappings too, with the place where it stands."""
    if isinstance(values, str):
        yield place, values
    elif isinstance(values, dict):
        for key, inner in values.items():
            yield place, str(key)
            yield from _texts(inner, f"{place}.{key}")
    elif isinstance(values, list):
        for position, inner in enumerate(values):
            if isinstance(inner, (str, list, dict)):  # not every number by itself
                yield from _texts(inner, f"{place}.{position}")


def _brief(line: str) -> str:
    """Return a line of a message: no longer than can be read, nothing that steers a terminal."""
    if len(line) > _LONGEST_LINE:
        line = f"{line[: _LONGEST_LINE // 2]} … {line[-_LONGEST_LINE // 2 :]}"
    return "".join(c if c.isprintable() else "\ufffd" for c in line)
