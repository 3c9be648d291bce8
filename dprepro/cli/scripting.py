"""From Python what `dprepro run`, `table`, `check` and `compare` do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dprepro.runtime.errors import DpreproError
from dprepro.runtime.files import builtin

if TYPE_CHECKING:
    import pandas as pd

    from dprepro.experiment.run import Summary
    from dprepro.report.compared import Comparison
    from dprepro.report.frames import Verdicts


def run(
    config: str | Path,
    *,
    results: str | Path = "results",
    splits: int | None = None,
    methods: Sequence[str] = (),
    epsilons: Sequence[float] = (),
    jobs: int | None = None,
    data_dir: str | Path | None = None,
) -> Summary:
    """Run the tasks of one config that its journal does not hold yet, as `dprepro run` does.

    A notebook shows a progress bar, a terminal the means as well, and a log a line now and then. An
    interrupt (Ctrl-C, or a notebook's stop) ends the workers; the same call goes on with the rest.
    Workers do not import the script that calls this, so it needs no ``if __name__`` guard.

    Parameters
    ----------
    config
        Name of a built-in config, or the path of one.
    results
        Folder of the journals.
    splits, methods, epsilons
        Run only the first `splits` splits, only these methods, only these privacy levels.
    jobs
        Number of worker processes; None means one for each core.
    data_dir
        Folder of datasets; None means ``$DPREPRO_DATA``, then the cache.

    Returns
    -------
    Summary
        `table` and `verdicts` take it. ``failed`` counts the tasks that failed;
        ``tally.mean((label, epsilon))`` is the mean of a cell over its splits.

    Raises
    ------
    DpreproError
        If the config, the dataset or the journal cannot be used.
    ValueError
        If a parameter is of another type; the message names it.
    KeyboardInterrupt
        On an interrupt, after the workers have ended. What had finished is in the journal.
    """
    from dprepro.experiment.config import load_config
    from dprepro.experiment.display import display_for
    from dprepro.experiment.notebook import NotebookDisplay, in_notebook
    from dprepro.experiment.run import Options
    from dprepro.experiment.run import run as run_config
    from dprepro.runtime.arguments import Integer, OrNone, name_or_path, numbers, path, texts
    from dprepro.runtime.terminal import error_console

    options = Options(
        jobs=OrNone(Integer(1))("jobs", jobs),
        splits=OrNone(Integer(1))("splits", splits),
        methods=texts("methods", methods),
        epsilons=numbers("epsilons", epsilons),
        results=path("results", results),
        data_dir=OrNone(path)("data_dir", data_dir),
    )
    experiment = load_config(name_or_path("config", config))
    if in_notebook():
        return run_config(experiment, options, NotebookDisplay(experiment))
    return run_config(experiment, options, display_for(experiment, error_console()))


def table(
    config: str | Summary | None = None,
    *,
    results: str | Path | Summary = "results",
    metric: str | None = None,
    dataset: str | Sequence[str] | None = None,
    paper: str | Path | None = None,
    shipped: bool = False,
) -> pd.DataFrame:
    """Return results: a row for each dataset, method, epsilon and metric.

    The text columns are ``dataset``, ``method``, ``metric``, ``config`` (several with ``+``
    between), and, where a document prints the number, ``paper``, ``table`` and ``verdict`` (missing
    elsewhere). Of dtype float64 are ``epsilon`` (infinite without privacy), ``mean`` and ``sd``
    (over splits; NaN for a single one), ``delta``, ``true_epsilon`` (the spent epsilon),
    ``published_mean`` and ``published_sd``; of Int64 ``splits``, ``planned``, ``failed`` and
    ``skipped``; of bool ``unverified`` and ``private`` (scores of private rows, which epsilon does
    not cover). A result that two documents print has a row for each.

    Parameters
    ----------
    config
        Name of a config whose journal is in the folder, or what `run` returned; None for all.
    results
        Folder of the journals; ``"shipped"`` for the runs that come with dprepro. Or what `run`
        returned.
    metric
        Name of a metric, or ``"all"``; default that of each config.
    dataset
        Only this dataset, or these.
    paper
        Only results that answer to this document, named as in `verdicts`, and compared with it
        alone; default all results and documents.
    shipped
        Add the runs that come with dprepro, whose methods are marked ``(shipped run)``.

    Raises
    ------
    DpreproError
        If the folder has no journal of that config, no result of that dataset or metric, or there
        is no such document.
    ValueError
        If a parameter is of another type; the message names it.

    Examples
    --------
    >>> found = table("adult", results="shipped", metric="auc")
    >>> found.loc[found["method"] == "dp-ebm-gdp-2021", "epsilon"].tolist()
    [0.5, 1.0, 2.0, 4.0, 8.0]
    """
    from dprepro.cli.options import read
    from dprepro.judge.cell_matching import of_document
    from dprepro.judge.verdicts import judge_cells
    from dprepro.papers.document import select_documents
    from dprepro.report.frames import result_frame
    from dprepro.results.margins import find_metric, margins
    from dprepro.runtime.arguments import OrNone, flag, text, texts

    folder, names = _meant(config, results)
    wanted = OrNone(text)("metric", metric)
    data = [dataset] if isinstance(dataset, str) else OrNone(texts)("dataset", dataset) or ()
    documents = select_documents(_paper(paper))
    found = read(folder, names, flag("shipped", shipped))
    found = found.of_datasets(data) if data else found
    found = found if paper is None else of_document(found, documents[0])
    every, named = wanted == "all", wanted not in (None, "all")
    metrics = [find_metric(str(wanted)).name] if named else []
    verdicts = [v for document in documents for v in judge_cells(document, found, margins())]
    frame = result_frame(found, verdicts, metrics, every)
    if frame.empty:
        raise DpreproError(
            f"no result in {folder}{'' if paper is None else f' of {documents[0].paper}'}"
            f"{f' has the metric {wanted!r}' if named else ''}: `dprepro run` "
            "makes some, and metric='all' returns every metric there is"
        )
    return frame


def verdicts(results: str | Path | Summary, paper: str | Path) -> Verdicts:
    """Return a verdict on each number that a document prints, as `dprepro check` does.

    Parameters
    ----------
    results
        Folder of the journals; ``"shipped"`` for the runs that come with dprepro. Or what `run`
        returned, for the whole folder that it wrote to.
    paper
        Name of a document, of which the beginning is enough (``"dp-ebm"``), or what else `dprepro
        check --paper` takes.

    Returns
    -------
    Verdicts
        ``frame`` has a row for each printed number, ``counts`` their number by verdict, and
        ``passed`` is whether nothing that differs is left without a reviewed reason.

    Raises
    ------
    DpreproError
        If there is no journal or no such document, or if no result is of anything that it prints.
    ValueError
        If a parameter is of another type; the message names it.

    Examples
    --------
    >>> found = verdicts("shipped", "dp-ebm")
    >>> found.passed, found.counts["not run"]
    (True, 0)
    """
    from dprepro.cli.options import read, read_held_out
    from dprepro.judge.check import check_documents
    from dprepro.judge.deviations import load_reviewed
    from dprepro.papers.document import select_documents
    from dprepro.report.frames import Verdicts
    from dprepro.results.margins import margins

    folder, _ = _meant(None, results)
    if paper is None:
        raise ValueError("paper must be the name of a document, got None")
    documents = select_documents(_paper(paper))
    found = read(folder)
    held_out = read_held_out(folder, found, documents)
    explained = load_reviewed()
    report = check_documents(
        documents, found, explained.deviations, margins(), None, explained.claims, held_out=held_out
    )
    if not report.measured:
        raise DpreproError(
            f"the journals in {folder} hold no result of anything that {documents[0].paper} "
            "prints: `dprepro run adult` makes some of Table 2 of dp-ebm-2021"
        )
    return Verdicts(report)


def _meant(config: object, results: object) -> tuple[Path, list[str]]:
    """Return the folder of the journals and the configs that are meant; none for all."""
    from dprepro.cli.options import SHIPPED
    from dprepro.experiment.run import Summary
    from dprepro.runtime.arguments import path, text

    named = [found.name for found in (config, results) if isinstance(found, Summary)]
    if isinstance(config, Summary):
        config, results = None, config
    if config is not None:
        named = [text("config", config)]
    if isinstance(results, Summary):
        return results.results, named
    folder = path("results", results)
    is_shipped = folder == SHIPPED and not folder.exists()
    return builtin("results") if is_shipped else folder, named


def _paper(paper: object) -> str | None:
    from dprepro.runtime.arguments import OrNone, name_or_path

    found = OrNone(name_or_path)("paper", paper)
    return None if found is None else str(found)


def compare(
    *methods: str,
    results: str | Path | Summary = "results",
    configs: Sequence[str] = (),
    datasets: Sequence[str] = (),
    metric: str | None = None,
    epsilons: Sequence[float] = (),
) -> Comparison:
    """Compare methods on the same splits, as `dprepro compare` does: two of them, or more ranked.

    Parameters
    ----------
    *methods
        Two or more: labels of configs, names of methods, or as tables show them. None for all
        methods of the journals, or of `configs`.
    results
        As of `table`.
    configs
        Only the journals of these configs; default those that hold the methods together.
    datasets, epsilons
        Only these; default all that there are.
    metric
        Name of the metric; default that of the config.

    Returns
    -------
    Comparison
        ``pairs`` has differences with 95 % intervals and adjusted p-values, on each dataset,
        ``over_datasets`` what datasets say together; ``ranks``, ``friedman`` and ``wins`` are of
        all methods, and ``splits`` has the values of each split.

    Raises
    ------
    DpreproError
        If a method has no results, the methods have no splits in common, or a single one, or
        several results are meant.
    ValueError
        If a parameter is of another type; the message names it.

    Examples
    --------
    >>> found = compare("dp-ebm-plus", "dp-ebm-gdp", results="shipped", epsilons=[1])
    >>> found.pairs.loc[found.pairs["dataset"] == "adult", "better"].tolist()
    ['dp-ebm-plus']
    """
    from dprepro.cli.compare import compared
    from dprepro.report.compared import Comparison
    from dprepro.runtime.arguments import OrNone, numbers, text, texts

    names = texts("methods", methods)
    if len(names) == 1:
        raise DpreproError(
            f"one method, {names[0]!r}, to compare: name two or more, or none for all methods of "
            "the journals"
        )
    chosen, data = texts("configs", configs), texts("datasets", datasets)
    metric, levels = OrNone(text)("metric", metric), numbers("epsilons", epsilons)
    folder, of_summary = _meant(None, results)
    found = compared(folder, names, list(chosen) or of_summary, data, metric, levels)
    return Comparison(found)
