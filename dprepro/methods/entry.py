"""The entry of a method in the registry: what it is called, what it promises, how it is made."""

from __future__ import annotations

import importlib
import inspect
import math
import os
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dprepro.data.domain import Domain, NumericFeature, TaskKind
from dprepro.estimators.contract import Estimator, check_parameters, is_estimator
from dprepro.privacy.budget import Division, PrivacyBudget, check_unit, row_budget
from dprepro.privacy.guarantee_status import Noise
from dprepro.privacy.sensitivity import Adjacency
from dprepro.runtime.errors import DEBUG_VARIABLE, DpreproError
from dprepro.runtime.kernels import kernel_modules

_REFUSALS = (ValueError, TypeError)
"""What an estimator raises that refuses its parameters."""
_LONGEST_MESSAGE = 500
"""Characters of a message of the user's code that are shown."""

REPEATS = 1e-6
"""What the metrics of most methods may differ by, relative, when a task is run again.

The same task gives the same bits on the same processor with the same libraries. On others, sums are
taken in another order.
"""
REPEATS_PRODUCTS = 1e-5
"""That of least squares: linear algebra without a solver to stop early. Tables 2 and 3, run again
in a fresh folder, moved by up to 3e-8."""
REPEATS_EPOCHS = 1e-3
"""That of float32 matrix products over many epochs. Tables 2 and 3, run again in a fresh folder,
moved by up to 1.8e-4 (llm) and 3e-6 (dp-llm)."""
REPEATS_SOLVER = 1e-3
"""That of a solver that stops at a tolerance, as logistic regression's: between two kernels of
OpenBLAS on one machine its accuracy moved by 7e-4."""
REPEATS_FLOATS = 1e-3
"""That of sums of float32, many at a time: how many depends on the processor. EBM's metrics on
Adult moved by up to 2.9e-4 between processors with and without AVX-512."""
REPEATS_NEVER = math.inf
"""That of a solver that stops long before it converges: how linear algebra rounds decides where.
With four kernels of OpenBLAS one split of Adult had AUROCs of 0.63, 0.64, 0.66 and 0.80. Such tasks
are run again, and have to finish; their metrics are not compared."""


class Guarantee(str, Enum):
    """What a method promises."""

    NONE = "none"
    PURE = "epsilon"
    APPROXIMATE = "(epsilon, delta)"


@dataclass(frozen=True)
class Setting:
    """What a method's `build` gets for one task.

    ``epsilon`` is ``inf`` and ``delta`` 0 for non-private methods; ``seed`` None draws from the
    operating system. Epsilon and delta are those of one row, see `Method.row_budget`.
    """

    task: TaskKind
    epsilon: float
    delta: float
    domain: Domain
    seed: int | None


class Build(Protocol):
    """Make an unfitted scikit-learn estimator; `params` are the method's own parameters."""

    def __call__(self, setting: Setting, **params: Any) -> Estimator:
        """Return the unfitted estimator."""
        ...


