"""Make the pictures of docs/spaces.md: a trained memory of every key space.

    python tools/picture_spaces.py RUN [RUN ...]

Each run is drawn by `lantm figure chart` into docs/images/spaces/SPACE.png, and goes into the page
in the section of its space, in place of what it had there.
"""

import re
import sys
from pathlib import Path

from PIL import Image

from lantm import Run
from lantm.inspection.figures import draw

PAGE, FOLDER = Path("docs/spaces.md"), Path("docs/images/spaces")


def main(*paths: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for run in map(Run.open, paths):
        space = run.config.model.chosen("space")
        picture = FOLDER / f"{space.replace('*', '-x-')}.png"
        draw("chart", run).savefig(picture, dpi=90)
        Image.open(picture).convert("RGB").quantize(128).save(picture, optimize=True)
        told = f"![A trained memory: {run.task.name} in {space}](images/spaces/{picture.name})"
        PAGE.write_text(place(PAGE.read_text(), space, told))
        print(f"{space}: {picture}")


def place(page: str, space: str, told: str) -> str:
    """The page with the picture at the end of the section that begins with the space's name."""
    parts = re.split(r"(?=^## )", page, flags=re.M)
    for i, part in enumerate(parts):
        if re.match(rf"## .*`{re.escape(space)}`", part):
            old = re.escape(told.split("](")[1])
            rest = re.sub(rf"\n!\[.*\]\({old}\n", "", part).rstrip("\n")
            parts[i] = f"{rest}\n\n{told}\n\n"
            return "".join(parts).rstrip("\n") + "\n"
    raise SystemExit(f"{PAGE} has no section with `{space}` in its title")


if __name__ == "__main__":
    main(*sys.argv[1:])
