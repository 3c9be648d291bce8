"""What `dprepro.compare` returns: the comparison of two methods or more, as tidy data frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from dprepro.judge.comparing import MethodComparison, PairedTest, Row
from dprepro.judge.ranking import MethodRankings, OnDataset, RankedPair, Ranking, Scores, ranks_on
from dprepro.report.comparing import pair_notes, together
from dprepro.report.frames import COUNT, FLAG, NUMBER, TEXT, frame_of
from dprepro.report.ranking import cell_notes, group_letters, ranking_sentence
from dprepro.runtime.terminal import counted

if TYPE_CHECKING:
    import pandas as pd

_AT = {"epsilon": NUMBER, "levels": TEXT}
_WHERE = {**_AT, "dataset": TEXT, "metric": TEXT, "higher_is_better": FLAG}
_COUNTS = {"better": TEXT, "won": COUNT, "tied": COUNT, "lost": COUNT}
PAIR_COLUMNS = {
    **_WHERE, "first": TEXT, "second": TEXT, "mean_first": NUMBER, "mean_second": NUMBER,
    "rank_first": NUMBER, "rank_second": NUMBER, "difference": NUMBER, "sd": NUMBER,
    "ci_low": NUMBER, "ci_high": NUMBER, "difference_in_margins": NUMBER, "p": NUMBER,
    "p_holm": NUMBER, "splits": COUNT, **_COUNTS,
}  # fmt: skip
"""Columns of `Comparison.pairs` and their dtypes, in order."""
OVER_COLUMNS = {
    **_AT, "first": TEXT, "second": TEXT, "difference_in_margins": NUMBER, "ci_low": NUMBER,
    "ci_high": NUMBER, "p": NUMBER, "p_holm": NUMBER, "p_sign": NUMBER, "datasets": COUNT,
    **_COUNTS,
}  # fmt: skip
"""Columns of `Comparison.over_datasets` and their dtypes, in order."""
RANK_COLUMNS = {**_AT, "method": TEXT, "rank": NUMBER, "groups": TEXT, "datasets": COUNT}
"""Columns of `Comparison.ranks` and their dtypes, in order."""
FRIEDMAN_COLUMNS = {
    **_AT, "chi_squared": NUMBER, "freedom": COUNT, "p_chi_squared": NUMBER, "f": NUMBER,
    "freedom_below": COUNT, "p": NUMBER, "methods": COUNT, "datasets": COUNT,
}  # fmt: skip
"""Columns of `Comparison.friedman` and their dtypes, in order."""
WIN_COLUMNS = {**_AT, "method": TEXT, "other": TEXT, "share": NUMBER}
"""Columns of `Comparison.wins` and their dtypes, in order."""
SPLIT_COLUMNS = {**_WHERE, "method": TEXT, "split": COUNT, "value": NUMBER}
"""Columns of `Comparison.splits` and their dtypes, in order."""

_MOST_ROWS = 20
_MOST_NAMED = 5
# What a page shows of the pairs; the frames have all.
_SHOWN = [
    "epsilon", "levels", "dataset", "first", "second", "difference", "difference_in_margins",
    "ci_low", "ci_high", "p_holm", "better", "won", "tied", "lost",
]  # fmt: skip

_Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, repr=False)
class Comparison:
    """What `dprepro.compare` found. The numbers are those of `dprepro compare`.

    In all frames ``epsilon`` is infinite without privacy, and NaN in a ranking over several levels,
    whose scores are means over them; ``levels`` names them, with spaces between. ``better`` is the
    method that is shown to be better, or None. ``won``, ``tied`` and ``lost`` count splits, or
    datasets, on which the first is better, equal and worse. Numbers are float64 and NaN where they
    cannot be had, counts are Int64.

    Attributes
    ----------
    found
        What the frames are made of.
    """

    found: MethodComparison | MethodRankings

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods: of two as given, of more those of the main ranking, best first."""
        if isinstance(self.found, MethodRankings):
            return self.found.main.methods
        return self.found.first, self.found.second

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """A row for each level and method: its mean rank over datasets, 1 for the best.

        On a single dataset ranks are over its splits. Methods that share a letter of ``groups`` are
        not shown to differ, which is not equal; it is None where no pair is tested.
        """
        return frame_of(self._rows(_ranks, _ranks_of_two), RANK_COLUMNS)

    @cached_property
    def friedman(self) -> pd.DataFrame:
        """A row for each level with five datasets or more: whether all mean ranks are equal.

        ``f`` is Iman and Davenport's statistic and ``p`` its p-value. Two methods have no row.
        """
        return frame_of(self._rows(_friedman, lambda _: ()), FRIEDMAN_COLUMNS)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """A row for each pair of methods on each dataset at each level.

        ``difference`` is the mean over splits of first minus second in units of the metric, with
        its standard deviation and 95 % interval; ``p_holm`` is adjusted for all pairs of methods on
        the dataset, or of two methods for all rows. ``difference_in_margins`` is how much better
        the first is, in differences that a reader would just not mind.
        """
        return frame_of(self._rows(_pairs, _pairs_of_two), PAIR_COLUMNS)

    @cached_property
    def over_datasets(self) -> pd.DataFrame:
        """A row for each pair at each level with several datasets.

        ``p`` is of the signed-rank test, ``p_holm`` adjusted for all pairs of methods. Of three
        methods or more, ``difference_in_margins`` is the Hodges-Lehmann median over datasets, with
        the 95 % interval that the test leaves, not adjusted. Of two there is the sign test,
        ``p_sign``, instead.
        """
        return frame_of(self._rows(_over, _over_of_two), OVER_COLUMNS)

    @cached_property
    def wins(self) -> pd.DataFrame:
        """A row for each ordered pair: on which share of the datasets, or splits, it is better.

        Ties count half.
        """
        return frame_of(self._rows(_wins, _wins_of_two), WIN_COLUMNS)

    @cached_property
    def splits(self) -> pd.DataFrame:
        """A row for each method and split, with its value in units of the metric."""
        return frame_of(self._rows(_splits, _splits_of_two), SPLIT_COLUMNS)

    @property
    def summary(self) -> tuple[str, ...]:
        """What datasets say together, in a sentence for each level."""
        if isinstance(self.found, MethodRankings):
            return tuple(map(ranking_sentence, self.found.rankings))
        return tuple(together(self.found))

    @property
    def left_out(self) -> tuple[str, ...]:
        """What has no results of all methods, in words."""
        if isinstance(self.found, MethodRankings):
            of_each = (line for ranking in self.found.rankings for line in ranking.left_out)
            return tuple(dict.fromkeys([*of_each, *self.found.left_out]))
        return self.found.left_out

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the results: tuned, unverified, made-up or private ones."""
        if isinstance(self.found, MethodRankings):
            return tuple(cell_notes(self.found))
        return tuple(pair_notes(self.found))

    def _rows(self, of_many: Any, of_two: Any) -> _Rows:
        if isinstance(self.found, MethodRankings):
            return [row for ranking in self.found.rankings for row in of_many(ranking)]
        return list(of_two(self.found))

    def __repr__(self) -> str:
        """Return the methods and how many differ, in a line."""
        if isinstance(self.found, MethodRankings):
            return f"Comparison({_in_short(self.found.main)})"
        rows, (first, second) = self.found.rows, self.methods
        ours, theirs = (sum(r.better == _label(r, side) for r in rows) for side in (0, 1))
        return (
            f"Comparison({first} minus {second}: {first} shown to be better in {ours} of "
            f"{counted(len(rows), 'comparison')}, {second} in {theirs})"
        )

    def _repr_html_(self) -> str:
        """Return the line of the repr, ranks by level, pairs, and what to know of them."""
        said = repr(self).removeprefix("Comparison(").removesuffix(")")
        ranks = self.ranks.pivot(index="method", columns="levels", values="rank")
        ranks = ranks[list(dict.fromkeys(self.ranks["levels"]))].rename(columns=_heading)
        ranks.columns.name = ranks.index.name = None
        has_many = isinstance(self.found, MethodRankings) and len(self.over_datasets)
        pairs = self.over_datasets if has_many else self.pairs
        shown = pairs[[name for name in _SHOWN if name in pairs.columns]].drop(columns="epsilon")
        left = [f"Left out: {'; '.join(self.left_out)}."] * bool(self.left_out)
        lines = "".join(f"<p>{escape(t)}</p>" for t in (*self.summary, *self.notes, *left))
        tables = [
            ranks.sort_values(ranks.columns[-1]).to_html(float_format="{:.2f}".format),
            shown.to_html(
                index=False, na_rep="", max_rows=_MOST_ROWS, float_format="{:.3g}".format
            ),
        ]
        return f"<p>{escape(said)}</p>{tables[0]}{tables[1]}{lines}"


def _heading(levels: str) -> str:
    return "no privacy" if levels == "inf" else f"ε {levels}"


def _in_short(main: Ranking) -> str:
    named = [f"{name} {rank:.2f}" for name, rank in main.mean_ranks.items()]
    more = ["..."] * (len(named) > _MOST_NAMED)
    shown = sum(bool(pair.better) for pair in main.pairs)
    tested = f"{shown} of {counted(len(main.pairs), 'pair')} shown to differ"
    return (
        f"{main.title}; mean ranks: {', '.join([*named[:_MOST_NAMED], *more])}; "
        f"{tested if main.is_tested else 'no pair is tested'}"
    )


def _at(epsilons: Sequence[float]) -> dict[str, Any]:
    one = epsilons[0] if len(epsilons) == 1 else math.nan
    return {"epsilon": one, "levels": " ".join(f"{epsilon:g}" for epsilon in epsilons)}


def _where(scores: Scores) -> dict[str, Any]:
    metric = scores.metric
    named = {"metric": metric.name, "higher_is_better": metric.higher_is_better}
    return {**_at(scores.epsilons), "dataset": scores.dataset, **named}


def _tested(test: PairedTest) -> dict[str, Any]:
    low, high = (None, None) if test.p is None else (test.low, test.high)
    return {"difference": test.mean, "sd": test.sd, "ci_low": low, "ci_high": high, "p": test.p}


# --- three methods or more ------------------------------------------------------------------------


def _ranks(ranking: Ranking) -> Iterator[dict[str, Any]]:
    letters = group_letters(ranking) if ranking.groups is not None else {}
    for method, rank in ranking.mean_ranks.items():
        groups = letters[method].replace(" ", "") if letters else None
        yield {
            **_at(ranking.epsilons), "method": method, "rank": rank, "groups": groups,
            "datasets": len(ranking.scores),
        }  # fmt: skip


def _friedman(ranking: Ranking) -> Iterator[dict[str, Any]]:
    if ranking.friedman is not None:
        number = {"methods": len(ranking.methods), "datasets": len(ranking.scores)}
        yield {**_at(ranking.epsilons), **asdict(ranking.friedman), **number}


def _pairs(ranking: Ranking) -> Iterator[dict[str, Any]]:
    ranks = [ranks_on(ranking, scores) for scores in ranking.scores]
    for pair in ranking.pairs:
        for rank, on in zip(ranks, pair.on, strict=True):
            yield {
                **_where(on.scores),
                **_on(pair, on),
                "rank_first": rank[pair.first],
                "rank_second": rank[pair.second],
            }


def _on(pair: RankedPair, on: OnDataset) -> dict[str, Any]:
    better = pair.first if on.advantage > 0 else pair.second
    return {
        "first": pair.first,
        "second": pair.second,
        "mean_first": on.scores.mean(pair.first),
        "mean_second": on.scores.mean(pair.second),
        **_tested(on.test),
        "difference_in_margins": on.advantage,
        "p_holm": on.p_holm,
        "splits": len(on.scores.splits),
        "better": better if on.is_different else None,
        "won": on.won,
        "tied": on.tied,
        "lost": on.lost,
    }


def _over(ranking: Ranking) -> Iterator[dict[str, Any]]:
    for pair in ranking.pairs if len(ranking.scores) > 1 else ():
        won, tied, lost = pair.counts
        yield {
            **_at(ranking.epsilons),
            "first": pair.first,
            "second": pair.second,
            "difference_in_margins": pair.typical,
            "ci_low": pair.low,
            "ci_high": pair.high,
            "p": pair.p,
            "p_holm": pair.p_holm,
            "datasets": len(pair.on),
            "better": pair.better or None,
            "won": won,
            "tied": tied,
            "lost": lost,
        }


def _wins(ranking: Ranking) -> Iterator[dict[str, Any]]:
    for (method, other), share in ranking.win_rates.items():
        yield {**_at(ranking.epsilons), "method": method, "other": other, "share": share}


def _splits(ranking: Ranking) -> Iterator[dict[str, Any]]:
    for scores in ranking.scores:
        for method in ranking.methods:
            for split, value in zip(scores.splits, scores.values[method], strict=True):
                yield {**_where(scores), "method": method, "split": split, "value": value}


# --- two methods ----------------------------------------------------------------------------------


def _label(row: Row, side: int) -> str:
    return (row.pair.first, row.pair.second)[side].task.label


def _place(row: Row) -> dict[str, Any]:
    metric = row.pair.metric
    named = {"metric": metric.name, "higher_is_better": metric.higher_is_better}
    return {**_at([row.pair.epsilon]), "dataset": row.pair.dataset, **named}


def _pairs_of_two(found: MethodComparison) -> Iterator[dict[str, Any]]:
    for row in found.rows:
        mean_first, mean_second = row.means
        yield {
            **_place(row),
            "first": _label(row, 0),
            "second": _label(row, 1),
            "mean_first": mean_first,
            "mean_second": mean_second,
            "rank_first": 1.5 - 0.5 * _sign(row.advantage),
            "rank_second": 1.5 + 0.5 * _sign(row.advantage),
            **_tested(row.test),
            "difference_in_margins": row.advantage,
            "p_holm": row.p_holm,
            "splits": len(row.pair.splits),
            "better": row.better or None,
            "won": row.won,
            "tied": row.tied,
            "lost": row.lost,
        }


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _over_of_two(found: MethodComparison) -> Iterator[dict[str, Any]]:
    for across in found.across:
        yield {
            **_at([across.epsilon]),
            "first": found.first,
            "second": found.second,
            "p": across.p_wilcoxon,
            "p_sign": across.p_sign,
            "datasets": across.datasets,
            "won": across.won,
            "tied": across.tied,
            "lost": across.lost,
        }


def _shares(found: MethodComparison) -> Iterator[tuple[float, int, float]]:
    """Yield each level, its number of datasets, and on which share the first is better.

    The share is of the datasets, or of the splits of a single one.
    """
    over = {across.epsilon: across for across in found.across}
    for epsilon in dict.fromkeys(row.pair.epsilon for row in found.rows):
        rows = [row for row in found.rows if row.pair.epsilon == epsilon]
        if epsilon in over or len(rows) == 1:
            one = over.get(epsilon, rows[0])
            share = (one.won + one.tied / 2) / (one.won + one.tied + one.lost)
            yield epsilon, over[epsilon].datasets if epsilon in over else 1, share


def _ranks_of_two(found: MethodComparison) -> Iterator[dict[str, Any]]:
    for epsilon, datasets, share in _shares(found):
        ranks = sorted([(2 - share, found.first), (1 + share, found.second)])
        for rank, method in ranks:
            yield {**_at([epsilon]), "method": method, "rank": rank, "datasets": datasets}


def _wins_of_two(found: MethodComparison) -> Iterator[dict[str, Any]]:
    for epsilon, _, share in _shares(found):
        sides = [(found.first, found.second, share), (found.second, found.first, 1 - share)]
        for method, other, won in sides:
            yield {**_at([epsilon]), "method": method, "other": other, "share": won}


def _splits_of_two(found: MethodComparison) -> Iterator[dict[str, Any]]:
    for row in found.rows:
        for side in (0, 1):
            for split, values in zip(row.pair.splits, row.pair.values, strict=True):
                named = {"method": _label(row, side), "split": split, "value": values[side]}
                yield {**_place(row), **named}
