"""Whose machine a run has, and whose training: the paper's, ours, or another, by its settings."""

import dataclasses
from collections.abc import Container, Mapping
from typing import Any

from lantm.machines.models import MODELS, ModelConfig
from lantm.training.config import RECIPES, TrainConfig, fitting

PAPER, OUR_TRAINING, OUR_RECIPE, OTHER = KINDS = (
    *("paper", "our training", "our recipe", "another machine"),
)
KIND_NAMES = {
    PAPER: "the paper's machine and training",
    OUR_TRAINING: "the paper's machine, our training",
    OUR_RECIPE: "our machine and training",
    OTHER: "another machine",
}
"""In words, for titles."""
PAPER_MODELS = ("lstm", "ram", "ram_tape", "lantm", "lantm_s", "slantm", "slantm_s")
SPHERES = ("sphere", "bounded_sphere")
STARTING_POINTS = frozenset(
    {
        *("read_gate_bias", "write_gate_bias", "read_action_gate_bias"),
        *("write_action_gate_bias", "initial_strength_bias"),
    }
)
"""Settings of a model that say where learnable numbers begin, and so belong to the training."""
FREE = frozenset(
    {
        *("task", "model", "regime", "seed", "action_interpolation", "keep_all"),
        *("validate_every", "validate_from", "validation_examples", "test_examples", "test_far"),
    }
)
"""Settings that make neither another machine nor another training."""
ENDS = frozenset({"batches", "solved"})
"""When the training ends, which our recipe leaves open."""


def paper_axes(model: str) -> dict[str, list[Any]]:
    """What the paper's grid (table A.1) varies for a model, the same for every task and regime."""
    if model == "lstm":
        rates = [0.2, 0.02, 0.002, 0.0002]
        return {"layers": [1, 2, 3, 4], "decay_delay": [500, 700], "init": ["fan_in"], "lr": rates}
    own: dict[str, dict[str, list[Any]]] = {
        "ram": {"key_size": [2, 20]},
        "ram_tape": {"key_size": [2, 20], "sharpen": [False, True]},
        "slantm": {"space": [*SPHERES]},
        "slantm_s": {"space": [*SPHERES]},
    }
    return {
        "decay_delay": [300, 600],
        "init": ["uniform", "fan_in"],
        "lr": [0.01, 0.02, 0.04],
        **own.get(model, {}),
    }


def kind_of(settings: Mapping[str, Any]) -> str:
    """One of `KINDS`, from the settings of a run by name (`TrainConfig.flat`).

    The paper's machine is one of its seven models at its sizes; the paper's training is a point of
    its grid, with any seed. What a run from before a setting was there does not say is neutral.

    >>> from lantm.training.config import configure
    >>> kind_of(configure("paper", task="reverse", model="slantm", lr=0.02).flat())
    'paper'
    >>> kind_of(configure("paper", lr=0.03).flat())
    'our training'
    >>> kind_of(configure(task="reverse", model="slantm").flat())
    'our recipe'
    >>> kind_of(configure("paper", output="nonlinear").flat())
    'another machine'
    """
    if settings["model"] not in PAPER_MODELS:
        return OTHER
    if differing(settings, default_axes(settings["model"])) <= ENDS:
        return OUR_RECIPE
    paper = {name: [value] for name, value in RECIPES["paper"].items()}
    other = differing(settings, paper | paper_axes(settings["model"]))
    if other & (model_fields() - STARTING_POINTS):
        return OTHER
    return OUR_TRAINING if other else PAPER


def default_axes(model: str) -> dict[str, list[Any]]:
    """What the default recipe sets for a model."""
    return {name: [v] for name, v in fitting(RECIPES["default"], {"model": model}).items()}


def equal_in_our_recipe(model: str) -> str:
    """The first model that is the same machine under the default recipe, which has a weighting of
    its own in place of that in a model's name.

    >>> equal_in_our_recipe("slantm_s"), equal_in_our_recipe("ram_tape")
    ('slantm', 'ram_tape')
    """

    def parts(name: str) -> dict[str, Any]:
        own = fitting(RECIPES["default"], {"model": name})
        return {**MODELS[name].stands_for, **own}

    weighted = [name for name in PAPER_MODELS if "weighting" in MODELS[name].takes]
    same = (name for name in weighted if model in weighted and parts(name) == parts(model))
    return next(same, model)


def differing(settings: Mapping[str, Any], axes: Mapping[str, list[Any]]) -> set[str]:
    """The settings that are none of what a grid has, or of which it says nothing and that are not
    neutral.
    """
    return {
        name
        for name, neutral in neutral_settings().items()
        if name not in FREE
        and _chosen(settings, name, neutral, axes) not in axes.get(name, [neutral])
    }


def _chosen(settings: Mapping[str, Any], name: str, neutral: Any, known: Container[str]) -> Any:
    """A setting; what the model's name stands for counts as not given, if the grid says no more."""
    value = settings.get(name, neutral)
    standing = MODELS[settings["model"]].stands_for.get(name)
    if value in (None, standing):
        return standing if name in known else None
    return value


def neutral_settings() -> dict[str, Any]:
    """The default of every field of `TrainConfig` and of its model."""
    fields = [*dataclasses.fields(TrainConfig), *dataclasses.fields(ModelConfig)]
    return {field.name: field.default for field in fields if field.name != "model"}


def model_fields() -> set[str]:
    return {field.name for field in dataclasses.fields(ModelConfig)} - {"model"}
