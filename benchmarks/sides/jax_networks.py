"""JAX's networks as functions of their weights, channels last, in the style of JAX's documentation.

Each maker returns the function, its weights and its inputs; for training, the labels, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from serve import Step

RNG = np.random.default_rng(0)
LAYOUT = ("NHWC", "HWIO", "NHWC")
Made = tuple[Any, ...]


def array(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.standard_normal(shape, dtype="float32"))


def integers(high: int, *shape: int) -> jax.Array:
    return jnp.asarray(RNG.integers(0, high, shape))


def train(apply: Callable[..., jax.Array], weights: Any, data: jax.Array, labels: jax.Array) -> Step:
    """SGD with momentum on the cross entropy of apply(weights, data), the whole step compiled."""

    def loss(weights: Any) -> jax.Array:
        scores = jax.nn.log_softmax(apply(weights, data))
        return -jnp.take_along_axis(scores, labels[..., None], axis=-1).mean()

    def update(weights: Any, momenta: Any) -> tuple[Any, Any]:
        momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, jax.grad(loss)(weights))
        return jax.tree.map(lambda w, m: w - 0.01 * m, weights, momenta), momenta

    compiled = jax.jit(update, donate_argnums=(0, 1))
    state = [weights, jax.tree.map(jnp.zeros_like, weights)]

    def step(repeat: int) -> None:
        for _ in range(repeat):
            state[:] = compiled(*state)
        jax.block_until_ready(state)

    return step


def dense(inputs: int, outputs: int) -> tuple[jax.Array, jax.Array]:
    return array(inputs, outputs) / np.sqrt(inputs), jnp.zeros(outputs)


def stacked(layers: Any, x: jax.Array) -> jax.Array:
    """Dense layers with relu between them."""
    for weight, bias in layers[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


def mlp() -> Made:
    layers = [dense(784, 512), dense(512, 512), dense(512, 10)]
    return stacked, layers, array(128, 784), integers(10, 128)


def pool(x: jax.Array, size: int, stride: int, pad: int = 0) -> jax.Array:
    edges = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), edges)


def lenet() -> Made:
    def apply(weights: Any, x: jax.Array) -> jax.Array:
        convolutions, layers = weights
        for weight, bias in convolutions:
            x = jnp.tanh(jax.lax.conv_general_dilated(x, weight, (1, 1), "VALID", dimension_numbers=LAYOUT) + bias)
            x = pool(x, 2, 2)
        (weight, bias), (last_weight, last_bias) = layers
        return jnp.tanh(x.reshape(x.shape[0], -1) @ weight + bias) @ last_weight + last_bias

    convolutions = [(array(5, 5, 1, 20) / 5, jnp.zeros(20)), (array(5, 5, 20, 50) / 22, jnp.zeros(50))]
    return apply, (convolutions, [dense(800, 500), dense(500, 10)]), array(64, 28, 28, 1), integers(10, 64)


def resnet50(batch: int) -> Made:
    """For inference: batch norm is a scale and a shift of each channel."""

    def conv(x: jax.Array, w: Any, stride: int = 1) -> jax.Array:
        weight, scale, shift = w
        pad = weight.shape[0] // 2
        x = jax.lax.conv_general_dilated(x, weight, (stride, stride), [(pad, pad)] * 2, dimension_numbers=LAYOUT)
        return x * scale + shift

    def block(x: jax.Array, w: Any, stride: int) -> jax.Array:
        first, second, third, *shortcut = w
        y = jax.nn.relu(conv(x, first, stride))
        y = conv(jax.nn.relu(conv(y, second)), third)
        return jax.nn.relu(y + (conv(x, shortcut[0], stride) if shortcut else x))

    def apply(weights: Any, x: jax.Array) -> jax.Array:
        stem, stages, (weight, bias) = weights
        x = pool(jax.nn.relu(conv(x, stem, 2)), 3, 2, 1)
        for stage, blocks in enumerate(stages):
            for number, one in enumerate(blocks):
                x = block(x, one, 2 if stage and not number else 1)
        return x.mean((1, 2)) @ weight + bias

    def make(inputs: int, outputs: int, kernel: int) -> Any:
        size = (inputs * kernel * kernel) ** 0.5
        return array(kernel, kernel, inputs, outputs) / size, jnp.ones(outputs), jnp.zeros(outputs)

    channels, stages = 64, []
    for stage, count in enumerate((3, 4, 6, 3)):
        width, blocks = 64 << stage, []
        for number in range(count):
            one = [make(channels, width, 1), make(width, width, 3), make(width, 4 * width, 1)]
            blocks.append(one if number else [*one, make(channels, 4 * width, 1)])
            channels = 4 * width
        stages.append(blocks)
    return apply, (make(3, 64, 7), stages, dense(channels, 1000)), array(batch, 224, 224, 3)


def norm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale + shift


def encoder_layer(w: Any, x: jax.Array, heads: int) -> jax.Array:
    query, key, value = ((x @ w[n][0] + w[n][1]).reshape(*x.shape[:2], heads, -1) for n in ("query", "key", "value"))
    context = jax.nn.dot_product_attention(query, key, value).reshape(x.shape)
    x = norm(x + context @ w["out"][0] + w["out"][1], *w["norm1"])
    up = jax.nn.gelu(x @ w["up"][0] + w["up"][1], approximate=False)
    return norm(x + up @ w["down"][0] + w["down"][1], *w["norm2"])


def encoder_weights(units: int) -> Any:
    square = {name: dense(units, units) for name in ("query", "key", "value", "out")}
    norms = {name: (jnp.ones(units), jnp.zeros(units)) for name in ("norm1", "norm2")}
    return {**square, **norms, "up": dense(units, 4 * units), "down": dense(4 * units, units)}


def transformer(units: int = 256) -> Made:
    def apply(weights: Any, x: jax.Array) -> jax.Array:
        *layers, (weight, bias) = weights
        for one in layers:
            x = encoder_layer(one, x, heads=4)
        return x @ weight + bias

    weights = [encoder_weights(units), encoder_weights(units), dense(units, 1000)]
    return apply, weights, array(8, 128, units), integers(1000, 8, 128)


def bert(units: int = 768) -> Made:
    def apply(weights: Any, tokens: jax.Array) -> jax.Array:
        x = norm(weights["words"][tokens] + weights["places"][: tokens.shape[1]], *weights["norm"])
        for one in weights["layers"]:
            x = encoder_layer(one, x, heads=12)
        return x

    weights = {
        "words": array(30522, units),
        "places": array(512, units),
        "norm": (jnp.ones(units), jnp.zeros(units)),
        "layers": [encoder_weights(units) for _ in range(12)],
    }
    return apply, weights, integers(30522, 1, 128)
