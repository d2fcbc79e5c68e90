"""Recipes: settings that belong together, and what a model can take of them."""

import shlex

import equinox as eqx
import pytest

import lantm
from lantm.cli.commands import build_parser
from lantm.cli.options import given_options
from lantm.training.config import RECIPES, fitting
from lantm.training.updates import initial_machine

LSTM_DRIVEN = tuple(name for name in lantm.MODELS if name not in ("gru", "transformer"))


def test_the_plain_recipe_is_a_config_without_settings():
    assert lantm.configure("plain") == lantm.TrainConfig()
    assert lantm.configure() == lantm.configure("default") != lantm.TrainConfig()


def test_the_papers_recipe_has_none_of_our_settings():
    """But for these six every setting is that of a config without settings."""
    usual, papers = (lantm.configure(name).flat() for name in ("plain", "paper"))
    different = {name for name in usual if usual[name] != papers[name]} - {"model"}
    assert different == RECIPES["paper"].keys()


@pytest.mark.parametrize("model", lantm.MODELS)
def test_the_default_recipe_fits_every_model(model):
    """It can be built, and trained by the shortest command."""
    config = lantm.configure(model=model)
    words = ["lantm", "train", "copy"] + ["--model", model] * (model != "lantm")
    assert config.command == shlex.join(words)
    found = build_parser().parse_or_suggest(words[1:])
    given = given_options(found, lantm.TrainConfig, lantm.ModelConfig)
    assert lantm.configure(found.recipe or "default", **given) == config
    eqx.filter_eval_shape(initial_machine, config)


@pytest.mark.parametrize("model", lantm.MODELS)
def test_a_model_takes_all_of_the_recipe_that_it_can(model):
    config = lantm.configure(model=model)
    own = ("anchored", "blank", "blended", "homing")
    assert {getattr(config.model, name) for name in own} == {model in lantm_models()}
    assert config.noise == (0.0 if model == "transformer" else RECIPES["default"]["noise"])
    assert config.slow_cells == (5 if model in LSTM_DRIVEN else 0)
    assert (config.optimiser, config.steady, config.sizes_per_batch) == ("adam", 2.0, 4)
    assert (config.growth_of, config.rate_by, config.starts) == ("turns", "performance", 8)


def lantm_models():
    return [name for name, design in lantm.MODELS.items() if "space" in design.takes]


def test_all_of_the_recipe_is_for_the_papers_machine():
    left_out = RECIPES["default"].keys() - fitting(RECIPES["default"], {}).keys()
    assert left_out == {"space"}, "the plane is as good as any"


@pytest.mark.parametrize("model", ["slantm", "slantm_s"])
def test_our_sphere_is_told_velocities(model):
    """In place of the paper's; whoever asks for that one gets it."""
    assert lantm.configure(model=model).model.chosen("space") == "sphere2"
    asked = lantm.configure(model=model, space="sphere")
    assert asked.command == f"lantm train copy --model {model} --space sphere"
    assert {lantm.configure(name, model=model).model.space for name in ("plain", "paper")} == {None}


def test_another_controller_takes_what_it_can():
    config = lantm.configure(controller="gru")
    assert (config.slow_cells, config.model.blank) == (0, True)
    assert config.command == "lantm train copy --controller gru"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model": "transformer", "noise": 0.5}, "noise is only for .* got 0.5 for transformer$"),
        ({"model": "lstm", "blank": True}, "blank is only for lantm, .* got True for lstm$"),
        ({"model": "gru", "slow_cells": 5}, "slow_cells is only for lstm controllers, got 5$"),
    ],
)
def test_what_is_asked_for_is_refused_where_a_recipe_would_be_silent(settings, reason):
    with pytest.raises(ValueError, match=reason):
        lantm.configure(**settings)


@pytest.mark.parametrize("name", ["defualt", "steered"])
def test_a_recipe_that_there_is_not(name):
    with pytest.raises(
        ValueError, match=f"^recipe must be one of default, plain, paper; got '{name}'"
    ):
        lantm.configure(name)
