"""Processor seconds of 99 boosted 1-Rules on Adult beside AdaBoost over stumps.

Run: python benchmarks/lazybb_fit.py, with DPREPRO_DATA naming the folder of the data
"""

from __future__ import annotations

import numpy as np
from machine import pin_to_one_core
from sklearn.ensemble import AdaBoostClassifier
from timing import alternate

from dprepro.data.dataset import load
from dprepro.data.encode import BooleanEncoder
from dprepro.methods.lazybb.estimator import LazyBBClassifier

ROUNDS, REPEATS = 99, 3


def main() -> None:
    pin_to_one_core()
    adult = load("adult")
    assert adult.domain is not None
    X, y = BooleanEncoder(adult.domain).transform(adult.X), np.asarray(adult.y)
    # The default estimator of AdaBoost is a tree of one split.
    ours = LazyBBClassifier(rounds=ROUNDS, epsilon=1.0, random_state=0)
    theirs = AdaBoostClassifier(n_estimators=ROUNDS, random_state=0)
    stumps = X.to_numpy(np.float32)
    times = alternate(
        {"lazybb-1r": lambda: ours.fit(X, y), "AdaBoost": lambda: theirs.fit(stumps, y)}, REPEATS
    )
    print(f"{X.shape[0]:,} rows x {X.shape[1]} columns, {ROUNDS} rounds")
    for name, found in times.items():
        print(f"{name:10} best {found.best:.3f} s, median {found.median:.3f} s")
    print(f"times faster (best): {times['AdaBoost'].best / times['lazybb-1r'].best:.1f}")


if __name__ == "__main__":
    main()
