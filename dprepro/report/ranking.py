"""Write rankings of many methods: for terminals and papers, and as rows of plain values."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from dprepro.judge.ranking import (
    FEWEST_DATASETS,
    MethodRankings,
    OnDataset,
    RankedPair,
    Ranking,
    Scores,
    ranks_on,
)
from dprepro.report.comparing import ABOUT, decimals_of, finite, notes_of, shown_p
from dprepro.report.written_tables import written_tables
from dprepro.results.margins import level
from dprepro.runtime.terminal import (
    Renderable,
    Stacked,
    StackedColumn,
    below,
    counted,
    stacked_table,
)
from dprepro.runtime.text import csv_table, json_text

_NONE_SHOWN = "-"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# More would fill screens; csv and json have them all.
_MOST_PAIRS = 45
_MOST_COLUMNS = 15
# Names are set on several lines only if they are longer.
_LEAST_NAME = 15


def write_rankings(found: MethodRankings, format: str, per_split: bool) -> Renderable:
    """Return rankings in a format of `dprepro compare`; all but ``table`` are text."""
    if format == "json":
        return json_rankings(found, per_split)
    if format == "csv":
        return csv_table(_split_rows(found) if per_split else ranking_rows(found))
    notes = [ranking_sentence(found.main), *ranking_notes(found)]
    if format != "table":
        return written_tables(_tables(found), notes, format)
    return below(
        *_tables(found),
        Text(ranking_sentence(found.main)),
        *(Text(line, style="dim") for line in ranking_notes(found)),
    )


def _tables(found: MethodRankings) -> list[Stacked]:
    main = found.main
    tables = [_ranks(found)]
    if len(main.pairs) <= _MOST_PAIRS:
        tables.append(_pairs(main) if len(main.scores) > 1 else _pairs_on_one(main))
    if len(main.methods) <= _MOST_COLUMNS:
        tables.append(_wins(main))
    return tables


def _ranks(found: MethodRankings) -> Stacked:
    """Return the table of mean ranks, and below them the number of datasets and Friedman's p."""
    main = found.main
    names = list(dict.fromkeys([*main.methods, *(n for r in found.rankings for n in r.methods)]))
    several = any(len(ranking.scores) > 1 for ranking in found.rankings)
    columns = [_of_names("method", [*names, *(["datasets", "p (Friedman)"] * several)])]
    for ranking in found.rankings:
        shown = [f"{ranking.mean_ranks[n]:.2f}" if n in ranking.mean_ranks else "" for n in names]
        if several:
            test = ranking.friedman
            shown += [str(len(ranking.scores)), shown_p(test.p if test else None)]
        columns.append(StackedColumn(_heading(ranking), shown, "right"))
    if main.groups is not None:
        letters = group_letters(main)
        cells = [(Text(letters.get(n, "")),) for n in [*names, *([""] * 2 * several)]]
        columns.append(StackedColumn("groups", cells))
    ends = [len(names) - 1] if several else ()
    return stacked_table("Mean ranks", columns, 1, ends, is_tight=True)


def _of_names(title: str, names: Sequence[str]) -> StackedColumn:
    return StackedColumn(title, names, least=_LEAST_NAME)


def _heading(ranking: Ranking) -> str:
    if len(ranking.epsilons) > 1:
        return "all ε"
    (epsilon,) = ranking.epsilons
    return f"ε {level(epsilon)}" if math.isfinite(epsilon) else level(epsilon)


def group_letters(ranking: Ranking) -> Mapping[str, str]:
    """Return the letters of each method's groups, each in a place of its own."""
    groups = ranking.groups or ()
    return {
        name: "".join(
            letter if name in group else " "
            for letter, group in zip(_LETTERS, groups, strict=False)
        ).rstrip()
        for name in ranking.methods
    }


def _pairs(ranking: Ranking) -> Stacked:
    """Return the table of all pairs over several datasets."""
    pairs = ranking.pairs
    columns = [
        _of_names("better ranked", [pair.first for pair in pairs]),
        _of_names("other", [pair.second for pair in pairs]),
        StackedColumn("margins", [f"{pair.typical:+.1f}" for pair in pairs], "right"),
    ]
    if pairs[0].low is not None:
        columns.append(StackedColumn("95 % interval", [_interval(p) for p in pairs], "right"))
    if ranking.is_tested:
        columns.append(StackedColumn("p", [shown_p(pair.p_holm) for pair in pairs], "right"))
    columns += [
        StackedColumn("datasets", ["/".join(map(str, pair.counts)) for pair in pairs], "right"),
        StackedColumn("shown", ["/".join(map(str, pair.shown)) for pair in pairs], "right"),
    ]
    return stacked_table("Pairs over datasets", columns, 2, is_tight=True)


