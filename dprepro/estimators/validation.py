"""Parameters of estimators: each is declared once, checked by its kind, and plain during a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

from dprepro.data.domain import Domain
from dprepro.estimators.inputs import forget_fit
from dprepro.plain import Instance, Integer, Kind, OrNone

DOMAIN = Instance(Domain, "a Domain, as dprepro.Domain(features, target) makes it")
SEED = OrNone(Integer(0, 2**128 - 1))
SEED_OF_NUMPY = OrNone(Integer(0, 2**32 - 1))
"""Of generators that take no larger seed."""
JOBS = OrNone(Integer())

Fit = TypeVar("Fit", bound=Callable[..., Any])


class Parametrised:
    """An estimator that declares its parameters.

    As scikit-learn wants it, a constructor keeps what it is given, and `fit` checks it. While a fit
    runs, the attributes are plain numbers, texts and flags; afterwards they are what was given.

    Attributes
    ----------
    kinds
        Of every parameter, by its name.
    """

    kinds: ClassVar[Mapping[str, Kind]]

    def check_parameters(self) -> None:
        """Raise ValueError on parameters out of range."""
        with plain_parameters(self):
            pass

    def _check_together(self) -> None:
        """Raise ValueError on parameters, plain here, that do not go together."""


@contextmanager
def plain_parameters(model: Parametrised) -> Iterator[None]:
    """Let the parameters of a model be checked and plain in this context.

    Raises
    ------
    ValueError
        On parameters out of range.
    """
    attributes = vars(model)
    given = {name: attributes[name] for name in model.kinds}
    attributes.update({name: kind(name, given[name]) for name, kind in model.kinds.items()})
    try:
        model._check_together()
        yield
    finally:
        attributes.update(given)


def plain(model: Parametrised, name: str) -> Any:
    """Return a parameter as a plain value, for predictions: they change no attribute."""
    return model.kinds[name](name, vars(model)[name])


def fitting(fit: Fit) -> Fit:
    """Decorate the `fit` of a `Parametrised` estimator.

    It forgets an earlier fit and checks the parameters before it looks at rows. A fit that fails
    leaves nothing that is fitted.
    """

    @wraps(fit)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        forget_fit(self)
        try:
            with plain_parameters(self):
                return fit(self, *args, **kwargs)
        except BaseException:
            forget_fit(self)
            raise

    return cast("Fit", checked)
