"""How long commands of the documents are run in a short form, and what cannot be run, in one place.

A command without a rule runs as it stands and has to end with 0. A rule that fits no command, and
a block that is neither run nor listed here, fail `tests/docs/test_pages.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dprepro.data.card import load_card
from dprepro.release.scaffold import paper_files
from tests.docs.pages import blocks


@dataclass(frozen=True)
class Rule:
    """How to run one command of one page."""

    command: str
    """As it stands there, without its comment."""
    append: str = ""
    """Options that make it short."""
    replace: tuple[tuple[str, str], ...] = ()
    """What is put for words that a reader is to replace; `{port}` is a free port."""
    background: str = ""
    """Left running; the words to wait for in its output."""
    shows: tuple[str, ...] = ()
    """What its comment promises, to be found in its output."""
    status: int = 0
    """What it ends with; other than 0 where the page says that it is refused."""


@dataclass(frozen=True)
class NotRun:
    """A block that cannot be run."""

    page: str
    begins: str
    """Its first line."""
    said: str
    """The words of the page that tell a reader so, or "" where it is no code at all."""


@dataclass(frozen=True)
class Extra:
    """What the tests do before or after a block, where the page leaves it to the reader."""

    block: str
    """The name of the block: the file that its first line names."""
    before: Callable[[Path], None] | None = None
    then: tuple[str, ...] = ()


FEW = "--splits 1 --method dp-ebm-gdp --method dp-logistic-fair --epsilon 4 --jobs 1"
"""Two methods, one split, one epsilon, and one process: another would import all libraries."""
HERE = (("HOST:8786", "127.0.0.1:{port}"),)

RULES = {
    "README.md": (
        Rule("make test", "TESTS=tests/runtime/test_yaml_files.py WORKERS=0", shows=(" passed",)),
        Rule("dprepro run configs/adult.yaml --results mine", FEW),
        Rule("dprepro run adult telco credit --results mine", FEW, ((" credit", ""),)),
        Rule(
            "dprepro run replication-report", "--splits 1 --epsilon 2 --method dp-ebm-gdp --jobs 1"
        ),
        Rule("dprepro plot curves", "--config adult"),
        Rule("dprepro report --output report.html", "--config adult"),
    ),
    "docs/papers.md": (
        Rule(
            "dprepro plot filters fashion-filters --method llm",
            replace=(("fashion-filters --method llm", "few-filters.yaml"),),
        ),
        Rule("dprepro plot margins lazybb-figure1", "--fits 1"),
    ),
    "docs/leaderboard.md": (
        Rule(
            "dprepro run board-vote-complete --splits 2 --epsilon 3 --results mine",
            "--method dp-gd-logistic --method dp-ebm-sound --method ebm --method constant --jobs 1",
        ),
    ),
    "docs/ci.md": (
        Rule("dprepro run quickstart", "--jobs 1"),
        # Other pages of the clone show its results.
        Rule("make -f check.mk check", "DPREPRO=dprepro && rm -r results/smith.* smith-2026"),
    ),
    "docs/own-data.md": (
        Rule("dprepro run mine.yaml", "--splits 2 --jobs 1"),
        Rule("dprepro tune mine.yaml --output tuned.yaml", "--epsilon 1 --jobs 1"),
        Rule(
            "dprepro fit secret.yaml --method dp-ebm-gdp --epsilon 1 --table customers.parquet "
            "--output many.json",
            replace=(("customers.parquet", "shop.csv"),),
        ),
    ),
    "docs/own-method.md": (
        Rule("dprepro run counts.yaml", "--jobs 1"),
        Rule(
            "dprepro audit noisy-counts --jobs 2 --output results/audit-own.json",
            "--jobs 1",
            shows=("within",),
        ),
        Rule("dprepro table counts", shows=("[†",)),
        Rule(
            "dprepro audit no-noise --output results/audit-own.json", shows=("EXCEEDED",), status=1
        ),
        Rule("dprepro run no-noise.yaml", "--jobs 1"),
        Rule("dprepro table no-noise", shows=("[† refuted]",)),
        Rule(
            "dprepro ledger no-noise.yaml --method no-noise --epsilon 1", shows=("does not hold",)
        ),
    ),
    "docs/scale.md": (
        Rule("dask scheduler", "--host 127.0.0.1 --port {port} --no-dashboard", (), "Scheduler at"),
        Rule(
            "dask worker HOST:8786 --nthreads 1 --nworkers 8",
            "--nworkers 2 --host 127.0.0.1 --no-dashboard",
            HERE,
            "Registered to",
        ),
        Rule(
            "dprepro run table2 table3 --executor dask --address HOST:8786",
            "--splits 1 --method dp-ebm-gdp --epsilon 4 --results on-cluster",
            HERE,
            shows=("to run on 2 worker",),
        ),
        Rule(
            "dprepro release shop.yaml --epsilon 1 --delta 1e-6 --table customers.parquet --yes "
            "--output large",
            replace=(("customers.parquet", "shop.csv"),),
        ),
    ),
    "PRIVACY.md": (
        Rule("dprepro ledger adult", "--method dp-ebm-gdp --method dp-ebm-sound"),
        Rule(
            "dprepro audit dp-ebm-sound --jobs 2 --output audit.png",
            "--trials 40 --task binary --jobs 1",
        ),
        Rule(
            "dprepro audit dp-ebm-gdp --task regression",
            "--trials 60 --seed 1",
            (),
            "",
            ("EXCEEDED",),
        ),
        Rule(
            'make test TESTS="tests/privacy tests/methods/dp_ebm"',
            "WORKERS=0",
            replace=(("tests/privacy tests/methods/dp_ebm", "tests/privacy/test_gdp.py"),),
            shows=(" passed",),
        ),
    ),
    "CONTRIBUTING.md": (Rule("dprepro run noisy-mean.yaml", "--jobs 1"),),
    "docs/tutorial.md": (
        Rule(
            "dprepro run adult --method dp-ebm-gdp --epsilon 1 --splits 1 --results mine",
            "--jobs 1",
            (("--results mine", "--results first"),),
        ),
    ),
    "docs/evidence/forensics.md": (
        Rule(
            "dprepro run forensics",
            "--splits 1 --epsilon 1 --results mine --jobs 1",
            replace=(("run forensics", "run forensics-dpboost-wine"),),
        ),
    ),
    "docs/units.md": (
        Rule(
            "dprepro run unit-diabetes --results mine",
            "--splits 1 --epsilon 1 --method dp-linear-fair --jobs 1",
            replace=(("unit-diabetes", "unit-parkinson"),),
        ),
    ),
    "docs/evidence/shapes.md": (
        Rule(
            'dprepro plot shapes adult-shapes --numeric --method "EBM in 25 bags" --method EBM '
            "--method dp-ebm-gdp --epsilon 4 --epsilon 1 --own-scale",
            replace=(('--method "EBM in 25 bags" ', ""), ("--numeric", "--feature age")),
        ),
    ),
    "docs/release.md": (
        Rule(
            "dprepro release hospital.yaml --epsilon 2 --clip --yes --output second",
            status=2,
            shows=("beyond the budget",),
        ),
    ),
    "--help": (
        Rule("dprepro run quickstart", "--splits 1 --jobs 1"),
        Rule(
            "dprepro plot curves --metric auc --output out/figures --format svg", "--config adult"
        ),
        Rule(
            "dprepro plot curves --dataset adult --size 3.3x2.4 --font 8 --format pdf",
            "--config adult",
        ),
        Rule(
            "dprepro export model.json --to sql --dialect sqlite --output model.sql --table people",
            replace=(("model.json", "results/models/adult-dp-ebm-gdp-1.json"),),
        ),
        Rule(
            "dprepro predict model.json new.csv --output predictions.csv --explain --keep id",
            replace=(
                ("model.json", "results/models/adult-dp-ebm-gdp-1.json"),
                ("new.csv", "few-rows.csv"),
            ),
        ),
        Rule("dprepro new config card.yaml", replace=(("card.yaml", "shop-card.yaml"),)),
        Rule(
            "dprepro release card.yaml --epsilon 1 --yes",
            "--delta 1e-5 --output released",
            replace=(("card.yaml", "shop-card.yaml"),),
        ),
        Rule("dprepro verify release", replace=(("verify release", "verify released"),)),
        # So that `score` has a model with rows held out.
        Rule("dprepro fit adult --method dp-ebm-gdp --epsilon 1 --output model.json", "--split 0"),
        Rule("dprepro run adult telco --jobs 4 --splits 5", f"--results mine {FEW}"),
        Rule(
            "dprepro audit dp-ebm-sound --epsilon 1 --jobs 2 --picture audit.png",
            "--trials 40 --task binary --jobs 1",
        ),
        Rule(
            "dprepro plot shapes adult-shapes --epsilon 4 --epsilon 1 --numeric",
            "--method dp-ebm-gdp",
        ),
        Rule(
            "dprepro tune lazybb-tune --output tuned.yaml",
            "--jobs 1",
            replace=(("lazybb-tune", "few.yaml"),),
        ),
    ),
}

ELSEWHERE = {
    "dprepro compare dp-ebm-plus dp-ebm-gdp --epsilon 1": "README.md",
    "dprepro compare dp-ebm-plus dp-ebm-gdp dp-ebm-sound --output ranks.pdf --size 3.3x2.4": (
        "docs/verdicts.md"
    ),
    "dprepro configs adult": "README.md",
    "dprepro ledger adult --method dp-ebm-gdp --epsilon 1": "PRIVACY.md",
    "dprepro methods dp-ebm-gdp": "docs/own-data.md",
    "dprepro plot margins lazybb-figure1 --epsilon 1": "docs/papers.md",
    "dprepro plot filters fashion-mnist --method llm --method mlp --row 0 --row 7": (
        "docs/papers.md"
    ),
    "dprepro report --output report.html": "README.md",
    "dprepro schema --output schemas": "docs/formats/index.md",
    "dprepro tree privatree-nursery --epsilon 1": "docs/papers.md",
    "dprepro votes lazybb-adult --epsilon 0.4": "docs/papers.md",
    'dprepro withdraw release --reason "replaced by a model of the grown table"': "docs/release.md",
}
"""Examples of --help that take long, and the page whose block runs the same command."""

NOT_RUN = (
    NotRun("docs/scale.md", "# cluster.py", "they cannot run this one, as it needs SLURM"),
    NotRun("docs/evidence/shapes.md", "Var f_k(b) =", ""),
    NotRun("docs/dp-ebm-plus.md", "1  TOTALS", ""),
)


def write_shop(folder: Path) -> None:
    """Write the shop.csv of a reader: 600 customers within the bounds of the card."""
    random = np.random.default_rng(1)
    age, city = random.integers(18, 101, 600), random.choice(["Bonn", "Lyon", "Turin"], 600)
    likely = 1 / (1 + np.exp(-(age - 60) / 10 - (city == "Bonn")))
    returned = np.where(random.random(600) < likely, "yes", "no")
    shop = pd.DataFrame({"age": age, "city": city, "returned": returned})
    shop.to_csv(folder / "shop.csv", index=False)


def write_smith(folder: Path) -> None:
    """Write the paper and the config of docs/own-paper.md, with one quick method."""
    (folder / "smith-2026").mkdir()
    for name, text in paper_files("smith-2026").items():
        (folder / "smith-2026" / name).write_text(text)
    (config,) = (block.text for block in blocks("docs/own-paper.md") if block.name == "smith.yaml")
    (folder / "smith.yaml").write_text(re.sub(r"methods:.*", "methods: [logistic]", config))


def write_short_configs(folder: Path) -> None:
    """Write configs that do in seconds what those of a page do in minutes, and a short table."""
    filters = (
        "evaluation: test-set\nsplits: 1\nepsilons: [2]\ndelta: 1e-5\nseed: 1\ndomain: public\n"
    )
    epoch = "params: {n_maps: 2, epochs: 1, batch_size: 5000}"
    (folder / "few-filters.yaml").write_text(
        f"dataset: fashion-mnist\nmetric: accuracy\n{filters}methods:\n- {{method: llm, {epoch}}}\n"
    )
    names = load_card("adult").features or {}
    few_rows = pd.DataFrame({"id": [1, 2]} | dict.fromkeys(names, "") | {"age": [39, 50]})
    few_rows.to_csv(folder / "few-rows.csv", index=False)
    write_shop(folder)
    (folder / "shop.csv").rename(folder / "data.csv")
    (folder / "shop-card.yaml").write_text(
        "name: shop\ntask: binary\nfile: data.csv\ntarget: returned\npositive: 'yes'\n"
        "labels: ['no', 'yes']\nfeatures:\n  age: {numeric: [18, 100]}\n"
        "  city: {categories: [Bonn, Lyon, Turin]}\n"
    )
    (folder / "few-own.yaml").write_text(
        "dataset: shop.yaml\nmetric: auc\nepsilons: [1]\nsplits: 2\nseed: 1\ndomain: public\n"
        "methods: [naive-bayes]\n"
    )
    (folder / "few.yaml").write_text(
        "dataset: adult\nmetric: accuracy\nepsilons: [1]\nsplits: 2\nseed: 1\ndomain: public\n"
        "methods:\n  - {method: lazybb-1r, grid: {rounds: [2, 4]}}\n"
    )


EXTRAS = (
    Extra("shop.yaml", before=write_shop),
    Extra("check.mk", before=write_smith),
    Extra(
        "my_methods/naive_bayes.py", then=("DPREPRO_METHODS=my_methods dprepro run few-own.yaml",)
    ),
)
