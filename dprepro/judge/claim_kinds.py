"""Claims by kind, each with the rule that decides whether it holds.

Means decide the claims about results. Cards, configs, formulas and other printed numbers decide the
rest: what is computed, how methods are set, what is printed twice.
"""

from __future__ import annotations

import math
import statistics
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from dprepro.judge.quantities import builtin_config, compute, entry_of, found_params
from dprepro.judge.two_means import score_difference
from dprepro.papers.published_cell import PublishedCell, load_published
from dprepro.papers.schema import Names, Numbers, Selector, Strict
from dprepro.results.margins import Margin, find_metric, level
from dprepro.runtime.errors import DpreproError, nearest

_ALLOWED = 2 * math.sqrt(2)
"""Two standard errors of a difference of two means, in standard errors of one of them."""
_FLOAT_ERROR = 1e-9
"""How far a difference of printed numbers may lie from what their decimals give."""
_WORDS: dict[str, JsonValue] = {"null": None, "true": True, "false": False}


@dataclass(frozen=True)
class Finding:
    """What means, cards or configs say about a claim: whether it holds, numbers, and words.

    `is_rounded`: it holds only because a stated bound counts up to half a unit of its last digit.
    `is_noisy`: only because of the sampling error of the means. `allowed` are by name the least and
    the largest mean that count, rounding and noise included; None where there is no such bound.
    """

    holds: bool
    figures: Mapping[str, float]
    text: str
    is_rounded: bool = False
    is_noisy: bool = False
    allowed: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)


class Claim(Strict):
    """A statement with numbers, and its place in the document.

    `states` is it in our own words, `note` how it is understood if it can be read in several ways.
    """

    name: str
    section: str
    states: str = Field(min_length=1)
    note: str = ""

    def selectors(self) -> list[Selector]:
        """Return the selectors of the printed cells that it is about; each must match."""
        return []

    def cells(self, printed: Sequence[PublishedCell]) -> list[PublishedCell]:
        """Return the cells of `printed` that it is about, in printed order."""
        selectors = self.selectors()
        return [cell for cell in printed if any(s.matches(cell) for s in selectors)]

    def unprinted(self, paper: str) -> list[PublishedCell]:
        """Return cells that the document does not print and that must be measured for the claim."""
        return []


