"""Who may write: locks that the system releases when a process ends, however it ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(file: Path, *, wait: bool = False) -> Iterator[bool]:
    """Whether the lock of that file is ours in this block; `wait` until it is.

    The file is made if need be and stays. Its file system has to support `flock`, which local ones
    and recent NFS do.
    """
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
