"""The answers of one fit, put in the place of those of another."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dprepro.privacy.curator_base import Curator
from dprepro.privacy.query import NoisyAnswer, Query


class Answers:
    """Keeps the answers of one fit, and puts them in the place of those of another."""

    def __init__(self) -> None:
        self.kept: list[tuple[type, dict[str, Any]]] = []

    def keep(self, query: Query, release: NoisyAnswer) -> None:
        self.kept.append((type(query), copy.deepcopy(vars(release))))

    def put(self, query: Query, release: NoisyAnswer) -> None:
        asked, fields = self.kept.pop(0)
        assert asked is type(query)
        for name, value in fields.items():
            object.__setattr__(release, name, value)


@contextmanager
def overhearing(heard: Callable[[Query, NoisyAnswer], None]) -> Iterator[None]:
    """Let `heard` have every answer of every curator before it is given; it may change it."""
    announce = Curator._announce

    def announced(curator: Curator, query: Query, release: NoisyAnswer) -> NoisyAnswer:
        answer = announce(curator, query, release)
        heard(query, answer)
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curator, "_announce", announced)
        yield
