"""JAX's programs: the whole step compiled by jax.jit, in the style of JAX's documentation of training and loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax_networks as networks
from jax_networks import array
from serve import Step, serve


def repeated(function: Callable[..., Any], *inputs: Any) -> Step:
    """Compiles the function now; a step waits for the results of all calls at its end."""
    compiled = jax.jit(function)
    jax.block_until_ready(compiled(*inputs))

    def step(repeat: int) -> None:
        for _ in range(repeat):
            out = compiled(*inputs)
        jax.block_until_ready(out)

    return step


def lstm_weights() -> list[jax.Array]:
    """For each of two layers of 256: weights of input and state, one bias."""
    weights = []
    for _ in range(2):
        weights += [array(256, 1024) / 16, array(256, 1024) / 16, jnp.zeros(1024)]
    return weights


def run_lstm(weights: list[jax.Array], data: jax.Array) -> jax.Array:
    def cell(x, state, input_weight, state_weight, bias):
        h, c = state
        i, f, g, o = jnp.split(x @ input_weight + h @ state_weight + bias, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return h, c

    def body(states, x):
        low = cell(x, states[0], *weights[:3])
        high = cell(low[0], states[1], *weights[3:])
        return (low, high), high[0]

    zeros = jnp.zeros((data.shape[1], 256))
    return jax.lax.scan(body, ((zeros, zeros), (zeros, zeros)), data)[1]


def lstm_foreach_train() -> Step:
    gradient = jax.value_and_grad(lambda weights, data: run_lstm(weights, data).sum())
    return repeated(gradient, lstm_weights(), array(35, 32, 256))


def expression(x: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.tanh(a * x + b) * jax.nn.sigmoid(x) + x


def while_1000() -> Step:
    def count(i, x):
        return jax.lax.while_loop(lambda v: v[0] < 1000, lambda v: (v[0] + 1, v[1] * 0.999), (i, x))

    return repeated(count, jnp.zeros(()), jnp.ones(8))


CASES = {
    "add_scalar/jit": lambda: repeated(lambda x: x + 1, array(4, 4)),
    "multiply_add/jit": lambda: repeated(lambda a, b, c: a * b + c, *(array(4, 4) for _ in range(3))),
    "dot_32/jit": lambda: repeated(jnp.dot, array(32, 32), array(32, 32)),
    "mlp_train/jit": lambda: networks.train(*networks.mlp()),
    "lenet_train/jit": lambda: networks.train(*networks.lenet()),
    "transformer_train/jit": lambda: networks.train(*networks.transformer()),
    "resnet50_infer_1/jit": lambda: repeated(*networks.resnet50(1)),
    "bert_infer/jit": lambda: repeated(*networks.bert()),
    "lstm_foreach/jit": lambda: repeated(run_lstm, lstm_weights(), array(35, 32, 256)),
    "lstm_foreach_train/jit": lstm_foreach_train,
    "expression_16m/jit": lambda: repeated(expression, *(array(1 << 24) for _ in range(3))),
    "linear_16m/jit": lambda: repeated(lambda x, y, z, a, b: a * x + b * y + z, *(array(1 << 24) for _ in range(5))),
    "while_1000/jit": while_1000,
    "cond_call/jit": lambda: repeated(lambda x: jax.lax.cond(x.sum() > 0, lambda: x * 2, lambda: x * 3), jnp.ones(8)),
}

if __name__ == "__main__":
    serve(jax.__version__, CASES)
