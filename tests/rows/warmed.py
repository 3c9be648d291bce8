"""What processes are forked from: all is imported, and kernels are in memory."""

from tests.rows.killing import MODELS, Fit, fit_in_memory, rows

for _model in MODELS:
    fit_in_memory(Fit(_model, params={"n_epochs": 1}), rows(20))
