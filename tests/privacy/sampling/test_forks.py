"""A forked process draws noise of its own, whenever it was forked."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from dprepro.methods.registry import all_methods
from dprepro.privacy.budget import PrivacyBudget
from dprepro.privacy.curator_base import Curator
from dprepro.privacy.ledger import Ledger
from dprepro.privacy.mechanisms import NoiseSource
from dprepro.privacy.sampling.bits import Bits
from dprepro.privacy.sampling.sampler import ExactSampler
from dprepro.privacy.sensitivity import ZERO_OUT
from tests.methods.test_methods import fit

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def forked(draw: Callable[[], Any], fork: Callable[[], int] = os.fork) -> Any:
    """Return what `draw` gives in a process that is forked here."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        try:
            with os.fdopen(writing, "wb") as out:
                out.write(pickle.dumps(draw()))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        told = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return pickle.loads(told)


def spawned(draw: Callable[[], Any]) -> Any:
    """Return what `draw` gives in a process of `multiprocessing` that is forked here."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(draw()))
    child.start()
    told = queue.get()
    child.join()
    return told


def source(seed: int | None) -> NoiseSource:
    return NoiseSource(Ledger(1.0, 1e-6, ZERO_OUT), seed)


def sampled(made: NoiseSource) -> Any:
    return made.sampled_gaussian(
        (3,), releases="sums", noise_multiplier=1.0, sensitivity=1.0, draws=9, uses=9, sampling=1.0,
        budget=PrivacyBudget(1.0, 1e-6),
    )  # fmt: skip


def draws(seed: int | None) -> dict[str, Callable[[], Any]]:
    """Return ways to draw from sources that have drawn before."""
    made, stream = source(seed), Bits(seed)
    noise, sampler = sampled(made), made.sampler
    next(noise), sampler.gaussian(10.0, (3,)), stream.words(3)
    wishart = partial(made.wishart, 2, releases="m", scale=1.0, sensitivity=1.0)
    return {
        "words": lambda: stream.words(4).tolist(),
        "gaussian": lambda: sampler.gaussian(1e9, (2,)).tolist(),
        "normals": lambda: sampler.normals((2,)).tolist(),
        "laplace": lambda: sampler.laplace(1e9, (2,)).tolist(),
        "choice": lambda: [sampler.choice(np.zeros(2**20, np.int64), 1.0) for _ in range(2)],
        "sample": lambda: sampler.sample(99, 0.5).tolist(),
        "permutation": lambda: sampler.permutation(30).tolist(),
        "float32": lambda: next(noise).tolist(),
        "wishart": lambda: wishart(budget=PrivacyBudget(1.0, 1e-6)).tolist(),
        "public": lambda: made.public_generator.integers(2**40, size=3).tolist(),
    }


@pytest.mark.parametrize("fork", [forked, spawned])
@pytest.mark.parametrize("name", draws(1))
def test_without_a_seed_parent_and_children_draw_apart(
    name: str, fork: Callable[[Callable[[], Any]], Any]
) -> None:
    draw = draws(None)[name]
    drawn = [fork(draw), fork(draw), fork(lambda: forked(draw)), draw()]
    assert len({str(each) for each in drawn}) == 4


@pytest.mark.parametrize("name", draws(1))
def test_with_a_seed_a_child_goes_on_as_its_parent_and_the_ledger_says_so(name: str) -> None:
    draw = draws(1)[name]
    assert forked(draw) == draw()
    assert source(1).ledger.unaccounted == ["fixed seed: repeatable, never for release"]


def test_a_child_still_knows_that_noise_was_drawn() -> None:
    fresh, used = ExactSampler(Bits()), ExactSampler(Bits())
    used.gaussian(1.0, (40,))
    assert forked(lambda: (fresh.has_drawn, used.has_drawn)) == (False, True)


@pytest.mark.skipif(sys.platform != "linux", reason="calls the C library of Linux")
@pytest.mark.parametrize("name", sorted(draws(1).keys() - {"public"}))
def test_a_fork_that_python_does_not_know_of_is_noticed_at_the_next_draw(name: str) -> None:
    """As that of a library in C, which calls no hooks; what shows in a release may repeat."""
    draw = draws(None)[name]
    assert forked(draw, ctypes.PyDLL(None).fork) != draw()


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["dp-ebm-plus", "dpboost-sound", "lazybb-1r", "s-bdt-sound"])
def test_a_fork_in_the_middle_of_a_fit_gets_other_answers_from_there_on(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[str] = []
    announce, at = Curator._announce, 4
    reading, writing = os.pipe()
    child = -1

    def forking(self: Curator, query: Any, release: Any) -> Any:
        nonlocal child
        answers.append(str(np.asarray(release.value).tolist()))
        if len(answers) == at:
            child = os.fork()
        return announce(self, query, release)

    monkeypatch.setattr(Curator, "_announce", forking)
    try:
        fit(all_methods()[name], "binary", seed=None)
    finally:
        if child == 0:
            with os.fdopen(writing, "wb") as out:
                out.write(pickle.dumps(answers))
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        other = pickle.loads(file.read())
    os.waitpid(child, 0)
    assert len(answers) > at
    assert other[:at] == answers[:at]  # of before: one release, which both have
    assert other[at:] != answers[at:]
    both = min(len(answers), len(other))
    long = [k for k in range(at, both) if len(answers[k]) > 40]
    assert all(answers[k] != other[k] for k in long)
