"""Many runs: sweeps, their report beside the paper, benchmarks."""
