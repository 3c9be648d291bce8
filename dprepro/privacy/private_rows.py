"""Private rows, wrapped: only modules called `curator`, and the reader of a fit, can open them."""

from __future__ import annotations

import sys
from typing import Any, Generic, NoReturn, TypeVar

Value = TypeVar("Value")

CURATOR = "curator"
"""Name of the modules that may open what is private: one in the package of each method."""

READER = "dprepro.estimators.inputs"
"""The module that reads the rows a caller passes to `fit`, and wraps them."""


class PrivateRowsError(TypeError):
    """Something other than a curator wanted to look at private rows."""


class Private(Generic[Value]):
    """A value computed from private rows. It can be passed on, and opened by a curator only.

    Every other use of it raises `PrivateRowsError`: it has no length, no items, no truth, cannot be
    converted to an array, compared, copied or pickled, and its ``repr`` shows nothing.

    Examples
    --------
    >>> rows = Private([39, 50])
    >>> rows
    Private(...)
    >>> rows.open()
    Traceback (most recent call last):
    dprepro.privacy.private_rows.PrivateRowsError: ... may not open private rows: ...
    """

    __slots__ = ("__value",)

    def __init__(self, value: Value) -> None:
        self.__value = value

    def open(self) -> Value:
        """Return the value. For modules called ``curator``, and the one that reads the rows.

        Raises
        ------
        PrivateRowsError
            If the caller is in any other module.
        """
        caller = sys._getframe(1).f_globals.get("__name__", "?")
        if not may_open(caller):
            raise PrivateRowsError(
                f"{caller} may not open private rows: a curator answers queries about them with "
                "releases that are noisy and in the ledger. Ask the curator, or add a query to it"
            )
        return self.__value

    def __repr__(self) -> str:
        return "Private(...)"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise PrivateRowsError("private rows can be passed on, and opened by a curator only")

    __array__ = __len__ = __iter__ = __getitem__ = __contains__ = __bool__ = _refuse
    __int__ = __float__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __eq__ = __ne__ = __hash__ = __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse


def may_open(module: str) -> bool:
    """Return whether a module may open what is private."""
    return module == READER or module.rpartition(".")[2] == CURATOR