def _interval(pair: RankedPair) -> tuple[Text, ...]:
    return Text(f"{pair.low:+.1f} to"), Text(f"{pair.high:+.1f}")


def _pairs_on_one(ranking: Ranking) -> Stacked:
    """Return the table of all pairs on a single dataset, in units of the metric."""
    pairs = ranking.pairs
    on = [pair.on[0] for pair in pairs]
    metric = ranking.scores[0].metric
    better = "higher" if metric.higher_is_better else "lower"
    columns = [
        _of_names("first", [pair.first for pair in pairs]),
        _of_names("second", [pair.second for pair in pairs]),
        StackedColumn("difference", [_signed(o, o.test.mean) for o in on], "right"),
        StackedColumn("95 % interval", [_interval_on(o) for o in on], "right"),
        StackedColumn("p", [shown_p(o.p_holm) for o in on], "right"),
        StackedColumn("better", [pair.better or _NONE_SHOWN for pair in pairs]),
        StackedColumn("splits", [f"{o.won}/{o.tied}/{o.lost}" for o in on], "right"),
    ]
    title = f"{metric.title} ({better} is better): first minus second"
    return stacked_table(title, columns, 2, is_tight=True)


def _signed(on: OnDataset, value: float) -> str:
    return f"{value:+,.{decimals_of(on.test)}f}"


def _interval_on(on: OnDataset) -> tuple[Text, ...]:
    if on.test.p is None:
        return (Text(_NONE_SHOWN),)
    return Text(f"{_signed(on, on.test.low)} to"), Text(_signed(on, on.test.high))


def _wins(ranking: Ranking) -> Stacked:
    names = ranking.methods
    columns = [_of_names("method", [f"{k} {name}" for k, name in enumerate(names, 1)])]
    for place, other in enumerate(names, 1):
        rates = [
            _NONE_SHOWN if name == other else f"{100 * ranking.win_rates[name, other]:.0f}"
            for name in names
        ]
        columns.append(StackedColumn(str(place), rates, "right"))
    return stacked_table("Wins in per cent", columns, 1, is_tight=True)


def ranking_sentence(ranking: Ranking) -> str:
    """Return what a ranking is over, and what its tests say."""
    where = f"{ranking.at[0].upper()}{ranking.at[1:]}"
    if len(ranking.scores) > 1:
        return f"{where}: {_named(ranking.scores)}. {_tested(ranking)}"
    (one,) = ranking.scores
    return (
        f"{where}: one dataset, {one.dataset} ({one.metric.title}). Ranks are over its "
        f"{counted(len(one.splits), 'split')}, and say nothing about other datasets."
    )


def _named(scores: Sequence[Scores]) -> str:
    by_metric: dict[str, list[str]] = defaultdict(list)
    for one in scores:
        by_metric[one.metric.title].append(one.dataset)
    named = (f"{title} on {', '.join(there)}" for title, there in by_metric.items())
    return f"{counted(len(scores), 'dataset')}, {'; '.join(named)}"


def _tested(ranking: Ranking) -> str:
    number, pairs = len(ranking.scores), len(ranking.pairs)
    if ranking.friedman is None:
        return (
            f"Fewer than {FEWEST_DATASETS} datasets have no power to show a difference, so nothing "
            "is tested over datasets. That does not make the methods equal."
        )
    test = ranking.friedman
    f = "inf" if math.isinf(test.f) else f"{test.f:.3g}"
    said = (
        f"Friedman test of equal ranks: chi-squared {test.chi_squared:.3g}, "
        f"{test.freedom} degrees of freedom; Iman and Davenport: F({test.freedom}, "
        f"{test.freedom_below}) {f}, p {test.p:.2g}."
    )
    if ranking.is_tested:
        shown = sum(bool(pair.better) for pair in ranking.pairs)
        return f"{said} Of {counted(pairs, 'pair')}, {shown} shown to differ."
    least = 2.0 ** (1 - number)
    return (
        f"{said} No pair is tested: over {number} datasets no signed-rank test has p below "
        f"{least:.2g}, for {counted(pairs, 'pair')} {min(1.0, pairs * least):.2g}. It would take "
        f"{ranking.datasets_needed} datasets. That does not make the methods equal."
    )