def half_unit(value: Decimal) -> float:
    """Return half a unit of the last digit of a number as printed."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return 0.5 * 10.0**exponent


@dataclass(frozen=True)
class Means:
    """The means of the cells that a claim speaks of, measured or as printed.

    `is_whole`: no cell of the claim is left out. `margins`: by metric, how far two means may lie
    apart that count as the same. `errors`: standard errors of measured means, where they are known.
    """

    values: Mapping[PublishedCell, float]
    is_whole: bool
    margins: Mapping[str, Margin] = field(default_factory=dict)
    errors: Mapping[PublishedCell, float] = field(default_factory=dict)

    @cached_property
    def _index(self) -> dict[tuple[str, str, float], float]:
        return {(c.dataset, c.method, c.epsilon): value for c, value in self.values.items()}

    def get(self, dataset: str, method: str, epsilon: float) -> float | None:
        """Return the mean of one cell, or None."""
        return self._index.get((dataset, method, epsilon))

    def settings(self) -> list[PublishedCell]:
        """Return one cell for each dataset and epsilon."""
        return list({(cell.dataset, cell.epsilon): cell for cell in self.values}.values())

    def leads(self, own: tuple[str, float], other: tuple[str, float]) -> dict[str, float]:
        """Return by dataset how far one (method, epsilon) is ahead of another.

        Datasets for which one of the two has no mean are left out.
        """
        leads = {}
        for cell in self.settings():
            first, second = self.get(cell.dataset, *own), self.get(cell.dataset, *other)
            if first is not None and second is not None:
                leads[cell.dataset] = _lead(cell.metric, first, second)
        return leads

    def wins(self, methods: Sequence[str], rivals: Sequence[str]) -> tuple[int, int, str]:
        """Return in how many settings one of `methods` is ahead of all rivals, of how many."""
        won, lost = 0, []
        for cell in self.settings():
            found = (
                [self.get(cell.dataset, m, cell.epsilon) for m in ms] for ms in (methods, rivals)
            )
            ours, theirs = ([mean for mean in means if mean is not None] for means in found)
            if not (ours and theirs):
                continue
            if max(min(_lead(cell.metric, own, other) for other in theirs) for own in ours) > 0:
                won += 1
            else:
                lost.append(f"{cell.dataset} at ε={level(cell.epsilon)}")
        total = won + len(lost)
        behind = f"; behind on {', '.join(lost)}" if lost else ""
        return won, total, f"best in {won} of {total} settings{behind}"


def _lead(metric: str, own: float, other: float) -> float:
    """Return how far `own` is ahead of `other`, in units of the metric; 0 if by rounding alone."""
    is_higher_better = find_metric(metric).higher_is_better
    return score_difference(own, other) if is_higher_better else score_difference(other, own)


class CellClaim(Claim):
    """A claim about results: cells decide it, or measured means at the places that it names."""

    @property
    def range(self) -> str:
        """What is stated of means that the document does not print; empty where it prints them."""
        return ""

    @abstractmethod
    def assess(self, means: Means) -> Finding | None:
        """Return what `means` say about it; None where too few are there to say anything."""


class Mean(Strict):
    """An average as the sentence prints it, over the cells of these methods."""

    methods: Names
    value: Decimal


class Average(CellClaim):
    """The mean over the datasets of `table` at one epsilon, one for each group of methods."""

    table: str
    epsilon: float
    figures: dict[str, Mean]

    def selectors(self) -> list[Selector]:
        """Return the cells of each figure."""
        return [
            Selector(tables=[self.table], methods=figure.methods, epsilons=[self.epsilon])
            for figure in self.figures.values()
        ]

    def assess(self, means: Means) -> Finding | None:
        """Hold each average against the sentence, or the printed cells where some are left out."""
        averages, holds, words, allowed, is_noisy = {}, [], [], {}, False
        for title, figure in self.figures.items():
            if not (cells := [c for c in means.values if c.method in figure.methods]):
                continue
            averages[title] = statistics.fmean(means.values[c] for c in cells)
            printed = statistics.fmean(c.mean for c in cells)
            expected = float(figure.value) if means.is_whole else printed
            margin = means.margins[cells[0].metric]
            near = max(margin.absolute, margin.relative * abs(printed), half_unit(figure.value))
            width = max(near, _ALLOWED * _error_of_average(cells, means.errors))
            off = abs(averages[title] - expected)
            holds.append(off <= width)
            allowed[title] = (expected - width, expected + width)
            words.append(f"{title} {averages[title]:.3f}")
            if near < off <= width:
                is_noisy = True
                words[-1] += f" (counts {_span(allowed[title])})"
        if not holds:
            return None
        is_noisy = is_noisy and all(holds)
        return Finding(all(holds), averages, ", ".join(words), is_noisy=is_noisy, allowed=allowed)


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def _span(allowed: tuple[float | None, float | None]) -> str:
    """Return it in words: ``"from 0.7008 on"``, ``"up to 0.5"``, ``"from 0.75 to 0.83"``."""
    low, high = allowed
    if high is None:
        return f"from {low:.4g} on"
    return f"up to {high:.4g}" if low is None else f"from {low:.4g} to {high:.4g}"


def _error_of_average(
    cells: Sequence[PublishedCell], errors: Mapping[PublishedCell, float]
) -> float:
    """Return it: datasets are independent, two methods on the same splits are not."""
    by_dataset: dict[str, list[float]] = {}
    for cell in cells:
        by_dataset.setdefault(cell.dataset, []).append(errors.get(cell, 0.0))
    return math.hypot(*map(statistics.fmean, by_dataset.values())) / len(by_dataset)


class LossAtMost(CellClaim):
    """On each dataset of `table` a method at one epsilon loses at most `bound` to its twin.

    `nonprivate` is the twin; `bound` is in units of the metric.
    """

    table: str
    epsilon: float
    method: str
    nonprivate: str
    bound: Decimal

    def selectors(self) -> list[Selector]:
        """Return the private cells and their twins."""
        private = Selector(tables=[self.table], methods=[self.method], epsilons=[self.epsilon])
        twin = Selector(tables=[self.table], methods=[self.nonprivate], epsilons=[math.inf])
        return [private, twin]

    def assess(self, means: Means) -> Finding | None:
        """Hold the largest loss against the bound, up to the rounding of its last digit."""
        if not (losses := means.leads((self.nonprivate, math.inf), (self.method, self.epsilon))):
            return None
        worst = max(losses, key=lambda dataset: losses[dataset])
        bound = float(self.bound)
        holds = losses[worst] <= bound + half_unit(self.bound)
        is_rounded = holds and losses[worst] > bound + _FLOAT_ERROR
        return Finding(holds, losses, f"largest loss {losses[worst]:.3f} ({worst})", is_rounded)


class BestInAll(CellClaim):
    """In each of `settings` settings (a dataset and an epsilon) the best of all is one of these.

    Only those of `tables`, if given.
    """

    methods: Names
    rivals: Names
    settings: int
    tables: Names | None = None

    def selectors(self) -> list[Selector]:
        """Return the cells of all the methods."""
        return [Selector(tables=self.tables, methods=[*self.methods, *self.rivals])]

    def assess(self, means: Means) -> Finding | None:
        """Count the settings in which the best of the methods is ahead of every rival."""
        won, total, text = means.wins(self.methods, self.rivals)
        holds = won == total and (total == self.settings or not means.is_whole)
        return Finding(holds, {"won": won, "settings": total}, text) if total else None


class NoticeableUpTo(CellClaim):
    """Two methods typically differ noticeably only at epsilons up to `epsilon`."""

    methods: Names = Field(min_length=2, max_length=2)
    epsilon: float

    def selectors(self) -> list[Selector]:
        """Return the cells of both methods."""
        return [Selector(methods=self.methods)]

    def assess(self, means: Means) -> Finding | None:
        """Compare the share of settings with a noticeable difference below and above epsilon."""
        up_to: list[bool] = []
        above: list[bool] = []
        first, second = self.methods
        for cell, mean in means.values.items():
            other = means.get(cell.dataset, second, cell.epsilon)
            if cell.method == first and other is not None:
                found = up_to if cell.epsilon <= self.epsilon else above
                found.append(abs(mean - other) > means.margins[cell.metric].width(cell))
        if not (up_to and above):
            return None
        share_up_to, share_above = statistics.fmean(up_to), statistics.fmean(above)
        return Finding(
            share_above < 0.5 and share_up_to > share_above,
            {"share_up_to": share_up_to, "share_above": share_above},
            f"noticeable in {sum(up_to)} of {len(up_to)} settings up to ε={level(self.epsilon)}, "
            f"in {sum(above)} of {len(above)} above",
        )


class AheadInMost(CellClaim):
    """Without privacy, `method` is ahead of `rival` on over half of the datasets."""

    method: str
    rival: str

    def selectors(self) -> list[Selector]:
        """Return the non-private cells of both methods."""
        return [Selector(methods=[self.method, self.rival], epsilons=[math.inf])]

    def assess(self, means: Means) -> Finding | None:
        """Count the datasets on which the method is ahead without privacy."""
        if not (leads := means.leads((self.method, math.inf), (self.rival, math.inf))):
            return None
        ahead = [dataset for dataset, lead in leads.items() if lead > 0]
        names = f" ({', '.join(ahead)})" if ahead else ""
        return Finding(
            2 * len(ahead) > len(leads),
            {"ahead": len(ahead), "datasets": len(leads)},
            f"ahead on {len(ahead)} of {len(leads)} datasets{names}",
        )


class Within(CellClaim):
    """Measured means of a method at these epsilons lie between two numbers; one may be left out.

    The document prints no cells for them. `table` is the layout whose protocol the results follow.
    """

    table: str
    dataset: str
    methods: Names
    epsilons: Numbers
    metric: str
    low: Decimal | None = None
    high: Decimal | None = None

    @model_validator(mode="after")
    def _check(self) -> Within:
        if self.low is None and self.high is None:
            raise ValueError("give `low`, `high`, or both")
        return self

    def unprinted(self, paper: str) -> list[PublishedCell]:
        """Return one cell for each method and epsilon, with a bound in place of a printed mean."""
        bound = float(next(b for b in (self.low, self.high) if b is not None))
        return [
            PublishedCell(paper, self.table, self.dataset, name, level, self.metric, bound, None)
            for name in self.methods
            for level in self.epsilons
        ]

    @property
    def range(self) -> str:
        """The stated range in words."""
        if self.high is None:
            return f"at least {self.low}"
        return f"at most {self.high}" if self.low is None else f"{self.low} to {self.high}"

    def assess(self, means: Means) -> Finding | None:
        """Hold each mean against the range, up to rounding and sampling error.

        The document's own means have a sampling error as well, which it does not print. It is taken
        to be as large as ours: two standard errors of a difference are allowed.
        """
        if not means.values:
            return None
        low = -math.inf if self.low is None else float(self.low)
        high = math.inf if self.high is None else float(self.high)
        below = 0.0 if self.low is None else half_unit(self.low)
        above = 0.0 if self.high is None else half_unit(self.high)
        found, outside, inside, allowed, is_rounded = {}, [], [], {}, False
        for cell, mean in means.values.items():
            name = f"{cell.method} ε={level(cell.epsilon)}"
            width = _ALLOWED * means.errors.get(cell, 0.0)
            found[name] = mean
            least, most = low - below - width, high + above + width
            allowed[name] = (_finite(least), _finite(most))
            is_exact = low - _FLOAT_ERROR <= mean <= high + _FLOAT_ERROR
            rounding = low - below <= mean <= high + above
            noise = low - width - _FLOAT_ERROR <= mean <= high + width + _FLOAT_ERROR
            if not least <= mean <= most:
                outside.append(name)
            elif not is_exact:
                is_rounded |= rounding or not noise
                if not rounding:
                    inside.append(f"{name} ({mean:.4g}; counts {_span(allowed[name])})")
        text = " to ".join(dict.fromkeys(f"{of(found.values()):.4g}" for of in (min, max)))
        text += f"; within noise: {', '.join(inside)}" if inside else ""
        text += f"; outside: {', '.join(outside)}" if outside else ""
        holds = not outside
        is_noisy = holds and bool(inside)
        return Finding(holds, found, text, is_rounded and holds, is_noisy, allowed)


class BestInMost(CellClaim):
    """In most settings (a dataset and an epsilon) the best measured mean is that of one of these.

    The document prints no cells for them. `table` is the layout whose protocol the results follow.
    """

    table: str
    datasets: Names
    methods: Names
    rivals: Names
    epsilons: Numbers
    metric: str

    def unprinted(self, paper: str) -> list[PublishedCell]:
        """Return one cell for each dataset, method and epsilon, with 0 for a printed mean."""
        return [
            PublishedCell(paper, self.table, dataset, name, level, self.metric, 0.0, None)
            for dataset in self.datasets
            for name in (*self.methods, *self.rivals)
            for level in self.epsilons
        ]

    @property
    def range(self) -> str:
        """What is stated, in words."""
        return f"in most of {len(self.datasets) * len(self.epsilons)} settings"

    def assess(self, means: Means) -> Finding | None:
        """Count the settings that are won; more than half must be."""
        won, total, text = means.wins(self.methods, self.rivals)
        figures = {"won": won, "settings": total}
        return Finding(2 * won > total, figures, text) if total else None


def _plain(value: Any) -> Any:
    """Return a value of a YAML file that was read as text: numbers as numbers, in lists as well."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if not isinstance(value, str):
        return value
    for read in (int, float):
        try:
            return read(value)
        except ValueError:
            continue
    return _WORDS.get(value, value)


