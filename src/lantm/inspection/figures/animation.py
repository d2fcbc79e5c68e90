"""How the access pattern of one problem forms in training: kept checkpoints, one frame each."""

from pathlib import Path

import numpy as np
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter

from lantm.errors import require_positive
from lantm.inspection.figures.episode import observe
from lantm.inspection.figures.gallery import batch_name, beside, entitled, require_kept
from lantm.inspection.figures.parts import blank, draw_keys, draw_legend, draw_weights, frame
from lantm.inspection.picture import flatten
from lantm.training.runs import Run

HOLD = 2
"""Seconds that the last frame stays."""


def animate(
    run: Run | str | Path,
    path: str | Path,
    *,
    size: int | None = None,
    seed: int = 1,
    fps: int = 8,
) -> None:
    """The `memory` figure of every kept checkpoint, as GIF or MP4 by the file's suffix."""
    run = run if isinstance(run, Run) else Run.open(run)
    writer = writer_for(Path(path), fps)
    names = require_kept(run)
    episodes = [observe(run.machine(name), run.task, size, seed) for name in names]
    chart = flatten(episodes[0].to_chart(np.concatenate([episode.keys for episode in episodes])))
    heads = episodes[-1].busiest
    figure = blank("", 9.0, 0.6 + 3.8 * len(heads))
    last = len(names) - 1
    with writer.saving(figure, str(path), dpi=80):
        for i in [*range(last), *[last] * (HOLD * fps)]:
            figure.clear()
            title = f"{run.task.name}, {batch_name(names[i])}: {episodes[i].score}"
            figure.suptitle(entitled(title, run))
            keys, weights = beside(figure, len(heads))
            places = np.split(chart.points, len(names))[i]
            draw_keys(keys, chart._replace(points=places), episodes[i])
            frame(keys, chart)
            for axes, head in zip(weights, heads, strict=True):
                draw_weights(axes, episodes[i], head)
            draw_legend(figure, episodes[i])
            writer.grab_frame()


def writer_for(path: Path, fps: int) -> AbstractMovieWriter:
    """Of the format that the suffix names."""
    require_positive(fps=fps)
    if path.suffix == ".gif":
        return PillowWriter(fps)
    if path.suffix != ".mp4":
        raise ValueError(f"an animation must be a .gif or .mp4 file, got {path}")
    if not FFMpegWriter.isAvailable():
        raise ValueError("an .mp4 file needs the program ffmpeg, which is not here; take .gif")
    return FFMpegWriter(fps)
