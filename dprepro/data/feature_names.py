"""Short forms on a card: ``pixel{1..784}`` for 784 features, one list of categories for many."""

from __future__ import annotations

import re
from typing import Any

from dprepro.runtime.errors import nearest

MOST_FEATURES = 20_000
"""Of one card. Models of more would take hours."""

_BREAK = re.compile(r"\s*[\r\n]+\s*")
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


def one_line(name: str) -> str:
    """Return a name as it is compared: without blanks around it, a line break in it as one blank.

    Examples
    --------
    >>> one_line(" age\\n(years)")
    'age (years)'
    """
    return _BREAK.sub(" ", name.strip())


def expand_names(features: Any) -> Any:
    """Return a card's ``features`` with a name like ``pixel{1..784}`` written out, in place.

    Raises
    ------
    ValueError
        If a range is decreasing, a name occurs twice, or there are more than `MOST_FEATURES`.
    """
    if not isinstance(features, dict):
        return features
    expanded: dict[str, Any] = {}
    for name, domain in features.items():
        for full in _written_out(one_line(str(name)), MOST_FEATURES - len(expanded)):
            if full in expanded:
                raise ValueError(f"{full!r} is described twice, the second time by {name!r}")
            expanded[full] = domain
    return expanded


def with_lists(features: Any, lists: Any) -> Any:
    """Return a card's ``features`` in which the name of a list of categories is that list.

    Raises
    ------
    ValueError
        If there is no list of that name.
    """
    if not isinstance(features, dict):
        return features
    known = lists if isinstance(lists, dict) else {}
    return {name: _with_list(name, domain, known) for name, domain in features.items()}


def _with_list(name: Any, domain: Any, lists: dict[str, Any]) -> Any:
    wanted = domain.get("categories") if isinstance(domain, dict) else None
    if not isinstance(wanted, str):
        return domain
    if wanted not in lists:
        raise ValueError(
            f"feature {name!r}: there is no list {wanted!r} under `category_lists`"
            f"{nearest(wanted, list(lists)) or '.'} Write the categories as a list, "
            "or add one of that name"
        )
    return {**domain, "categories": lists[wanted]}


def _written_out(name: str, room: int) -> list[str]:
    """Return the names that a name stands for, at most `room` of them. Raises ValueError."""
    found = _RANGE.search(name)
    # Longer numbers are beyond any limit, and take long to read.
    first, last = (0, 0) if found is None else (int(found[1][-19:]), int(found[2][-19:]))
    if (found and max(map(len, found.groups())) > 18) or last - first >= room:
        raise ValueError(f"{name[:80]!r}: more than {MOST_FEATURES:,} features in all")
    if found is None:
        return [name]
    if first > last:
        raise ValueError(f"{name!r}: the range must not be decreasing")
    return [name[: found.start()] + str(k) + name[found.end() :] for k in range(first, last + 1)]
