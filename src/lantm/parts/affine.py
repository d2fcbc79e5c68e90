"""x -> x M + b, the form in which the loops multiply."""

from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float


class Affine(NamedTuple):
    """x -> x @ matrix + bias"""

    matrix: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]


def weight_and_bias(
    linear: eqx.nn.Linear,
) -> tuple[Float[Array, "outputs inputs"], Float[Array, " outputs"]]:
    if linear.bias is None:
        raise ValueError("a linear layer of a cell must have a bias")
    return linear.weight, linear.bias
