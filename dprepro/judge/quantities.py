"""Quantities that documents state and that can be computed: from cards, configs, or formulas.

A claim of the kind `Computed` names one of `QUANTITIES` and its arguments. Modules that load heavy
libraries are imported when a quantity needs them.
"""

from __future__ import annotations

import csv
import inspect
import json
import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dprepro.data.card import builtin_card
from dprepro.papers.folders import FOLDER
from dprepro.papers.published_cell import load_published
from dprepro.runtime.errors import DpreproError, nearest
from dprepro.runtime.files import builtin

if TYPE_CHECKING:
    from dprepro.experiment.config import ExperimentConfig, MethodEntry

_TUNED = FOLDER / "lazybb-2022" / "hyperparameters.csv"
_TUNED_NAMES = {"kappa": "density", "lambda": "learning_rate", "tau": "rounds"}


def compute(quantity: str, arguments: Mapping[str, Any]) -> float:
    """Return the quantity of this name for these arguments.

    Raises DpreproError if there is no such quantity, or the arguments are not those that it takes.
    """
    if quantity not in QUANTITIES:
        raise DpreproError(
            f"unknown quantity {quantity!r}{nearest(quantity, list(QUANTITIES)) or '.'} "
            f"Allowed: {', '.join(QUANTITIES)}"
        )
    function = QUANTITIES[quantity]
    taken = inspect.signature(function)
    try:
        bound = taken.bind(**arguments)
    except TypeError as error:
        raise DpreproError(
            f"quantity {quantity!r}: {error}. It takes: {', '.join(taken.parameters)}"
        ) from error
    return float(function(*bound.args, **bound.kwargs))


def found_params(
    config: str | None, method: str, epsilon: float | None = None
) -> Mapping[str, Any]:
    """Return the parameters of a method: its defaults, and what a config has in their place.

    `method` is a label in the config, or without one a method's name. The config's parameters of
    the level `epsilon` count, if any. Raises DpreproError if there is no such config or method.
    """
    from dprepro.methods.registry import get

    if config is None:
        return get(method).defaults
    entry = entry_of(config, method)
    own = entry.by_epsilon.get(epsilon, {}) if epsilon is not None else {}
    return ChainMap(own, entry.params, get(entry.method).defaults)  # type: ignore[arg-type]


@cache  # built-in configs do not change, and a table of settings asks for each row
def builtin_config(name: str) -> ExperimentConfig:
    """Return a built-in config; a file of its name in the working folder does not count."""
    from dprepro.experiment.config import load_config

    path = builtin("configs") / f"{name}.yaml"
    if not path.is_file():
        names = [found.stem for found in path.parent.glob("*.yaml")]
        raise DpreproError(
            f"unknown config {name!r}{nearest(name, names) or '.'} Only built-in configs count"
        )
    return load_config(path)


def entry_of(config: str, method: str) -> MethodEntry:
    """Return the entry of a method, by its label in a built-in config."""
    entries = {entry.label: entry for entry in builtin_config(config).methods}
    if method not in entries:
        raise DpreproError(
            f"config {config!r} has no method {method!r}{nearest(method, list(entries)) or '.'} "
            f"Allowed: {', '.join(entries)}"
        )
    return entries[method]


def rows(dataset: str) -> float:
    """Return the number of rows by the card, which `dprepro data` verifies."""
    return _expected(dataset, builtin_card(dataset).expect.rows, "rows")


def donors_test_rows(dataset: str) -> float:
    """Return the number of rows of the donors' test set by the card."""
    test = builtin_card(dataset).test
    return _expected(dataset, None if test is None else test.expect.rows, "test rows")


def features(dataset: str) -> float:
    """Return the number of features by the card."""
    return _expected(dataset, builtin_card(dataset).expect.columns, "columns")


def most_features(datasets: Sequence[str]) -> float:
    """Return the largest number of features of some datasets."""
    return max(features(dataset) for dataset in datasets)


def positive_percent(dataset: str) -> float:
    """Return the share of positive rows by the card, in percent."""
    positives = _expected(dataset, builtin_card(dataset).expect.positives, "positives")
    return 100 * positives / rows(dataset)


def boolean_columns(dataset: str) -> float:
    """Return the number of Boolean columns that the public domain of a card gives."""
    from dprepro.data.domain import BINS

    features = builtin_card(dataset).features
    if features is None:
        raise DpreproError(f"dataset {dataset!r} has no public domain; name one that has")
    lists = (feature.categories for feature in features.values())
    return sum(BINS if categories is None else len(categories) for categories in lists)


