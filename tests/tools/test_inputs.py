"""The short form: every parser answers the corpus, and small changes of it, with one clear line."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from tools.campaign import grown
from tools.campaign.inputs import asked
from tools.campaign.mutate import mutated
from tools.campaign.parsers import PARSERS, corpus, read

MUTATIONS = 120
"""For each parser: 15 parsers in about 10 s of processor time."""


@pytest.mark.parametrize("parser", PARSERS)
def test_the_corpus_is_answered_and_holds_what_is_taken(parser, tmp_path):
    said = [read(parser, data, tmp_path) for data in corpus(parser)]
    assert "" in said


@pytest.mark.parametrize("parser", sorted(path.stem for path in grown.GROWN.glob("*.zip")))
def test_what_the_fuzzer_learned_is_answered(parser, tmp_path):
    inputs = grown.inputs(parser)
    assert len({read(parser, data, tmp_path) for data in inputs}) > 1


@pytest.mark.parametrize("parser", PARSERS)
def test_changed_inputs_are_answered(parser, tmp_path):
    inputs, draw = corpus(parser), random.Random(f"{parser} 1")
    for _ in range(MUTATIONS):
        read(parser, mutated(draw.choice(inputs), inputs, draw), tmp_path)


@pytest.mark.parametrize(
    ("parser", "data", "refusal"),
    [
        ("config", b"more: [" + b"[1],[2]," * 20_000 + b"]", "more than 50,000"),
        ("journal", b"\n" * 20_000_000, "line 1: not a journal line"),
        ("audits", b"[" + b"1," * 500_000 + b"1]", "0: Input should be a valid dictionary"),
        ("audits", b"[" + b"1," * 600_000 + b"1]", "larger than a file of its kind"),
        ("model", b"[" + b"[]," * 10_000_001 + b"1]", "more than 10,000,000 values"),
        ("model", b"[" + b'{"a":1},' * 1_500_001 + b"1]", "more than 1,500,000 keys"),
    ],
)
def test_large_inputs_are_refused_within_a_second(parser, data, refusal, tmp_path):
    assert refusal in read(parser, data, tmp_path)


def test_the_fuzzer_imports_no_parser_before_it_counts_branches():
    assert sorted(PARSERS) == asked([]).parsers
    code = "import sys; from tools.campaign.inputs import asked; asked(['--here', 'config']); "
    code += "sys.exit(any(name.split('.')[0] in ('dprepro', 'yaml') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
