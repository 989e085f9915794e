"""The cases in which JAX is a peer."""

import jax
import jax.numpy as jnp
import numpy as np

from . import Case, inputs, repeat


def matmul():
    a, b = (jnp.asarray(array) for array in inputs.matrices())
    call = jax.jit(jnp.matmul)
    return Case(repeat(lambda: call(a, b), jax.block_until_ready), lambda: [np.asarray(call(a, b))])


CASES = {"matmul": matmul}