def total(parts: Sequence[float]) -> float:
    """Return the sum of the absolute values of `parts`."""
    return sum(abs(part) for part in parts)


def combinations(outcomes: int) -> float:
    """Return how many combinations some binary outcomes have: 2^outcomes."""
    return 2.0**outcomes


def mean_leaf_share(method: str) -> float:
    """Return the share of the rows in a leaf, on average over the leaves of a tree: 1 / leaves."""
    return 1 / found_params(None, method)["max_leaves"]


def clip_of_mean(config: str, method: str) -> float:
    """Return the clip norm of a row's part of a batch's mean: `clip_norm` / `batch_size`.

    The authors of DP-LLM clip this part; our `clip_norm` is that of the row's own gradient.
    """
    params = found_params(config, method)
    return float(params["clip_norm"] / params["batch_size"])


def sampled_epsilon(
    accountant: str,
    dataset: str,
    noise_multiplier: float,
    batch_size: int,
    epochs: int,
    delta: float,
) -> float:
    """Return what gradient descent with Gaussian noise spends, by an accountant of DP-LLM.

    Each of T = epochs ceil(n / L) steps takes a row with probability q = L / n.
    """
    from dprepro.privacy.subsampling import ACCOUNTANTS

    count = rows(dataset)
    steps = epochs * math.ceil(count / batch_size)
    return ACCOUNTANTS[accountant](noise_multiplier, batch_size / count, steps, delta)


def renyi_epsilon_of_trees(
    config: str, method: str, epsilon: float, sigma: float, delta: float
) -> float:
    """Return what S-BDT spends with printed noise, by Renyi accounting, as its authors count.

    The settings are those of a config at `epsilon`. A row's part has the norm 1 in units of which
    all noise has the standard deviation sigma / sqrt 2. The share of the first score is added.
    """
    from dprepro.privacy.subsampling import renyi_epsilon

    params = found_params(config, method, epsilon)
    trees = renyi_epsilon(sigma / math.sqrt(2), params["sampling"], params["n_trees"], delta)
    return trees + params["initial_share"] * epsilon


def spent_epsilon(method: str, dataset: str, epsilon: float, delta: float) -> float:
    """Return what DP-EBM with its default settings spends, exactly.

    K features are binned and updated in E epochs: mu^2 = K / sigma_binning^2 + E K /
    sigma_boosting^2 (Theorem 4 of Nori et al. 2021), converted by Theorem 5.
    """
    from dprepro.privacy.composition import calibrate_two_phases
    from dprepro.privacy.gdp import epsilon_of

    params, count = found_params(None, method), int(features(dataset))
    steps = count * params["n_epochs"]
    noise = calibrate_two_phases(
        params["composition"], epsilon, delta, binning_queries=count, boosting_queries=steps,
        binning_share=params["binning_share"],
    )  # fmt: skip
    mu = math.hypot(math.sqrt(count) / noise.binning, math.sqrt(steps) / noise.boosting)
    return epsilon_of(mu, delta)


def vote_epsilon(
    dataset: str, epsilon: float, density: float, rounds: int, splits: int = 0
) -> float:
    """Return what LazyBB spends at the noise rate of its Theorem 7, or 10 with `splits`.

    eta = epsilon kappa n / (4 rounds), or / (16 rounds splits). A choice costs 2 eta times the
    robust sensitivity: zeta for an error, 4 zeta for a gain, zeta = 1 / (kappa n). The labels of a
    tree get as much as its splits.
    """
    zeta = 1 / (density * rows(dataset))
    if not splits:
        return rounds * 2 * (epsilon / (4 * rounds * zeta)) * zeta
    choices = splits * 2 * (epsilon / (16 * rounds * splits * zeta)) * 4 * zeta
    return rounds * 2 * choices


