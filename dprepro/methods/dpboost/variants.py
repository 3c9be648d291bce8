"""The DPBoosts: what the authors' code does, and the paper's algorithm without its leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dprepro.data.domain import TaskKind
from dprepro.methods.dpboost import ADJACENCY, SOUND_ADJACENCY
from dprepro.methods.dpboost.sensitivity import GAIN, MAX_ROWS, first_gain
from dprepro.methods.dpboost.subsets import FixedSizes, IndependentRows, Subsets
from dprepro.privacy.sensitivity import Adjacency
from dprepro.runtime.arguments import OneOf, flag, texts

BIN_EDGES = "bin edges of all features"
EXACT_ORDER = "the exact gains decide which leaf is split next"
EXACT_STOPS = (
    "exact counts and gains decide which splits are possible and when a tree stops: a row more "
    "or less can make an output impossible"
)
FIXED_NUMBERS = "rows are drawn in fixed numbers: a row more or less changes who else is drawn"
CONSTANT_DRAWS = (
    "noise of leaves and choices of splits are drawn with the same numbers in every fit: anybody "
    "can repeat the draws"
)
FIRST_GAIN = (
    "choices of splits assume that a row moves a gain by "
    "(3 lambda + 2) / ((2 + lambda) (1 + lambda)), not 3"
)

PARTS = MappingProxyType({"geometric": False, "equal": True})

SCALES = MappingProxyType({"-1..1": (-1.0, 1.0), "0..1": (0.0, 1.0)})


@dataclass(frozen=True)
class Variant:
    """Where they differ.

    Attributes
    ----------
    adjacency
        The neighbours for which the sensitivities are stated.
    split_share
        Share of epsilon that the splits of one path spend; the leaves spend one half.
    complete
        Whether trees are complete down to the largest depth and always noised, or grow best-first
        and count for nothing if they cannot be split.
    max_leaves, min_rows
        Limits of best-first trees: leaves of a tree, rows on either side of a split.
    tolerance
        By how much a gradient may exceed 1 before its row is filtered out.
    subsets
        How the rows of an ensemble are dealt out.
    equal_parts
        Whether all trees of an ensemble get as many rows, rather than each fewer than the last.
    public_cuts
        Whether cuts come from the domain, rather than from the rows.
    scale
        The interval to which targets are scaled; labels are its two ends. Gradients are differences
        within it, and rows with larger ones than 1 are filtered out.
    centred
        The kinds of task that start from the mean of the scaled targets, rather than from 0.
    first_gain
        Whether choices of splits assume the `sensitivity.first_gain` of gains, which is too small.
    clipped
        Whether regression clips its predictions to the target range of the domain.
    constant_draws
        Whether leaves and splits are drawn with the same numbers in every fit; see
        `constant_draws`.
    numbers_first
        Whether draws meet numeric features before all others, rather than in the order of columns.
    ignored
        Names of features that no split uses.
    assumed_public, unaccounted, gaps
        For the ledger, beside what the domain and the task bring.
    split_gap, leaf_gap
        Of the gaps, the ones for which no sensitivity covers splits and leaves; None for a proof.
    """

    adjacency: Adjacency
    split_share: float
    complete: bool
    max_leaves: int
    min_rows: int
    tolerance: float
    subsets: type[Subsets]
    public_cuts: bool
    centred: frozenset[TaskKind]
    clipped: bool
    equal_parts: bool = False
    scale: tuple[float, float] = (-1.0, 1.0)
    first_gain: bool = False
    constant_draws: bool = False
    numbers_first: bool = False
    ignored: tuple[str, ...] = ()
    assumed_public: tuple[str, ...] = ()
    unaccounted: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    split_gap: str | None = None
    leaf_gap: str | None = None

    def gain(self, ridge: float) -> float:
        """Return what is taken for the sensitivity of the gain of any split, b = 1."""
        return first_gain(ridge) if self.first_gain else GAIN


AS_PUBLISHED = Variant(
    adjacency=ADJACENCY,
    # The code halves the budget of the splits twice.
    split_share=1 / 4,
    complete=False,
    max_leaves=31,
    min_rows=20,
    tolerance=1e-6,
    subsets=FixedSizes,
    public_cuts=False,
    centred=frozenset({"regression"}),
    clipped=False,
    assumed_public=("number of rows",),
    unaccounted=(BIN_EDGES,),
    gaps=(EXACT_ORDER, EXACT_STOPS, FIXED_NUMBERS),
    split_gap=EXACT_STOPS,
    leaf_gap=FIXED_NUMBERS,
)

SOUND = Variant(
    adjacency=SOUND_ADJACENCY,
    split_share=1 / 2,
    complete=True,
    max_leaves=0,
    min_rows=0,
    tolerance=0.0,
    subsets=IndependentRows,
    public_cuts=True,
    centred=frozenset(),
    clipped=True,
    assumed_public=(f"that there are at least two rows and at most {MAX_ROWS:,}",),
)

STARTS: MappingProxyType[str, frozenset[TaskKind]] = MappingProxyType(
    {"zero": frozenset(), "mean": frozenset({"binary", "regression"})}
)


def of_code(
    parts: str,
    scale: str,
    start: str,
    first_gain: bool = False,
    constant_draws: bool = False,
    numbers_first: bool = False,
    read_as_text: Sequence[str] = (),
) -> Variant:
    """Return `AS_PUBLISHED` with other options of the authors' code.

    Parameters
    ----------
    parts
        "geometric", or "equal" for ``balance_partition=1``.
    scale
        "-1..1" or "0..1", to which the user of the code scales targets or labels.
    start
        "zero", or "mean" for ``boost_from_average=true``.
    first_gain
        Whether the code is that of before November 2020; see `sensitivity.first_gain`.
    constant_draws
        Whether leaves and splits get the draws of the code, which are the same in every fit.
    numbers_first
        Whether numeric features come before one-hot columns, as `pandas.get_dummies` puts them.
    read_as_text
        Numeric features that were read as text, and one-hot encoded: a column a value. Too few rows
        have any of these for a split, so that the feature is as good as absent.

    Raises
    ------
    ValueError
        If an option is not one of these.
    """
    parts, scale = OneOf(tuple(PARTS))("parts", parts), OneOf(tuple(SCALES))("scale", scale)
    start = OneOf(tuple(STARTS))("start", start)
    first_gain = flag("first_gain", first_gain)
    constant_draws = flag("constant_draws", constant_draws)
    return replace(
        AS_PUBLISHED,
        equal_parts=PARTS[parts],
        scale=SCALES[scale],
        centred=STARTS[start],
        first_gain=first_gain,
        constant_draws=constant_draws,
        numbers_first=flag("numbers_first", numbers_first),
        ignored=texts("read_as_text", read_as_text),
        gaps=(
            *AS_PUBLISHED.gaps,
            *([FIRST_GAIN] if first_gain else []),
            *([CONSTANT_DRAWS] if constant_draws else []),
        ),
    )


VARIANTS = MappingProxyType({"as-published": AS_PUBLISHED, "sound": SOUND})
