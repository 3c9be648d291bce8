"""What subsampling would buy DP-EBM+: the noise left in a sum after as many looks at every row.

    .venv/bin/python benchmarks/ebm_plus_subsampling.py

E epochs on all rows give a sum with noise 1/mu(epsilon, delta), whatever E. E/q steps on samples of
rate q take as long; each tells the sum over the sample, which stands for 1/q of itself, so that the
mean of T steps has noise sigma/(q sqrt(T)) and, beside it, the error of sampling. sigma is the
least that `dp_accounting` lets pass. Prints the second noise over the first: above 1, sampling
loses, even before its own error. The accountant sorts losses into cells and rounds up: at 0.01 most
of what exceeds 1 is that.
"""

from __future__ import annotations

import math

from dprepro.privacy.gdp import mu_of
from dprepro.privacy.subsampling import sampled_sigma

DELTA = 1e-6
EPOCHS = 16
EPSILONS = (0.01, 0.1, 0.5, 1.0, 8.0)
RATES = (0.5, 0.2, 0.05, 0.01)


def noise_ratio(epsilon: float, rate: float) -> float:
    """Return the noise of the mean sum over samples of `rate`, over that over all rows."""
    steps = round(EPOCHS / rate)
    sigma = sampled_sigma("pld", epsilon, DELTA, rate=rate, steps=steps)
    return sigma / (rate * math.sqrt(steps)) * mu_of(epsilon, DELTA)


def main() -> None:
    print("| epsilon | " + " | ".join(f"q = {rate:g}" for rate in RATES) + " |")
    print("| --- |" + " --- |" * len(RATES))
    for epsilon in EPSILONS:
        ratios = " | ".join(f"{noise_ratio(epsilon, rate):.3f}" for rate in RATES)
        print(f"| {epsilon:g} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
