"""Write tables, checks, ledgers and models for terminals and files."""