def ranking_notes(found: MethodRankings) -> Iterator[str]:
    """Yield what the columns mean, what the tests are about, and what was left out."""
    main = found.main
    if len(found.rankings) > 1:
        yield (
            f"Pairs, wins and what is left out are those at {main.at}; --epsilon chooses one "
            "level, and json has all."
        )
    if len(main.epsilons) > 1:
        yield (
            "Over epsilons a block is a dataset, with the mean over its levels: a dataset at "
            "several levels is not several datasets."
        )
    if len(main.scores) > 1:
        yield from _notes_over_datasets(main)
    else:
        yield from _notes_on_one(main)
    if main.groups is not None:
        yield "groups: methods that share a letter are not shown to differ, which is not equal."
    elif main.is_tested:
        yield "groups: there are more than letters."
    if len(main.pairs) > _MOST_PAIRS:
        yield f"{counted(len(main.pairs), 'pair')}: --format csv or json lists them."
    yield (
        f"Wins: of the {'splits' if len(main.scores) == 1 else 'datasets'}, on which share the row "
        "is better than the column; ties count half. Mean ranks: 1 is best."
    )
    yield from cell_notes(found)
    if left_out := [*main.left_out, *found.left_out]:
        yield f"Left out: {'; '.join(left_out)}."


def _notes_over_datasets(main: Ranking) -> Iterator[str]:
    interval = ", and the interval that the signed-rank test leaves, not adjusted for pairs"
    metrics = {one.metric.title: one.metric.margin for one in main.scores}
    widths = ", ".join(f"{title} {margin}" for title, margin in metrics.items())
    yield (
        f"margins: how much better the first is, in margins of the metric ({widths}): the "
        "Hodges-Lehmann median over datasets"
        f"{interval if main.pairs[0].low is not None else ''}. datasets: on which the first is "
        "better / equal / worse in the mean. shown: on which the first / the other is shown to be "
        "better, by the corrected resampled t test, adjusted for all pairs on a dataset (Holm)."
    )
    if main.is_tested:
        yield (
            "p: of the signed-rank test over datasets, adjusted for "
            f"{counted(len(main.pairs), 'pair')} (Holm), which does not depend on the other "
            "methods' ranks (Benavoli et al. 2016)."
        )
    if main.friedman is not None:
        yield "Tests are not adjusted for the privacy levels."


def _notes_on_one(main: Ranking) -> Iterator[str]:
    yield (
        f"p: of no difference, adjusted for {counted(len(main.pairs), 'pair')} (Holm). better: "
        "where p < 0.05. splits: on which the first is better / equal / worse."
    )
    yield ABOUT[main.scores[0].evaluation]


def cell_notes(found: MethodRankings) -> Iterator[str]:
    """Yield what a reader must know of the results ranked, with the datasets it is about."""
    datasets: dict[str, dict[str, None]] = defaultdict(dict)
    domains: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for scores in (one for ranking in found.rankings for one in ranking.scores):
        for cell in scores.cells:
            domains[scores.dataset][cell.task.domain][cell.task.label] = None
            for note in notes_of(cell):
                datasets[note][scores.dataset] = None
    for dataset, by_domain in domains.items():
        if len(by_domain) > 1:
            sides = (f"{', '.join(labels)} the {domain} domain" for domain, labels in
                     sorted(by_domain.items()))  # fmt: skip
            datasets["of different domains: " + "; ".join(sides)][dataset] = None
    yield from (f"{', '.join(there)}: {note}." for note, there in datasets.items())


def ranking_rows(found: MethodRankings) -> list[dict[str, Any]]:
    """Return one flat row for each pair on each dataset, and one for each pair over datasets.

    Rows over datasets have no `dataset`, `difference` in margins of the metrics and better first,
    ranks that are means, and counts of datasets. Those on a dataset have `difference` as first
    minus second in units of the metric, p-values adjusted for the pairs there, and counts of
    splits. Levels are separated by spaces.
    """
    return [row for ranking in found.rankings for row in _rows_of(ranking)]