@dataclass(frozen=True)
class Method:
    """A method that configs can name.

    Attributes
    ----------
    name, title
        The name used in configs and journals; the title used as a table heading.
    tasks
        The kinds of task it supports; on others its tasks are skipped with a reason.
    guarantee
        What it promises if its assumptions hold.
    adjacency
        The neighbouring relation of the promise, a member of `Adjacency` or its text; None for
        non-private methods.
    assumes
        What it takes as public, and what it reads that epsilon does not cover, in words.
    reference
        Paper and section.
    build
        See `Build`.
    takes_epsilon
        Whether it has a privacy budget, and so runs over the epsilon grid. A method may take a
        budget and still promise nothing (`guarantee` none).
    encoding
        The representation of X its estimator wants: a key of `dprepro.data.encode.ENCODINGS`.
    version
        Raised whenever its results change, so that a table never mixes two versions.
    defaults
        The method's parameters and their default values, for validation and help.
    requires
        An importable module name of an optional extra, or None.
    noise
        How it draws its noise; None where it draws none, or does not say. Tests compare it with the
        ledgers of fits.
    keeps_ledger
        Whether a fitted estimator is to have its `dprepro.privacy.ledger.Ledger` as ``ledger_``.
        This is for `dprepro methods`, which fits nothing; elsewhere the fitted estimator decides,
        see `dprepro.privacy.guarantee_status`.
    takes_tables
        Whether its estimator's `fit` reads a table in chunks (`dprepro fit --table`); see
        `dprepro.estimators.inputs.read_training_rows`.
    divides
        How its budget is divided where a unit of privacy owns several rows; see
        `dprepro.privacy.budget.Division`. Tests compare it with the ledgers of fits.
    repeats_within
        Largest difference of a metric, relative, that the same task may show when it is run again:
        `REPEATS`, or a larger one where linear algebra decides.
    cite
        Keys of `dprepro.cli.cite`: what `dprepro cite` prints for it.
    gist
        What sets it apart from methods whose names begin as its own does, in about five words;
        default its title. For a user who names what they share; see `registry.which`.
    form
        How a person can read its fitted model: ``"functions"`` (a sum of functions of one or two
        features), ``"coefficients"``, ``"tree"``, ``"rules"``, or ``"local maps"``; empty where
        there is only a forest, a network or a vote. For `dprepro leaderboard`.
    file
        The user's file that it is from, set when that is loaded; None for the methods here.
    code
        The SHA-256 of the user's source files, set likewise; see `dprepro.methods.own.code_of`.
    """

    name: str
    title: str
    tasks: frozenset[TaskKind]
    guarantee: Guarantee
    adjacency: Adjacency | None
    assumes: tuple[str, ...]
    reference: str
    build: Build
    takes_epsilon: bool
    encoding: str = "frame"
    version: int = 1
    defaults: Mapping[str, Any] = field(default_factory=dict)
    requires: str | None = None
    noise: Noise | None = None
    keeps_ledger: bool = False
    takes_tables: bool = False
    divides: Division = Division.GROUP
    repeats_within: float = REPEATS
    cite: tuple[str, ...] = ()
    gist: str = ""
    form: str = ""
    file: Path | None = field(default=None, repr=False, compare=False)
    code: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.adjacency is not None:
            object.__setattr__(self, "adjacency", Adjacency(self.adjacency))  # of its text

    @property
    def is_unverified(self) -> bool:
        """Whether it claims a guarantee, or takes a budget, and is not said to keep a ledger."""
        claims = self.takes_epsilon or self.guarantee is not Guarantee.NONE
        return claims and not self.keeps_ledger

    def effective_epsilons(self, epsilons: Sequence[float]) -> list[float]:
        """Return the epsilons to run: the grid, or ``[inf]`` for a method without a budget."""
        return list(epsilons) if self.takes_epsilon else [math.inf]

    def row_budget(self, budget: PrivacyBudget, unit: str, rows_per_unit: int) -> PrivacyBudget:
        """Return the (epsilon, delta) of one row, given that of a unit that owns several.

        Raises
        ------
        ValueError
            If the method promises nothing for several rows, or nothing is left for one.
        """
        if self.adjacency is not None and budget.is_finite:
            check_unit(unit, rows_per_unit, self.adjacency)
        return row_budget(budget, rows_per_unit, self.divides)

    def check_values(self, task: TaskKind, epsilon: float, params: Mapping[str, Any]) -> None:
        """Raise ValueError or TypeError if the estimator refuses its parameters without any rows.

        Others say it when they fit; see `dprepro.estimators.contract.check_parameters`. Any other
        error of a user's file is a DpreproError that names the file.
        """
        example = self._example(task, epsilon, params)
        if self.file is None:
            check_parameters(example)
            return
        with blamed_on(self.file, f"{self.name!r} cannot check its parameters", _REFUSALS):
            check_parameters(example)

    def makes(self, kind: type, task: TaskKind, params: Mapping[str, Any]) -> bool:
        """Whether its estimator is an instance of a class."""
        return isinstance(self._example(task, 1.0, params), kind)

    def needs_kernels(self, task: TaskKind) -> bool:
        """Whether its estimator is of a package with kernels, see `dprepro.runtime.kernels`."""
        packages = {module.rpartition(".")[0] for module in kernel_modules()}
        kinds = type(self._example(task, 1.0, {})).__mro__
        return any(kind.__module__.rpartition(".")[0] in packages for kind in kinds)

    def _example(self, task: TaskKind, epsilon: float, params: Mapping[str, Any]) -> Estimator:
        """Return an estimator for one feature from 0 to 1."""
        target = (0.0, 1.0) if task == "regression" else ("0", "1")
        domain = Domain((NumericFeature("x", 0.0, 1.0),), target)
        setting = Setting(task, epsilon, 1e-6, domain, 0)
        if self.file is None:
            return self.build(setting, **params)
        fault = f"the `build` of {self.name!r} fails, tried with one feature from 0 to 1"
        # Where a config gives parameters, its line is told of a refusal.
        with blamed_on(self.file, fault, _REFUSALS if params else ()):
            made = self.build(setting, **params)
        if not is_estimator(made):
            raise DpreproError(
                f"{self.file}: the `build` of {self.name!r} returns {kind_of(made)}, and must "
                "return an unfitted estimator: an object with `fit`"
            )
        return made


