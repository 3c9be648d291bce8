"""What runs at night: campaigns of faults, fuzzers of parsers, small faults put into the code."""
