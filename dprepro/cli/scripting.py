"""From Python what `dprepro run`, `table` and `compare` do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from dprepro.experiment.run import Summary


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
        ``failed`` counts the tasks that failed; ``tally.mean((label, epsilon))`` is the mean of a
        cell over its splits.

    Raises
    ------
    DpreproError
        If the config, the dataset or the journal cannot be used.
    ValueError
        If a parameter is of another type; the message names it.
    """
    from dprepro.experiment.config import load_config
    from dprepro.experiment.display import display_for
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
    return run_config(experiment, options, display_for(experiment, error_console()))


def table(config: str, *, results: str | Path = "results", compare: bool = False) -> pd.DataFrame:
    """Return the results of one config: a row for each method and privacy level.

    The columns are those of `dprepro table --format csv`, among them ``method``, ``epsilon``
    (missing for methods without privacy), ``metric``, ``mean`` and ``sd`` (the standard deviation
    over splits).

    Parameters
    ----------
    config
        Name of a config whose journal is in the folder.
    results
        Folder of the journals.
    compare
        Add the published numbers and the verdicts.

    Raises
    ------
    DpreproError
        If the folder has no journal of that config, or the journal holds no result yet.
    ValueError
        If a parameter is of another type; the message names it.
    """
    import pandas as pd

    from dprepro.papers.document import select_documents
    from dprepro.report.layout import build_tables
    from dprepro.report.rows import table_rows
    from dprepro.results.folder import read_results
    from dprepro.runtime.arguments import flag, path, text

    compare = flag("compare", compare)
    found = read_results(path("results", results), [text("config", config)])
    tables = build_tables(found, select_documents(None), compare=compare)
    return pd.DataFrame(table_rows(tables, compare))


def compare(
    first: str,
    second: str,
    *,
    results: str | Path = "results",
    configs: Sequence[str] = (),
    datasets: Sequence[str] = (),
    metric: str | None = None,
    epsilons: Sequence[float] = (),
    per_split: bool = False,
) -> pd.DataFrame:
    """Compare two methods on the same splits: a row for each dataset and privacy level.

    The columns are those of `dprepro compare --format csv`, among them ``difference`` (the mean of
    first minus second over the splits, in units of the metric), ``sd``, ``ci_low`` and ``ci_high``
    (the 95 % interval), ``p``, ``p_holm`` (adjusted for all rows) and ``better`` (a label, or
    missing).

    Parameters
    ----------
    first, second
        Labels of configs, or names of methods.
    results
        Folder of the journals.
    configs
        Only the journals of these configs; default those that hold both methods.
    datasets, epsilons
        Only these; default all that both methods have.
    metric
        Name of the metric; default that of the config.
    per_split
        Return a row for each split instead, with the values of both methods.

    Raises
    ------
    DpreproError
        If the two have no splits in common, or a single one, or several results are meant.
    ValueError
        If a parameter is of another type; the message names it.
    """
    import pandas as pd

    from dprepro.judge.comparing import compare_methods
    from dprepro.report.comparing import comparison_rows, split_rows
    from dprepro.results.folder import holding_both, read_results, tasks_held
    from dprepro.runtime.arguments import OrNone, flag, numbers, path, text, texts

    folder, datasets = path("results", results), texts("datasets", datasets)
    first, second = text("first", first), text("second", second)
    metric, epsilons = OrNone(text)("metric", metric), numbers("epsilons", epsilons)
    per_split = flag("per_split", per_split)
    names = texts("configs", configs) or holding_both(tasks_held(folder), first, second, datasets)
    held = read_results(folder, names)
    held = held.of_datasets(datasets) if datasets else held
    found = compare_methods(held, first, second, metric, epsilons)
    return pd.DataFrame(split_rows(found) if per_split else comparison_rows(found))
