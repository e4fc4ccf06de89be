"""HybridNet's decoder in two ways: the whole decode as one while_loop, and a step per word with donated caches."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
from decode_net import (
    CASES,
    HEADS,
    LAYERS,
    POSITIONS,
    PROMPT,
    SIZE,
    TOKENS,
    UNITS,
    WORDS,
    keep_words,
    parts,
    prompt,
    weights,
)
from hybridnet import nd
from hybridnet.contrib import quantization
from hybridnet.gluon import HybridBlock, SymbolBlock, nn
from serve import Step, serve


class Layer(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(), nn.LayerNorm()
        self.qkv = nn.Dense(3 * UNITS, flatten=False)
        self.projection = nn.Dense(UNITS, flatten=False)
        self.inner = nn.Dense(4 * UNITS, flatten=False)
        self.outer = nn.Dense(UNITS, flatten=False)

    def forward(self, x: Any, rows: Any, key: Any, value: Any) -> Any:
        q, k, v = (
            part.reshape((0, 0, HEADS, SIZE)).transpose((0, 2, 1, 3))
            for part in nd.split(self.qkv(self.before(x)), 3, axis=2)
        )
        key = nd.contrib.index_copy(key, rows, k, axis=2)
        value = nd.contrib.index_copy(value, rows, v, axis=2)
        lengths = nd.broadcast_like((rows + 1).reshape((1, 1, -1)), q, lhs_axes=(0, 1), rhs_axes=(0, 1))
        scores = nd.batch_dot(q, key, transpose_b=True) / SIZE**0.5
        mixed = nd.batch_dot(nd.softmax(scores, lengths, use_length=True), value)
        x = x + self.projection(mixed.transpose((0, 2, 1, 3)).reshape((0, 0, -3)))
        inner = self.inner(self.between(x))
        inner = 0.5 * inner * (1 + nd.tanh(0.7978845608 * (inner + 0.044715 * inner**3)))
        return x + self.outer(inner), key, value


class Decoder(HybridBlock):
    """(words, position, caches) -> (next words, caches): words (batch, length), position (1,), and per layer a cache of
    keys and one of values, (batch, heads, rows, size)."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, UNITS)
        self.positions = nn.Embedding(POSITIONS, UNITS)
        self.layers = nn.HybridSequential()
        for _ in range(LAYERS):
            self.layers.add(Layer())
        self.last = nn.LayerNorm()
        self.head = nn.Dense(WORDS, use_bias=False, flatten=False)

    def forward(self, words: Any, position: Any, *caches: Any) -> Any:
        rows = position + nd.contrib.arange_like(words, axis=1).astype("int64")
        x = self.words(words) + self.positions(rows).expand_dims(0)
        kept = []
        for i, layer in enumerate(self.layers):
            x, key, value = layer(x, rows, caches[2 * i], caches[2 * i + 1])
            kept += [key, value]
        last = x.slice_axis(axis=1, begin=-1, end=None)
        chosen = nd.argmax(self.head(self.last(last)), axis=2)
        return (chosen.astype("int64"), *kept)


class Loop(HybridBlock):
    """The words that follow a prompt, all of them in one call."""

    def __init__(self, decoder: Decoder, rows: int) -> None:
        super().__init__()
        self.decoder, self.rows = decoder, rows

    def forward(self, words: Any) -> Any:
        caches = [nd.zeros((words.shape[0], HEADS, self.rows, SIZE)) for _ in range(2 * LAYERS)]
        first, *caches = self.decoder(words, nd.zeros((1,), dtype="int64"), *caches)

        def body(position: Any, word: Any, *caches: Any) -> Any:
            word, *caches = self.decoder(word, position, *caches)
            return word, (position + 1, word, *caches)

        start = (nd.full((1,), PROMPT, dtype="int64"), first, *caches)
        end = PROMPT + TOKENS - 1
        rest, _ = mx.contrib.while_loop(lambda position, *_: position < end, body, start, TOKENS - 1)
        return nd.concat(first, rest.squeeze(axis=2).transpose(), dim=1)


def decoder() -> Decoder:
    net = Decoder()
    net.initialize()
    given = weights()
    one = nd.zeros((1, HEADS, 1, SIZE))
    net(nd.zeros((1, 1), dtype="int64"), nd.zeros((1,), dtype="int64"), *[one] * (2 * LAYERS))
    net.words.weight.set_data(given["words"])
    net.positions.weight.set_data(given["positions"])
    net.head.weight.set_data(given["words"])
    for i, layer in enumerate(net.layers):
        for name in ("qkv", "projection", "inner", "outer"):
            getattr(layer, name).weight.set_data(given[f"{i}.{name}"])
            getattr(layer, name).bias.set_data(given[f"{i}.{name}.bias"])
    for name, norm in [
        ("last", net.last),
        *(
            (f"{i}.{name}", getattr(layer, name))
            for i, layer in enumerate(net.layers)
            for name in ("before", "between")
        ),
    ]:
        norm.gamma.set_data(given[f"{name}.scale"])
        norm.beta.set_data(given[f"{name}.shift"])
    return net


DECODERS: dict[str, Any] = {}


def decoder_of(dtype: str) -> Any:
    if dtype not in DECODERS:
        net = decoder()
        if dtype == "int8":
            caches = [mx.io.DataDesc(f"cache{i}", (2, HEADS, PROMPT, SIZE)) for i in range(2 * LAYERS)]
            words = mx.io.DataDesc("words", (2, PROMPT), "int64"), mx.io.DataDesc("position", (1,), "int64")
            net = quantization.quantize_net(net, data_shapes=[*words, *caches], mode="weights")
        DECODERS[dtype] = net
    return DECODERS[dtype]


def loop(name: str) -> Step:
    dtype, batch, rows = parts(name)
    block = Loop(decoder_of(dtype), rows)
    block.hybridize(static_alloc=True, strict=True)
    words = nd.array(prompt(batch), dtype="int64")

    def step(repeat: int) -> None:
        for _ in range(repeat):
            chosen = block(words)
            chosen.wait_to_read()
        keep_words("hybridnet loop", name, chosen.asnumpy())

    return step


def steps(name: str) -> Step:
    dtype, batch, rows = parts(name)
    net = decoder_of(dtype)
    donated = [f"data{i}" for i in range(2, 2 + 2 * LAYERS)] if isinstance(net, SymbolBlock) else ["caches"]
    net.hybridize(static_alloc=True, strict=True, donate=donated)
    start = nd.array(prompt(batch), dtype="int64")

    def step(repeat: int) -> None:
        for _ in range(repeat):
            caches = [nd.zeros((batch, HEADS, rows, SIZE)) for _ in range(2 * LAYERS)]
            word, *caches = net(start, nd.zeros((1,), dtype="int64"), *caches)
            chosen = [word]
            for i in range(TOKENS - 1):
                word, *caches = net(word, nd.full((1,), PROMPT + i, dtype="int64"), *caches)
                chosen.append(word)
            chosen[-1].wait_to_read()
        keep_words("hybridnet step", name, nd.concat(*chosen, dim=1).asnumpy())

    return step


if __name__ == "__main__":
    made = {name: lambda name=name: loop(name) for name in CASES}
    serve(mx.__version__, made | {f"step {name}": lambda name=name: steps(name) for name in CASES})
