"""From the journals of a folder to what they say now: results, plans, runs, audits."""
