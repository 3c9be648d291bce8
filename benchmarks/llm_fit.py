"""Seconds to train the default DP-LLM (30 maps a class, D' = 300) on images of MNIST's size.

Run: python benchmarks/llm_fit.py [--threads 2] [--epochs 20] [--steps 20]

Rates are per second of the processor, all threads counted: a busy machine disturbs them less.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable

import numpy as np
from machine import describe
from threadpoolctl import threadpool_limits

from dprepro.methods.locally_linear.estimator import DPLLMClassifier
from dprepro.methods.locally_linear.maps import (
    clipped_sum,
    draw_parameters,
    draw_projections,
    squared_norms,
)
from dprepro.methods.locally_linear.training import Adam

ROWS, FEATURES, CLASSES, MAPS, PROJECTED, BATCH = 60_000, 784, 10, 30, 300, 500
CLIP, SIGMA, BETA = 0.5, 1.3, 1 / 30
# What a step has to multiply out: inputs by filters, twice, and filters by projections, twice.
STEP_FLOP = 2 * 2 * MAPS * CLASSES * FEATURES * (BATCH + PROJECTED)
NORMS_FLOP = 2 * ROWS * MAPS * FEATURES * PROJECTED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20, help="steps to compare with PyTorch")
    options = parser.parse_args()
    print(describe())
    rng = np.random.default_rng(0)
    X = rng.random((ROWS, FEATURES), dtype=np.float32)
    y = rng.integers(0, CLASSES, ROWS)
    with threadpool_limits(limits=options.threads):
        peak = sgemm_rate()
        print(f"peak (sgemm, {options.threads} threads): {peak:.0f} GFLOP/s a core")
        # First, so that the peak of the memory is the fit's.
        whole_fit(X, y, options.epochs, peak)
        compare_steps(X, y, options.steps, options.threads, peak)


def whole_fit(X: np.ndarray, y: np.ndarray, epochs: int, peak: float) -> None:
    model = DPLLMClassifier(None, noise_multiplier=SIGMA, epochs=epochs, random_state=0)
    model.fit(X[:1000], y[:1000])  # compiles
    wall, processor = seconds(lambda: model.fit(X, y), 1)
    rate = (NORMS_FLOP + epochs * ROWS / BATCH * STEP_FLOP) / processor / 1e9
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"fit, {epochs} epochs: {wall:.1f} s, {processor:.1f} s of the processor, {rate:.0f} "
        f"GFLOP/s a core ({rate / peak:.0%} of the peak), {memory:.2f} GiB at most"
    )


def compare_steps(X: np.ndarray, y: np.ndarray, steps: int, threads: int, peak: float) -> None:
    contenders = {"dprepro": our_step(X, y)}
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: pip install '.[bench]' adds it")
    else:
        torch.set_num_threads(threads)
        contenders["PyTorch, a gradient a row"] = torch_step(X, y)
    for name, step in contenders.items():
        step()
        wall, processor = seconds(step, steps)
        print(
            f"step of {name}: {1e3 * processor:.1f} ms of the processor ({1e3 * wall:.1f} ms), "
            f"{STEP_FLOP / processor / 1e9 / peak:.0%} of the peak for what must be multiplied"
        )


def our_step(X: np.ndarray, y: np.ndarray) -> Callable[[], None]:
    rng = np.random.default_rng(0)
    R = draw_projections(rng, MAPS, PROJECTED, FEATURES, 0.7)
    theta = draw_parameters(rng, MAPS, CLASSES, PROJECTED, True)
    norms, adam = squared_norms(X[:BATCH], R), Adam(theta.shape)

    def step() -> None:
        rows = np.sort(rng.choice(BATCH, BATCH, replace=False))
        gradient = clipped_sum(X[rows], y[rows], norms[rows], theta, R, BETA, CLIP)
        gradient += np.float32(SIGMA * CLIP) * rng.standard_normal(theta.shape, dtype=np.float32)
        gradient /= np.float32(BATCH)
        adam.step(theta, gradient, 0.001)

    return step


def torch_step(X: np.ndarray, y: np.ndarray) -> Callable[[], None]:
    """The same step as Opacus does it: the gradient of every row is formed, then clipped."""
    import torch

    torch.manual_seed(0)
    R = 0.7 * torch.randn(MAPS, PROJECTED, FEATURES)
    theta = (0.02 * torch.randn(MAPS, CLASSES, PROJECTED + 1)).requires_grad_()
    adam = torch.optim.Adam([theta], lr=0.001)
    inputs, labels = torch.from_numpy(X[:BATCH]), torch.from_numpy(y[:BATCH])

    def step() -> None:
        projected = torch.einsum("bd,mpd->bmp", inputs, R)
        h = torch.cat([projected, torch.ones(BATCH, MAPS, 1)], dim=2)
        z = torch.einsum("bmp,mkp->bmk", h, theta.detach()).requires_grad_()
        f = (torch.softmax(BETA * z, dim=1) * z).sum(dim=1)
        loss = torch.nn.functional.cross_entropy(f, labels, reduction="sum")
        (d,) = torch.autograd.grad(loss, z)
        rows = torch.einsum("bmk,bmp->bmkp", d, h)
        factors = (CLIP / rows.flatten(1).norm(dim=1)).clamp(max=1.0)
        gradient = torch.einsum("b,bmkp->mkp", factors, rows)
        theta.grad = (gradient + SIGMA * CLIP * torch.randn_like(gradient)) / BATCH
        adam.step()

    return step


def sgemm_rate(size: int = 3000) -> float:
    """Return GFLOP/s a core of a large float32 product: what the machine does at best."""
    A = np.random.default_rng(0).random((size, size), dtype=np.float32)
    best = min(seconds(lambda: A @ A, 1)[1] for _ in range(5))
    return 2 * size**3 / best / 1e9


def seconds(action: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return seconds of the clock and of the processor, a repeat."""
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        action()
    return (time.perf_counter() - wall) / repeats, (time.process_time() - processor) / repeats


if __name__ == "__main__":
    main()
