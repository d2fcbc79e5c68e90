"""Controllers: what drives the heads. A new one is a file beside these and a line below."""

from lantm.parts.controllers.base import Activate, Controller, Layer, LayerState, MakeLayer
from lantm.parts.controllers.gru import GRULayer, GRUState
from lantm.parts.controllers.lstm import LSTMLayer, LSTMState

CONTROLLERS: dict[str, MakeLayer] = {"lstm": LSTMLayer, "gru": GRULayer}
"""What makes a layer of every controller, by name."""

__all__ = [
    "CONTROLLERS",
    "Activate",
    "Controller",
    "GRULayer",
    "GRUState",
    "LSTMLayer",
    "LSTMState",
    "Layer",
    "LayerState",
    "MakeLayer",
]