def gain_move(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> float:
    """Return how far the gain of a split moves, in units of the statistical distance.

    `before` and `after` have the weights of both labels in each part of a leaf. The gain is
    g(a, b) - g(a0, b0) - g(a1, b1) with g(a, b) = 4 a b / (a + b), the Gini criterion times weight.
    The distance is half of the sum of absolute differences.
    """
    distance = 0.5 * sum(
        abs(new - old)
        for part, changed in zip(before, after, strict=True)
        for old, new in zip(part, changed, strict=True)
    )
    return abs(_gain(after) - _gain(before)) / distance


def rounds_of_theorem_5(density: float, advantage: float) -> float:
    """Return the rounds of Theorem 5 of the LazyBB paper: 16 log(1 / kappa) / gamma^2."""
    return 16 * math.log(1 / density) / advantage**2


def weak_percent(advantage: float) -> float:
    """Return the accuracy of a weak learner over its distribution, 1/2 + gamma, in percent."""
    return 100 * (0.5 + advantage)


def network_parameters(
    image: int, kernel: int, channels: Sequence[int], hidden: int, classes: int
) -> float:
    """Return the parameters of a convolutional network for square images of one channel.

    Each convolution with square kernels, without padding, is followed by max-pooling over 2 x 2;
    then come a layer of hidden units and one of classes. All have offsets.
    """
    count, width, depth = 0, image, 1
    for channel in channels:
        count += (depth * kernel**2 + 1) * channel
        width, depth = (width - kernel + 1) // 2, channel
    inputs = depth * width**2
    return count + (inputs + 1) * hidden + (hidden + 1) * classes


def wrong_percentages(paper: str, table: int, columns: int) -> float:
    """Return in how many rows of a table the percentage is not the count over all columns.

    The percentages are printed with two digits, some of them cut off, so they may be 0.01 too low.
    """
    cells = [cell for cell in load_published(paper) if cell.table == str(table)]
    counts = {c.epsilon: c.mean for c in cells if c.metric == "n_features"}
    shares = [c for c in cells if c.metric == "pct_features"]
    if not shares:
        raise DpreproError(f"{paper} prints no percentages of features in table {table}")
    return sum(abs(100 * counts[c.epsilon] / columns - c.mean) > 0.0100001 for c in shares)


def other_settings(dataset: str, config: str, method: str) -> float:
    """Return at how many epsilons a config differs from the printed hyper-parameters of LazyBB."""
    with _TUNED.open(newline="", encoding="utf-8") as lines:
        printed = [row for row in csv.DictReader(lines) if row["dataset"] == dataset]
    if not printed:
        raise DpreproError(f"no hyper-parameters are printed for dataset {dataset!r}")
    count = 0
    for row in printed:
        ours = found_params(config, method, float(row["epsilon"]))
        same = (math.isclose(ours[name], float(row[key])) for key, name in _TUNED_NAMES.items())
        count += not all(same)
    return count


def roughness(model: str, feature: str) -> float:
    """Return the total variation over the range of a function in a model of results/models.

    It is 1 for a function that only rises or only falls. A bin of missing values is left out.
    """
    path = builtin("results") / "models" / f"{model}.json"
    try:
        parts = json.loads(path.read_text(encoding="utf-8"))["features"]
    except FileNotFoundError:
        raise DpreproError(f"there is no model {model!r} in {path.parent}") from None
    (part,) = [part for part in parts if part["name"] == feature]
    values = part["values"][: part["missing_bin"]]
    steps = sum(abs(after - before) for before, after in pairwise(values))
    return float(steps / (max(values) - min(values)))


def rougher_functions(rough: str, smooth: str, features: Sequence[str]) -> float:
    """Return of how many features the function in `smooth` is no smoother than in `rough`."""
    return sum(roughness(smooth, name) >= roughness(rough, name) for name in features)


def _gain(parts: Sequence[Sequence[float]]) -> float:
    whole = [sum(weights) for weights in zip(*parts, strict=True)]
    mixed, *pure = [4 * a * b / (a + b) for a, b in (whole, *parts)]
    return mixed - sum(pure)


def _expected(dataset: str, count: int | None, what: str) -> int:
    if count is None:
        raise DpreproError(f"the card of dataset {dataset!r} does not state its {what}; add them")
    return count


QUANTITIES: dict[str, Callable[..., float]] = {
    function.__name__: function
    for function in (
        rows, donors_test_rows, features, most_features, positive_percent, boolean_columns, total,
        combinations, mean_leaf_share, clip_of_mean, sampled_epsilon, renyi_epsilon_of_trees,
        spent_epsilon, vote_epsilon, gain_move, rounds_of_theorem_5, weak_percent,
        network_parameters, wrong_percentages, other_settings, rougher_functions,
    )
}  # fmt: skip
"""What a claim can compute, by name."""
