"""From a config to a plan, from a plan to a journal."""
