"""Double precision for every test, and no silent broadcasting between ranks."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import hypothesis
import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
hypothesis.settings.register_profile("lantm", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("lantm")
