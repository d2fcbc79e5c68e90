"""Files of users, which add to the registries."""

import runpy
from pathlib import Path


def load_file(path: str) -> None:
    """Execute a Python file of the user's, which registers tasks and key spaces."""
    if not Path(path).is_file():
        raise ValueError(f"file must be a Python file, got {path}")
    runpy.run_path(path, run_name="lantm_user_file")
