"""Names of datasets: data of a user's own card differ from built-in data of the same name."""

from __future__ import annotations

from functools import cache

from dprepro.experiment.record import Task
from dprepro.resources import builtin

_NOT_BUILTIN = "your card, not the built-in one"


def dataset_of(task: Task, has_own_card: bool = False) -> str:
    """Return the name that results of a task stand under: the dataset's, told apart if need be.

    A user's card may have the name of a built-in card. Its data are then named as the user's.

    Parameters
    ----------
    has_own_card
        Whether the card is known not to be built in. It decides where the built-in card has no
        checksum, so that its data cannot be known by their fingerprint.
    """
    if task.dataset not in builtin_names():
        return task.dataset
    known = _fingerprints(task.dataset)
    is_builtin = task.data_fingerprint in known if known else not has_own_card
    return task.dataset if is_builtin else f"{task.dataset} ({_NOT_BUILTIN})"


@cache
def builtin_names() -> frozenset[str]:
    """Return the names of the built-in cards."""
    return frozenset(path.stem for path in builtin("datasets").glob("*.yaml"))


@cache
def _fingerprints(name: str) -> frozenset[str]:
    """Return the fingerprints of a built-in card's data; none if the card has no checksum."""
    from dprepro.data.card import builtin_card

    card = builtin_card(name)
    if card.expect.values_sha256 is None:
        return frozenset()
    whole = card.fingerprint(with_test=True)
    return frozenset({whole, whole.partition("+")[0]})
