"""From a config to a run with a trained machine, and its scores."""
