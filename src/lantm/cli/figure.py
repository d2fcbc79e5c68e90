"""lantm figure | animate"""

import argparse
from typing import Any

from lantm.cli.common import Add, picture_file
from lantm.errors import require_one_of
from lantm.inspection.figures import FIGURES, animate, draw

SETTINGS = ("size", "seed", "fps", "checkpoint", "multiples", "examples")


def add(command: Add) -> None:
    figure = command("figure", run_figure, "draw a trained machine's memory, or its accuracy")
    figure.add_argument("name", help=f"one of {', '.join(FIGURES)}")
    figure.add_argument("run", help="a run directory, or zoo:TASK")
    figure.add_argument("--out", metavar="FILE", help="PNG, PDF or SVG by its suffix [NAME.png]")
    option(figure, "--size", int, "of the problem to show [16, or the nearest of training]")
    option(figure, "--seed", int, "of the problem to show [1]")
    option(figure, "--checkpoint", str, "best, last, or a kept batch [best]")
    option(figure, "--multiples", int, "of the training size, for lengths [1 2 3 4]", nargs="+")
    option(figure, "--examples", int, "problems a multiple, for lengths [640]")

    film = command("animate", run_animate, "show how a machine's memory formed in training")
    film.add_argument("run", help="the directory of a run that was trained with --keep-all")
    film.add_argument(
        "--out", metavar="FILE", default="memory.gif", help=".gif or .mp4 [%(default)s]"
    )
    option(film, "--size", int, "of the problem to show [16, or the nearest of training]")
    option(film, "--seed", int, "of the problem to show [1]")
    option(film, "--fps", int, "checkpoints a second [8]")


def option(parser: argparse.ArgumentParser, name: str, kind: type, text: str, **more: Any) -> None:
    """An option that is absent unless given: its default is the figure's."""
    settings: dict[str, Any] = {"default": argparse.SUPPRESS, "metavar": kind.__name__.upper()}
    parser.add_argument(name, type=kind, help=text, **settings, **more)


def run_figure(found: argparse.Namespace) -> int:
    require_one_of("figure", found.name, FIGURES)
    path = picture_file(found.out or found.name)
    draw(found.name, found.run, **given(found)).savefig(path, dpi=120)
    print(f"figure: {path}")
    return 0


def run_animate(found: argparse.Namespace) -> int:
    animate(found.run, found.out, **given(found))
    print(f"animation: {found.out}")
    return 0


def given(found: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(found).items() if name in SETTINGS}
