"""Whose machine and training a run has: by its settings, whatever they are called."""

import pytest

from lantm.machines.models import MODELS
from lantm.studies.entries import paper
from lantm.training.config import configure
from lantm.training.kinds import FREE, PAPER_MODELS, kind_of, neutral_settings


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_the_papers_or_another_machine(model):
    assert (model in PAPER_MODELS) == (model in {cell.model for cell in paper()})
    settings = {"lr": 0.02, "decay_delay": 500} if model == "lstm" else {}
    kind = kind_of(configure("paper", model=model, **settings).flat())
    assert kind == ("paper" if model in PAPER_MODELS else "another machine")


@pytest.mark.parametrize(
    ("recipe", "settings", "kind"),
    [
        ("paper", {"seed": 77, "regime": "large"}, "paper"),
        ("paper", {"action_interpolation": True}, "paper"),
        ("paper", {"space": "plane", "hidden_size": 50, "weighting": "inverse_square"}, "paper"),
        ("paper", {"model": "slantm", "space": "bounded_sphere"}, "paper"),
        ("paper", {"model": "slantm"}, "paper"),
        ("paper", {"model": "ram", "key_size": 2}, "paper"),
        ("paper", {"model": "lstm", "layers": 4, "lr": 0.2, "decay_delay": 500}, "paper"),
        ("paper", {"keep_all": True, "validation_examples": 640}, "paper"),
        ("paper", {"lr": 0.2}, "our training"),
        ("paper", {"decay_delay": None}, "our training"),
        ("paper", {"batches": 20_000}, "our training"),
        ("paper", {"init": "straight"}, "our training"),
        ("paper", {"forget_bias": 3.0}, "our training"),
        ("paper", {"read_gate_bias": -2.0}, "our training"),
        ("paper", {"starts": 2}, "our training"),
        ("plain", {}, "our training"),
        ("plain", {"steady": 2.0, "optimiser": "adam"}, "our training"),
        ("paper", {"sizes_per_batch": 4}, "our training"),
        ("paper", {"slow_cells": 5}, "our training"),
        ("paper", {"layers": 2}, "another machine"),
        ("paper", {"hidden_size": 100}, "another machine"),
        ("paper", {"space": "free_plane"}, "another machine"),
        ("paper", {"model": "slantm", "space": "plane"}, "another machine"),
        ("paper", {"weighting": "softmax"}, "another machine"),
        ("paper", {"anchored": True}, "another machine"),
        ("paper", {"strength_floor": 0.2, "lr": 0.3}, "another machine"),
        ("paper", {"blank": True}, "another machine"),
        ("default", {}, "our recipe"),
        (
            "default",
            {"model": "slantm", "seed": 5, "regime": "large", "test_far": True},
            "our recipe",
        ),
        ("default", {"solved": None, "batches": 8000}, "our recipe"),
        ("default", {"noise": 0.0}, "another machine"),
        ("default", {"space": "circle"}, "another machine"),
    ],
)
def test_settings_decide(recipe, settings, kind):
    assert kind_of(configure(recipe, **settings).flat()) == kind


def test_a_run_from_before_a_setting_was_there():
    settings = configure("paper").flat()
    for name in ("noise", "output", "anchored"):
        del settings[name]
    assert kind_of(settings) == "paper"


def test_no_setting_is_forgotten():
    """Another value of any setting makes another kind, but for those that are free."""
    told = configure("paper").flat()
    other = {name: object() for name in neutral_settings() if name not in FREE}
    assert {kind_of(told | {name: value}) for name, value in other.items()} == {
        "our training",
        "another machine",
    }


def test_a_model_of_ones_own_is_not_the_papers():
    assert kind_of(configure("paper").flat() | {"model": "mine"}) == "another machine"
