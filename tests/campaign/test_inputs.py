"""The short form: every parser answers the corpus, and small changes of it, with one clear line."""

from __future__ import annotations

import random

import pytest

from tests.campaign.mutate import mutated
from tests.campaign.parsers import PARSERS, corpus, read

MUTATIONS = 120
"""For each parser: 15 parsers in about 10 s of processor time."""


@pytest.mark.parametrize("parser", PARSERS)
def test_the_corpus_is_answered_and_holds_what_is_taken(parser, tmp_path):
    said = [read(parser, data, tmp_path) for data in corpus(parser)]
    assert "" in said


@pytest.mark.parametrize("parser", PARSERS)
def test_changed_inputs_are_answered(parser, tmp_path):
    inputs, draw = corpus(parser), random.Random(f"{parser} 1")
    for _ in range(MUTATIONS):
        read(parser, mutated(draw.choice(inputs), inputs, draw), tmp_path)
