"""The documents are executed: every block of README.md, PRIVACY.md and docs/*.md, in their order."""