not_private = partial(
    Method, guarantee=Guarantee.NONE, adjacency=None, assumes=(), takes_epsilon=False
)
"""A method without a privacy budget."""

private = partial(Method, takes_epsilon=True, keeps_ledger=True, noise=Noise.EXACT)
"""A method of ours with one. Its noise is exact where nothing else is said."""


class Made:
    """The `Build` of an estimator whose class is imported when it is made.

    It is given those of epsilon, delta, domain and the seed that its constructor takes.

    Parameters
    ----------
    kind
        Where the class is, such as ``"dprepro.methods.dp_ebm:EBMClassifier"``.
    regressor
        The same for regression, where that is another class.
    scaled
        Whether regression is another library's; see `dprepro.estimators.targets.scaled_targets`.
    fixed
        Parameters that the method sets.
    """

    def __init__(self, kind: str, regressor: str = "", scaled: bool = False, **fixed: Any) -> None:
        self._kind, self._regressor, self._scaled, self.fixed = kind, regressor, scaled, fixed

    def __call__(self, setting: Setting, **params: Any) -> Estimator:
        """Return the unfitted estimator."""
        kind = self.estimator(setting.task)
        found = {
            "epsilon": setting.epsilon, "delta": setting.delta, "domain": setting.domain,
            "random_state": setting.seed,
        }  # fmt: skip
        taken = inspect.signature(kind).parameters
        given = {name: value for name, value in found.items() if name in taken}
        other = self.estimator("binary" if setting.task == "regression" else "regression")
        elsewhere = inspect.signature(other).parameters if {*params} - {*taken} else {}
        if others := sorted(({*params} & {*elsewhere}) - {*taken}):
            raise ValueError(f"{', '.join(others)}: not for a {setting.task} task, leave it out")
        made: Estimator = kind(**(given | self.fixed | params))
        return made

    def estimator(self, task: TaskKind) -> Any:
        """Return the class for a kind of task."""
        regression = task == "regression"
        module, _, name = (
            self._regressor if regression and self._regressor else self._kind
        ).partition(":")
        kind = getattr(importlib.import_module(module), name)
        if regression and self._scaled:
            from dprepro.estimators.targets import scaled_targets  # imports pandas

            return scaled_targets(kind)
        return kind


@contextmanager
def blamed_on(path: Path, fault: str, passed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what the user's code raises into one line about its file, all but the types `passed`."""
    try:
        yield
    except passed:
        raise
    except MemoryError:  # runs out in sound files, too
        raise
    except (Exception, SystemExit) as error:  # a script may end in `sys.exit`
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exception(error)
        said = " ".join(str(error).split())[:_LONGEST_MESSAGE]
        raise DpreproError(
            f"{path}: {fault}: {type(error).__name__}{': ' if said else ''}{said}"
            f"{_line_of(error, path)}. {_remedy(error)}; {DEBUG_VARIABLE}=1 prints the traceback"
        ) from error


def kind_of(value: object) -> str:
    """Return what sort of thing a value is, in words, without its content."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"an object of type {type(value).__name__}"


def _remedy(error: BaseException) -> str:
    if isinstance(error, ImportError) and (error.name or "").startswith("dprepro."):
        return "Modules of dprepro moved after version 0.2.0: its changelog says where they are now"
    return "Correct that"


def _line_of(error: BaseException, path: Path) -> str:
    """Return " (line N)", the last line of the file on the way to an error; "" if there is none."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path.absolute())
    ]
    return f" (line {lines[-1]})" if lines else ""