Values = Annotated[dict[str, JsonValue], BeforeValidator(_plain)]


class FactClaim(Claim):
    """A claim that no result decides: about datasets, settings, noise, or other printed numbers."""

    @abstractmethod
    def stated(self) -> dict[str, str]:
        """Return the stated numbers by what they are, as printed."""

    @abstractmethod
    def establish(self) -> Finding:
        """Return what is the case, and whether it is as stated.

        Raises DpreproError if it names a quantity, config, method, parameter or cell that does not
        exist.
        """


def _finding(wrong: list[str], figures: Mapping[str, float], text: str) -> Finding:
    other = f"; not as stated: {', '.join(wrong)}" if wrong else ""
    return Finding(not wrong, figures, text + other)


class Figure(Strict):
    """A number as printed, and the quantity that it should be.

    `quantity` is a key of `dprepro.judge.quantities.QUANTITIES`, and `of` has its arguments.
    `within` is how far the number may be off; by default half a unit of its last digit.
    """

    quantity: str
    of: Values = Field(default_factory=dict)
    value: Decimal
    relation: Literal["is", "at most"] = "is"
    within: Decimal | None = None

    @model_validator(mode="after")
    def _check(self) -> Figure:
        if self.relation == "at most" and self.within is not None:
            raise ValueError("`within` is for the relation `is`; leave it out")
        return self

    def holds(self, found: float) -> bool:
        """Whether `found` agrees with the printed number."""
        if self.relation == "at most":
            return found <= float(self.value)
        width = half_unit(self.value) if self.within is None else float(self.within)
        off = abs(found - float(self.value))
        return off <= width or math.isclose(off, width, rel_tol=1e-9)


