"""Results: what the journals of a folder say, as cells, plans, runs and audits."""
