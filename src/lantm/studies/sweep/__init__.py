"""Many runs: grids of configs, engines that train them, results as data."""
