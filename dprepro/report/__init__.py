"""Tables, verdicts and figures: pure functions of journals and published numbers."""
