"""Many steps of a cell: the plain scan, which is the reference, and the fast loop."""
