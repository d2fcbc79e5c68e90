"""Double precision for every test, and no silent broadcasting between ranks."""

import os

os.environ.setdefault("NPROC", "1")  # as many threads as a worker has cores

import hypothesis
import jax
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
hypothesis.settings.register_profile("lantm", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("lantm")


@pytest.fixture(autouse=True)
def registries():
    """What a test adds to the registries goes when it ends."""
    import lantm  # noqa: PLC0415 - the type checks are put in at its first import

    known = [(registry, dict(registry)) for registry in (lantm.SPACES, lantm.TASKS)]
    yield
    for registry, before in known:
        registry.clear()
        registry.update(before)
