"""The documents are executed: each block of README.md, PRIVACY.md and docs/, in their order."""
