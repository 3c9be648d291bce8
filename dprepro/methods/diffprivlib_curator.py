"""What the curators of other libraries' models have in common: rows that are handed over once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar

from dprepro.estimators.columns import values_withheld
from dprepro.estimators.inputs import Arrays
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.private_rows import Private
from dprepro.privacy.query import BudgetError
from dprepro.privacy.sensitivity import Adjacency


class DiffprivlibCurator(Curator):
    """Holds the rows for a mechanism of diffprivlib, which draws its own noise.

    The ledger gets the mechanism as the library documents it, before the rows are handed over.

    Parameters
    ----------
    rows
        What the fit was given. What the library checks itself is not checked yet.
    ledger
        Receives the entry.
    seed
        That of the library's own noise; the ledger lists a fixed one.
    observed
        See `Curator`.
    """

    relations: ClassVar[frozenset[Adjacency]] = frozenset()  # each library's curator states its own

    def __init__(
        self, rows: Private[Arrays], ledger: Ledger, seed: int | None, observed: Sequence[str]
    ) -> None:
        super().__init__(ledger, seed, observed)
        self._rows = rows
        self._is_spent = False

    @contextmanager
    def _handing_over(self) -> Iterator[None]:
        """Let a library have the rows, once; its errors quote no value of theirs.

        Raises
        ------
        BudgetError
            If it had them before: the ledger has one use.
        """
        if self._is_spent:
            raise BudgetError(
                "the ledger has one use of the library's mechanism, and it is spent: make another "
                "curator, with a ledger of its own"
            )
        self._is_spent = True
        with values_withheld():
            yield
