"""Random rows made from a domain alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dprepro.data.domain import Domain, NumericFeature


def draw_features(domain: Domain, rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Draw rows uniformly from a domain; all categories occur if there are enough rows."""
    columns: dict[str, Any] = {}
    for feature in domain.features:
        if isinstance(feature, NumericFeature):
            columns[feature.name] = generator.uniform(feature.lower, feature.upper, rows)
        else:
            codes = generator.permutation(np.arange(rows) % len(feature.categories))
            columns[feature.name] = pd.Categorical(np.array(feature.categories, object)[codes])
    return pd.DataFrame(columns)
