"""Make the pictures of the documentation again.

    python tools/make_figures.py [WORD ...]

Executes, from the top of the repository, every `lantm figure` and `lantm animate` command of the
pages that writes into docs/images, or those that have all the given words. What needs a machine or
a run that is not there is skipped.
"""

import re
import shlex
import sys
from glob import glob
from pathlib import Path

from PIL import Image

from lantm import cli

COMMAND = re.compile(r"^lantm ((?:figure|animate) .*--out (docs/images/\S+))$", re.M)


def main(*words: str) -> None:
    for page in sorted(Path("docs").glob("*.md")):
        for command, picture in COMMAND.findall(page.read_text()):
            if all(word in command for word in words):
                print(f"lantm {command}")
                make([name for part in shlex.split(command) for name in glob(part) or [part]])
                if picture.endswith(".png"):
                    shrink(picture)


def make(arguments: list[str]) -> None:
    """Run a command; it says itself why it cannot."""
    try:
        cli.main(arguments)
    except SystemExit:
        print("skipped", file=sys.stderr)


def shrink(picture: str) -> None:
    """Few colours are enough, and a quarter of the bytes."""
    if Path(picture).exists():
        Image.open(picture).convert("RGB").quantize(128).save(picture, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