def _rows_of(ranking: Ranking) -> Iterator[dict[str, Any]]:
    ranks = [ranks_on(ranking, one) for one in ranking.scores]
    for pair in ranking.pairs:
        for rank, on in zip(ranks, pair.on, strict=True):
            test = on.test
            is_first = on.advantage > 0
            yield {
                **_place(ranking, on.scores),
                "first": pair.first,
                "second": pair.second,
                "rank_first": rank[pair.first],
                "rank_second": rank[pair.second],
                "number": len(on.scores.splits),
                "difference": test.mean,
                "ci_low": None if test.p is None else test.low,
                "ci_high": None if test.p is None else test.high,
                "difference_in_margins": on.advantage,
                "p": test.p,
                "p_holm": on.p_holm,
                "better": (pair.first if is_first else pair.second) if on.is_different else None,
                "won": on.won,
                "tied": on.tied,
                "lost": on.lost,
            }
        if len(ranking.scores) > 1:
            yield _row_over(ranking, pair)


def _place(ranking: Ranking, scores: Scores | None) -> dict[str, Any]:
    epsilons = scores.epsilons if scores else ranking.epsilons
    return {
        "epsilon": " ".join(f"{epsilon:g}" for epsilon in epsilons),
        "dataset": scores.dataset if scores else None,
        "metric": scores.metric.name if scores else None,
    }


def _row_over(ranking: Ranking, pair: RankedPair) -> dict[str, Any]:
    won, tied, lost = pair.counts
    return {
        **_place(ranking, None),
        "first": pair.first,
        "second": pair.second,
        "rank_first": ranking.mean_ranks[pair.first],
        "rank_second": ranking.mean_ranks[pair.second],
        "number": len(pair.on),
        "difference": None,
        "ci_low": pair.low,
        "ci_high": pair.high,
        "difference_in_margins": pair.typical,
        "p": pair.p,
        "p_holm": pair.p_holm,
        "better": pair.better or None,
        "won": won,
        "tied": tied,
        "lost": lost,
    }


def _split_rows(found: MethodRankings) -> list[dict[str, Any]]:
    """Return one flat row for each method and split, of all rankings."""
    return [
        _place(ranking, scores) | {"method": method, "split": split, "value": value}
        for ranking in found.rankings
        for scores in ranking.scores
        for method in ranking.methods
        for split, value in zip(scores.splits, scores.values[method], strict=True)
    ]


def json_rankings(found: MethodRankings, per_split: bool = False) -> str:
    """Return all of the rankings as JSON; with `per_split` the values of each split, too."""
    document: dict[str, Any] = {
        "rankings": [_flat(ranking) for ranking in found.rankings],
        "left_out": list(found.left_out),
        "notes": [ranking_sentence(found.main), *ranking_notes(found)],
    }
    if per_split:
        document["splits"] = _split_rows(found)
    return json_text(document)


def _flat(ranking: Ranking) -> dict[str, Any]:
    test = ranking.friedman
    return {
        "epsilons": [finite(epsilon) for epsilon in ranking.epsilons],
        "mean_ranks": dict(ranking.mean_ranks),
        "datasets": [
            {
                "dataset": one.dataset,
                "metric": one.metric.name,
                "higher_is_better": one.metric.higher_is_better,
                "evaluation": one.evaluation,
                "epsilons": [finite(epsilon) for epsilon in one.epsilons],
                "splits": len(one.splits),
                "means": {name: one.mean(name) for name in ranking.methods},
                "ranks": ranks_on(ranking, one),
            }
            for one in ranking.scores
        ],
        "friedman": None
        if test is None
        else {
            "chi_squared": test.chi_squared,
            "freedom": test.freedom,
            "p_chi_squared": test.p_chi_squared,
            "f": finite(test.f),
            "freedom_below": test.freedom_below,
            "p": test.p,
        },
        "pairs": list(_rows_of(ranking)),
        "groups": None if ranking.groups is None else [list(group) for group in ranking.groups],
        "win_rates": {
            name: {o: ranking.win_rates[name, o] for o in ranking.methods if o != name}
            for name in ranking.methods
        },
        "left_out": list(ranking.left_out),
    }
