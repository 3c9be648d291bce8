"""Which settings of standard models give two numbers of the replication's slides?

Telco: `TotalCharges` as text, one column for each of its values, as the authors' notebook reads
it, or as a number. Credit card fraud: XGBoost starting from 0.5, as older releases do, or from the
mean of the labels. It prints the AUROC of each split (the first three of our configs), their mean,
and the printed mean.

    DPREPRO_DATA=... python benchmarks/replication_slides.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from dprepro.data.dataset import load
from dprepro.experiment.splits import split_rows
from dprepro.papers.published_cell import load_published

SPLITS = 3


def shown(words: str, dataset: str, method: str, scores: Callable[[int], float]) -> None:
    """Print the AUROC of `words` on each split beside the printed mean of a cell."""
    (cell,) = [
        cell
        for cell in load_published("replication-slides-2025")
        if (cell.table, cell.dataset, cell.method) == ("non-dp-models", dataset, method)
    ]
    values = [scores(split) for split in range(SPLITS)]
    splits = " ".join(f"{value:.4f}" for value in values)
    print(
        f"{dataset}, {words}: {splits} mean {np.mean(values):.4f} printed {cell.mean}", flush=True
    )


def main() -> None:
    telco, credit = load("telco"), load("credit")
    as_text = telco.X.assign(TotalCharges=telco.X["TotalCharges"].astype(str))
    for words, table in (("TotalCharges as text", as_text), ("TotalCharges as a number", telco.X)):
        columns = pd.get_dummies(table).to_numpy(float)

        def logistic(split: int, columns: np.ndarray = columns) -> float:
            train, test = split_rows(len(columns), 0.2, 1, "telco", split)
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            model.fit(columns[train], telco.y[train])
            return float(roc_auc_score(telco.y[test], model.predict_proba(columns[test])[:, 1]))

        shown(words, "telco", "logistic", logistic)
    rows = credit.X.to_numpy(float)
    for words, start in (("starts from 0.5", 0.5), ("starts from the mean of the labels", None)):

        def boosted(split: int, start: float | None = start) -> float:
            train, test = split_rows(len(rows), 0.2, 1, "credit", split)
            model = XGBClassifier(base_score=start, random_state=split, n_jobs=1)
            model.fit(rows[train], credit.y[train])
            return float(roc_auc_score(credit.y[test], model.predict_proba(rows[test])[:, 1]))

        shown(words, "credit", "xgboost", boosted)


if __name__ == "__main__":
    main()
