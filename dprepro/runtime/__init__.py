"""What every other part rests on: errors, files, terminals, threads, compiled kernels."""
