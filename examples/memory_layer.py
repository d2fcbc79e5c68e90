"""The memory inside a model of your own: replay a series of vectors of any length.

    python examples/memory_layer.py [STEPS]

The model is an ordinary Equinox module. It watches a ragged batch of series through a
`MemoryLayer`, then replays each from its memory, without looking. The loss is measured against
the best guess without a memory: the mean, zero.
"""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import lantm

FEATURES, LONGEST, BATCH = 3, 8, 32


class Replay(eqx.Module):
    layer: lantm.MemoryLayer
    readout: eqx.nn.Linear

    def __init__(self, key):
        cell_key, readout_key = jax.random.split(key)
        config = lantm.ModelConfig("lantm", hidden_size=32, memory_width=8, read_gate_bias=-2.0)
        self.layer = lantm.MemoryLayer(lantm.build_cell(config, FEATURES, 16, key=cell_key))
        self.readout = eqx.nn.Linear(16, FEATURES, key=readout_key)

    def __call__(self, series, lengths):
        state = self.layer.init_state(batch=series.shape[0], steps=series.shape[1])
        _, state = self.layer(series, state, lengths)
        features, _ = self.layer(jnp.zeros_like(series), state, write=False)
        return jax.vmap(jax.vmap(self.readout))(features)


def sample(key):
    """Series of LONGEST vectors, of which the first `lengths` count."""
    series_key, length_key = jax.random.split(key)
    series = jax.random.uniform(series_key, (BATCH, LONGEST, FEATURES), minval=-1, maxval=1)
    return series, jax.random.randint(length_key, (BATCH,), 1, LONGEST + 1)


def error(model, series, lengths):
    """The mean squared error, in units of the series' variance."""
    counted = jnp.arange(LONGEST)[None, :] < lengths[:, None]
    squares = jnp.mean((model(series, lengths) - series) ** 2, axis=-1)
    return jnp.mean(squares, where=counted) / (1 / 3)


def main(steps: int = 2000) -> float:
    model = Replay(jax.random.key(0))
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
    state = optimiser.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state, key):
        loss, grads = eqx.filter_value_and_grad(error)(model, *sample(key))
        updates, state = optimiser.update(grads, state)
        return eqx.apply_updates(model, updates), state, loss

    loss = jnp.inf
    for i, key in enumerate(jax.random.split(jax.random.key(1), steps)):
        model, state, loss = step(model, state, key)
        if i % 200 == 0 or i == steps - 1:
            print(f"step {i:5d}: error {loss:.3f} (1 is a guess without memory)")
    return float(loss)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
