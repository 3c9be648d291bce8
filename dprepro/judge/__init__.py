"""Compare results with published cells and claims, with committed records, and with each other."""