class Computed(FactClaim):
    """Numbers that can be computed from cards, configs, or formulas."""

    figures: dict[str, Figure] = Field(min_length=1)

    def stated(self) -> dict[str, str]:
        """Return the numbers, with "at most" where they are bounds."""
        return {
            title: f"at most {figure.value}" if figure.relation == "at most" else str(figure.value)
            for title, figure in self.figures.items()
        }

    def establish(self) -> Finding:
        """Compute each number; all must hold."""
        found = {title: compute(fig.quantity, fig.of) for title, fig in self.figures.items()}
        wrong = [title for title, figure in self.figures.items() if not figure.holds(found[title])]
        words = (f"{t} {v:.0f}" if v == round(v) else f"{t} {v:.4g}" for t, v in found.items())
        return _finding(wrong, found, ", ".join(words))


class SettingsOf(Strict):
    """Values as stated, of a method's parameters or of a config.

    Without the name of a `config`, the defaults of the method count. `method` is a label in the
    config, or a method's name; `epsilon` a level whose values are meant. `params` are parameters of
    the method, `grid` lists of values that the config tries, by parameter, and `keys` keys of the
    config itself, such as ``splits``.
    """

    config: str | None = None
    method: str | None = None
    epsilon: float | None = None
    params: Values = Field(default_factory=dict)
    grid: Values = Field(default_factory=dict)
    keys: Values = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> SettingsOf:
        if (self.params or self.grid) and self.method is None:
            raise ValueError("`params` and `grid` need a `method`")
        if (self.grid or self.keys) and self.config is None:
            raise ValueError("`grid` and `keys` need a `config`")
        if not (self.params or self.grid or self.keys):
            raise ValueError("give `params`, `grid` or `keys`")
        return self

    @property
    def values(self) -> dict[str, JsonValue]:
        """All stated values."""
        return {**self.keys, **self.grid, **self.params}

    def ours(self) -> dict[str, Any]:
        """Return our value of everything that it names; DpreproError where there is none."""
        found: dict[str, Any] = {}
        if self.config is not None:
            keys = dict(builtin_config(self.config))
            found |= _select(keys, self.keys, f"config {self.config}")
        if self.method is not None:
            owner = f"{self.method} in {self.config or 'its defaults'}"
            if self.grid and self.config is not None:
                found |= _select(entry_of(self.config, self.method).grid, self.grid, owner)
            params = found_params(self.config, self.method, self.epsilon)
            found |= _select(params, self.params, owner)
        return found


