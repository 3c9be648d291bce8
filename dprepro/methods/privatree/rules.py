"""A tree as questions that a person can read: what leads everywhere to one label is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprepro.data.domain import CategoricalFeature

if TYPE_CHECKING:  # what draws a tree loads nothing that trains one
    from dprepro.methods.equal_width_bins import Bins
    from dprepro.methods.privatree.bins import Tree
    from dprepro.methods.privatree.estimator import PrivaTreeClassifier


@dataclass(frozen=True)
class Leaf:
    """The end of a path: the label of all rows that come here."""

    label: str

    @property
    def shown(self) -> str:
        """What a picture writes."""
        return self.label

    @property
    def below(self) -> tuple[Question | Leaf, ...]:
        """Nothing."""
        return ()


@dataclass(frozen=True)
class Question:
    """A question about a row: where it goes with the answer yes, and where with no."""

    text: str
    yes: Question | Leaf
    no: Question | Leaf

    @property
    def shown(self) -> str:
        """What a picture writes."""
        return f"{self.text}?"

    @property
    def below(self) -> tuple[Question | Leaf, ...]:
        """Where rows go with yes, and with no."""
        return self.yes, self.no


def questions(model: PrivaTreeClassifier) -> Question | Leaf:
    """Return a fitted tree as questions; each row comes to the label that `predict` gives it.

    What a question further up has answered is not asked again.
    """
    labels = [str(label) for label in model.domain_.target]
    every = [(0, bins.count - 1) for bins in model.bins_]
    return _from(0, model.tree_, model.bins_, labels, every)


def to_text(model: PrivaTreeClassifier) -> str:
    """Return a fitted tree as text: a line a question or label, and deeper lines further right."""
    remark = "The answer is no for a missing value, and for a category that the domain lacks.\n"
    return "\n".join(_lines(questions(model), "")) + f"\n\n{remark}"


def _from(
    node: int,
    tree: Tree,
    bins: Sequence[Bins],
    labels: list[str],
    possible: list[tuple[int, int]],
) -> Question | Leaf:
    """Return what is below a node, where rows have bins from `possible` of each feature alone."""
    inner = len(tree.feature)
    if node >= inner:
        return Leaf(labels[tree.label[node - inner]])
    k, last = int(tree.feature[node]), int(tree.last[node])
    lowest, highest = possible[k]

    def side(child: int, first: int, end: int) -> Question | Leaf:
        left = [*possible[:k], (first, end), *possible[k + 1 :]]
        return _from(child, tree, bins, labels, left)

    if last >= highest:
        return side(2 * node + 1, lowest, highest)
    if last < lowest:
        return side(2 * node + 2, lowest, highest)
    yes, no = side(2 * node + 1, lowest, last), side(2 * node + 2, last + 1, highest)
    return yes if yes == no else Question(_asked(bins[k], last), yes, no)


def _asked(bins: Bins, last: int) -> str:
    """Return the question whether a row is in one of the bins up to `last`, which is not all."""
    feature = bins.feature
    if feature.missing and last == bins.count - 2:
        return f"{feature.name} is known"
    if isinstance(feature, CategoricalFeature):
        return f"{feature.name} is {' or '.join(feature.categories[: last + 1])}"
    return f"{feature.name} <= {bins.edges[last]:.6g}"


def _lines(node: Question | Leaf, indent: str) -> list[str]:
    if isinstance(node, Leaf):
        return [f"{indent}{node.label}"]
    deeper = f"{indent}    "
    return [
        f"{indent}{node.text}?",
        f"{indent}  yes:", *_lines(node.yes, deeper),
        f"{indent}  no:", *_lines(node.no, deeper),
    ]  # fmt: skip
