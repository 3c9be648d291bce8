"""Other models to compare with: linear, forests, bagging, a network, the toy of the tutorial."""