def _select(ours: Mapping[str, Any], stated: Mapping[str, Any], owner: str) -> dict[str, Any]:
    for name in stated:
        if name not in ours:
            raise DpreproError(
                f"{owner} has no {name!r}{nearest(name, list(ours)) or '.'} "
                f"Allowed: {', '.join(ours)}"
            )
    return {name: ours[name] for name in stated}


def same(stated: Any, ours: Any) -> bool:
    """Whether two values agree; lists entry by entry, numbers up to the last binary digits."""
    if isinstance(stated, list):
        is_list = isinstance(ours, (list, tuple)) and len(stated) == len(ours)
        return is_list and all(map(same, stated, ours))
    if isinstance(stated, (int, float)) and isinstance(ours, (int, float)):
        return math.isclose(stated, ours, rel_tol=1e-9)
    return bool(stated == ours)


class Settings(FactClaim):
    """Hyper-parameters and protocols: what the document states is what our configs have."""

    settings: list[SettingsOf] = Field(min_length=1)

    def stated(self) -> dict[str, str]:
        """Return the values by name; a name that comes again has the method or config before it."""
        found: dict[str, str] = {}
        for entry in self.settings:
            for name, value in entry.values.items():
                title = f"{entry.method or entry.config} {name}" if name in found else name
                found[title] = str(value)
        return found

    def establish(self) -> Finding:
        """Look each value up in our config, or in the method's defaults; all must be the same."""
        wrong, total = [], 0
        for entry in self.settings:
            found = entry.ours()
            total += len(entry.values)
            for name, value in entry.values.items():
                if not same(value, found[name]):
                    owner = entry.method or entry.config
                    wrong.append(f"{owner} has {name} {_text(found[name])}")
        agree = total - len(wrong)
        text = f"{agree} of {total} values as stated"
        return _finding(wrong, {"agree": agree, "values": total}, text)


