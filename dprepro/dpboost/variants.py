"""The two DPBoosts: what the authors' code does, and the paper's algorithm without its leaks."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from dprepro.dpboost.sensitivity import MAX_ROWS
from dprepro.dpboost.subsets import FixedSizes, IndependentRows, Subsets
from dprepro.privacy.sensitivity import ADD_REMOVE, ZERO_OUT, Adjacency

BIN_EDGES = "bin edges of all features"
EXACT_ORDER = "the exact gains decide which leaf is split next"
EXACT_STOPS = (
    "exact counts and gains decide which splits are possible and when a tree stops: a row more "
    "or less can make an output impossible"
)
FIXED_NUMBERS = "rows are drawn in fixed numbers: a row more or less changes who else is drawn"


@dataclass(frozen=True)
class Variant:
    """Where the two differ.

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
    public_cuts
        Whether cuts come from the domain, rather than from the rows.
    centred
        Whether regression starts from the mean of the targets, rather than from 0.
    clipped
        Whether regression clips its predictions to the target range of the domain.
    assumed_public, unpaid, gaps
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
    centred: bool
    clipped: bool
    assumed_public: tuple[str, ...] = ()
    unpaid: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    split_gap: str | None = None
    leaf_gap: str | None = None


AS_PUBLISHED = Variant(
    adjacency=ZERO_OUT,
    # The code halves the budget of the splits twice.
    split_share=1 / 4,
    complete=False,
    max_leaves=31,
    min_rows=20,
    tolerance=1e-6,
    subsets=FixedSizes,
    public_cuts=False,
    centred=True,
    clipped=False,
    assumed_public=("number of rows",),
    unpaid=(BIN_EDGES,),
    gaps=(EXACT_ORDER, EXACT_STOPS, FIXED_NUMBERS),
    split_gap=EXACT_STOPS,
    leaf_gap=FIXED_NUMBERS,
)

SOUND = Variant(
    adjacency=ADD_REMOVE,
    split_share=1 / 2,
    complete=True,
    max_leaves=0,
    min_rows=0,
    tolerance=0.0,
    subsets=IndependentRows,
    public_cuts=True,
    centred=False,
    clipped=True,
    assumed_public=(f"that there are at least two rows and at most {MAX_ROWS:,}",),
)

VARIANTS = MappingProxyType({"as-published": AS_PUBLISHED, "sound": SOUND})
