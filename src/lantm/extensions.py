"""Files of users, which add to the registries."""

import runpy
import sysconfig
import traceback
from itertools import dropwhile
from pathlib import Path

PACKAGE = Path(__file__).parent
LIBRARIES = [
    Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")
]


loaded_files: list[str] = []
"""Those of this process, for processes that it starts."""


def load_file(path: str) -> None:
    """Execute a Python file of the user's, which registers tasks and key spaces."""
    if not Path(path).is_file():
        raise ValueError(f"file must be a Python file, got {path}")
    try:
        runpy.run_path(path, run_name="lantm_user_file")
    except SyntaxError as error:
        raise ValueError(f"{error.filename}, line {error.lineno}: {error.msg}") from None
    loaded_files.append(path)


def own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Where in the user's own files an error came about, the innermost place last.

    Their files are what we call that is neither ours nor a library's.
    """
    frames = traceback.extract_tb(error.__traceback__)
    called = dropwhile(lambda frame: not is_in(PACKAGE, frame.filename), frames)
    known = [PACKAGE, *LIBRARIES]
    return [
        frame
        for frame in called
        if Path(frame.filename).is_file() and not any(is_in(f, frame.filename) for f in known)
    ]


def is_in(folder: Path, file: str) -> bool:
    return Path(file).is_relative_to(folder)


def describe(error: BaseException) -> str:
    """An error in one line, with its place in the user's own files if it came about there."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    frames = own_frames(error)
    if not frames:
        return said
    return f"{frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name}: {said}"