def _text(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, (list, tuple)) else str(value)


class Repeated(Strict):
    """A number printed a second time, and the cell that it repeats."""

    dataset: str
    method: str
    epsilon: float = math.inf
    value: Decimal
    std: Decimal | None = None

    def agrees_with(self, cell: PublishedCell) -> bool:
        """Whether it is the number of the cell, as far as its digits go."""
        means = abs(cell.mean - float(self.value)) <= half_unit(self.value) * (1 + 1e-9)
        return means and (self.std is None or float(self.std) == cell.std)


class Repeats(FactClaim):
    """Numbers that are printed in another table as well, up to the rounding of the shorter one."""

    paper: str
    table: str
    metric: str
    rows: list[Repeated] = Field(min_length=1)

    def stated(self) -> dict[str, str]:
        """Return how many numbers are repeated."""
        return {"repeated": str(len(self.rows))}

    def establish(self) -> Finding:
        """Compare each number with the cell that it repeats."""
        cells = [c for c in load_published(self.paper) if c.table == self.table]
        wrong = [
            f"{row.dataset}, {row.method}, ε={row.epsilon:g}: {cell.in_print}"
            for row in self.rows
            if not row.agrees_with(cell := self._cell_of(row, cells))
        ]
        agree, total = len(self.rows) - len(wrong), len(self.rows)
        text = f"{agree} of {total} agree with Table {self.table} of {self.paper}"
        return _finding(wrong, {"agree": agree, "repeated": total}, text)

    def _cell_of(self, row: Repeated, cells: list[PublishedCell]) -> PublishedCell:
        wanted = (row.dataset, row.method, row.epsilon, self.metric)
        for cell in cells:
            if (cell.dataset, cell.method, cell.epsilon, cell.metric) == wanted:
                return cell
        raise DpreproError(
            f"claim {self.name}: {self.paper} prints no {self.metric} of {row.method} on "
            f"{row.dataset} at epsilon {row.epsilon:g} in table {self.table}; correct the entry"
        )
