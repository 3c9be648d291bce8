"""The adversary shares no code with what it audits: it knows what can be asked and told."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

import dprepro.audit.likelihood_ratio as evidence
from dprepro.privacy.query import Instruction, NoisyAnswer, Query

ADVERSARIES = {
    "dp_ebm": "answers", "dp_ebm_plus": "Adversary", "dpboost": "evidence", "lazybb": "choices",
    "locally_linear": "of_samples", "dp_bag": "answers", "linear_regression": "answers",
    "synthetic": "answers",
}  # fmt: skip
"""What weighs a transcript, by the folder of a method."""
OF_THE_AUDIT = {"dprepro.audit.likelihood_ratio", "dprepro.audit.transcript", "dprepro.audit.case"}


def imports(tree):
    """Return the module of each name that a file imports at its top level."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found |= {alias.asname or alias.name: node.module for alias in node.names}
    return found


def used(tree, name):
    """Return the imported names that a function or class uses, and all that these use."""
    made = {node.name: node for node in tree.body if hasattr(node, "name")}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            made |= {part.id: node for part in ast.walk(node) if is_stored(part)}
    found, left = set(), [name]
    while left:
        for node in ast.walk(made[left.pop()]):
            assert not isinstance(node, ast.Import | ast.ImportFrom), "an import in a function"
            if isinstance(node, ast.Name) and node.id not in found:
                found.add(node.id)
                left += [node.id] if node.id in made else []
    return found & set(imports(tree))


def is_stored(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def strangers(path, name):
    """Return what an adversary uses of the package beside the audit and what is asked and told."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for used_name in used(tree, name):
        module = imports(tree)[used_name]
        if module.partition(".")[0] in {*sys.stdlib_module_names, "numpy"}:
            assert module != "importlib"
            continue
        kind = getattr(importlib.import_module(module), used_name, None)
        if module in OF_THE_AUDIT or (
            isinstance(kind, type) and issubclass(kind, Query | Instruction | NoisyAnswer)
        ):
            continue
        found.add(f"{module}.{used_name}")
    return found


@pytest.mark.parametrize("method", ADVERSARIES)
def test_an_adversary_uses_numpy_and_what_is_asked_and_told_alone(method):
    module = importlib.import_module(f"dprepro.methods.{method}.audit")
    # A code is what a query of DP-EBM+ consists of.
    part = {"dprepro.methods.dp_ebm_plus.queries.Code"} if method == "dp_ebm_plus" else set()
    assert strangers(Path(module.__file__), ADVERSARIES[method]) == part


def test_evidence_is_numpy_alone():
    tree = ast.parse(Path(evidence.__file__).read_text(encoding="utf-8"))
    roots = {module.partition(".")[0] for module in imports(tree).values()}
    assert roots <= {*sys.stdlib_module_names, "numpy"}


def test_code_of_a_method_is_found_behind_a_helper_and_a_constant(tmp_path):
    path = tmp_path / "sly.py"
    path.write_text(
        "from dprepro.methods.dp_ebm.losses import Loss\n"
        "from dprepro.methods.dp_ebm.queries import LeafSums\n"
        "_KIND = Loss\ndef _helper():\n    return _KIND, LeafSums\n"
        "def answers():\n    return _helper()\n"
    )
    assert strangers(path, "answers") == {"dprepro.methods.dp_ebm.losses.Loss"}


def test_an_import_in_a_function_is_found(tmp_path):
    path = tmp_path / "sly.py"
    path.write_text(
        "def answers():\n    from dprepro.methods.dp_ebm import kernel\n    return kernel\n"
    )
    with pytest.raises(AssertionError, match="an import in a function"):
        strangers(path, "answers")
