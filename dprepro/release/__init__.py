"""From rows of the user's own to a release: scaffolds, budget book, statement, release folder."""
