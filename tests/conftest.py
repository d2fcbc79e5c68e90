"""Double precision for every test, and no silent broadcasting between ranks."""

import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import hypothesis
import jax

sys.dont_write_bytecode = True
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
hypothesis.settings.register_profile("lantm", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("lantm")
