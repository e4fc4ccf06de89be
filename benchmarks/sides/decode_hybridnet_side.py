"""HybridNet's decoder in two ways: the whole decode as one while_loop, and a step per word with donated caches."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
from decode_net import (
    BEAM_CASES,
    BEAMS,
    GREEDY,
    HEADS,
    LAYERS,
    NEVER,
    POSITIONS,
    PROMPT,
    SIZE,
    TOKENS,
    UNITS,
    WORDS,
    best_beam,
    keep_words,
    parts,
    prompt,
    weights,
)
from hybridnet import nd
from hybridnet.contrib import quantization
from hybridnet.gluon import HybridBlock, nn
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


class Scores(HybridBlock):
    """(words, position, caches) -> (scores of the next words, caches): words (batch, length), position (1,), scores
    (batch, 1, WORDS), and per layer a cache of keys and one of values, (batch, heads, rows, size)."""

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
        return (self.head(self.last(last)), *kept)


class Decoder(HybridBlock):
    """The same with the words (batch, 1) of the highest scores."""

    def __init__(self, scores: Scores) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, words: Any, position: Any, *caches: Any) -> Any:
        scores, *caches = self.scores(words, position, *caches)
        return (nd.argmax(scores, axis=2).astype("int64"), *caches)


class Beams(HybridBlock):
    """(words, position, chances, caches) -> (words, chances, parents, caches) of the best continuations: chances and
    parents (beams,); the caches of a beam are those of its parent."""

    def __init__(self, scores: Scores) -> None:
        super().__init__()
        self.scores = scores

    def forward(self, words: Any, position: Any, chances: Any, *caches: Any) -> Any:
        scores, *caches = self.scores(words, position, *caches)
        totals = nd.log_softmax(scores.squeeze(axis=1)) + chances.expand_dims(1)
        chances, best = nd.topk(totals.reshape((-1,)), k=BEAMS, ret_typ="both", dtype="int32")
        parents = nd.floor(best / WORDS)
        words = (best - parents * WORDS).expand_dims(1).astype("int64")
        return (words, chances, parents, *(nd.take(cache, parents, axis=0) for cache in caches))


class Loop(HybridBlock):
    """(words, caches) -> (the words that follow, caches), all words in one call."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, words: Any, *caches: Any) -> Any:
        first, *caches = self.decoder(words, nd.zeros((1,), dtype="int64"), *caches)

        def body(position: Any, word: Any, *caches: Any) -> Any:
            word, *caches = self.decoder(word, position, *caches)
            return word, (position + 1, word, *caches)

        start = (nd.full((1,), PROMPT, dtype="int64"), first, *caches)
        end = PROMPT + TOKENS - 1
        rest, last = mx.contrib.while_loop(lambda position, *_: position < end, body, start, TOKENS - 1)
        return (nd.concat(first, rest.squeeze(axis=2).transpose(), dim=1), *last[2:])


class BeamLoop(HybridBlock):
    """(words, chances, caches) -> (words, parents, caches): words and parents of the beams that follow a prompt, both
    (TOKENS, BEAMS)."""

    def __init__(self, beams: Beams) -> None:
        super().__init__()
        self.beams = beams

    def forward(self, words: Any, chances: Any, *caches: Any) -> Any:
        first, chances, origin, *caches = self.beams(words, nd.zeros((1,), dtype="int64"), chances, *caches)

        def body(position: Any, word: Any, chances: Any, *caches: Any) -> Any:
            word, chances, parents, *caches = self.beams(word, position, chances, *caches)
            return (word.squeeze(axis=1), parents), (position + 1, word, chances, *caches)

        start = (nd.full((1,), PROMPT, dtype="int64"), first, chances, *caches)
        end = PROMPT + TOKENS - 1
        (words, parents), last = mx.contrib.while_loop(lambda position, *_: position < end, body, start, TOKENS - 1)
        origins = nd.concat(origin.expand_dims(0), parents, dim=0)
        return (nd.concat(first.transpose(), words, dim=0), origins, *last[3:])


def scores() -> Scores:
    net = Scores()
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


MADE: dict[str, Any] = {}


def options(dtype: str) -> dict[str, Any]:
    """The keywords for hybridize()."""
    precision = {"precision": dtype} if dtype == "bfloat16" else {}
    return {"static_alloc": True, "strict": True, **precision}


def scores_of(dtype: str) -> Any:
    dtype = "float32" if dtype == "bfloat16" else dtype
    if dtype not in MADE:
        net = scores()
        if dtype != "float32":
            caches = [mx.io.DataDesc(f"cache{i}", (2, HEADS, PROMPT, SIZE)) for i in range(2 * LAYERS)]
            words = mx.io.DataDesc("words", (2, PROMPT), "int64"), mx.io.DataDesc("position", (1,), "int64")
            net = quantization.quantize_net(
                net, data_shapes=[*words, *caches], mode="weights" if dtype == "int8" else dtype
            )
        MADE[dtype] = net
    return MADE[dtype]


def empty_caches(batch: int, rows: int) -> list[Any]:
    return [nd.zeros((batch, HEADS, rows, SIZE)) for _ in range(2 * LAYERS)]


def first_chances() -> Any:
    """All beams begin with the same words: the first one alone counts."""
    return nd.array([0.0] + [NEVER] * (BEAMS - 1))


def loop(name: str) -> Step:
    dtype, batch, rows = parts(name)
    block = Loop(Decoder(scores_of(dtype)))
    block.hybridize(**options(dtype), donate=["caches"])
    words = nd.array(prompt(batch), dtype="int64")
    caches = empty_caches(batch, rows)

    def step(repeat: int) -> None:
        nonlocal caches
        for _ in range(repeat):
            chosen, *caches = block(words, *caches)
            chosen.wait_to_read()
        keep_words("hybridnet loop", name, chosen.asnumpy())

    return step


def steps(name: str) -> Step:
    dtype, batch, rows = parts(name)
    net = Decoder(scores_of(dtype))
    net.hybridize(**options(dtype), donate=["caches"])
    start = nd.array(prompt(batch), dtype="int64")
    caches = empty_caches(batch, rows)

    def step(repeat: int) -> None:
        nonlocal caches
        for _ in range(repeat):
            word, *caches = net(start, nd.zeros((1,), dtype="int64"), *caches)
            chosen = [word]
            for i in range(TOKENS - 1):
                word, *caches = net(word, nd.full((1,), PROMPT + i, dtype="int64"), *caches)
                chosen.append(word)
            chosen[-1].wait_to_read()
        keep_words("hybridnet step", name, nd.concat(*chosen, dim=1).asnumpy())

    return step


def beam_loop(name: str) -> Step:
    dtype, beams, rows = parts(name)
    block = BeamLoop(Beams(scores_of(dtype)))
    block.hybridize(**options(dtype), donate=["caches"])
    words = nd.array(prompt(1).repeat(beams, 0), dtype="int64")
    caches = empty_caches(beams, rows)

    def step(repeat: int) -> None:
        nonlocal caches
        for _ in range(repeat):
            chosen, parents, *caches = block(words, first_chances(), *caches)
            parents.wait_to_read()
        found = best_beam(chosen.asnumpy().astype("int64"), parents.asnumpy().astype("int64"))
        keep_words("hybridnet loop", name, found)

    return step


def beam_steps(name: str) -> Step:
    dtype, beams, rows = parts(name)
    net = Beams(scores_of(dtype))
    net.hybridize(**options(dtype), donate=["caches"])
    start = nd.array(prompt(1).repeat(beams, 0), dtype="int64")
    caches = empty_caches(beams, rows)

    def step(repeat: int) -> None:
        nonlocal caches
        for _ in range(repeat):
            word, chances, parents, *caches = net(start, nd.zeros((1,), dtype="int64"), first_chances(), *caches)
            words, origins = [word], [parents]
            for i in range(TOKENS - 1):
                position = nd.full((1,), PROMPT + i, dtype="int64")
                word, chances, parents, *caches = net(word, position, chances, *caches)
                words.append(word)
                origins.append(parents)
            words[-1].wait_to_read()
        chosen = nd.concat(*words, dim=1).asnumpy().T.astype("int64")
        keep_words("hybridnet step", name, best_beam(chosen, nd.stack(*origins).asnumpy().astype("int64")))

    return step


if __name__ == "__main__":
    ways = {"": (loop, beam_loop), "step ": (steps, beam_steps)}
    cases = {
        prefix + name: lambda name=name, make=make: make(name)
        for prefix, (greedy, beams) in ways.items()
        for make, names in ((greedy, GREEDY), (beams, BEAM_CASES))
        for name in names
    }
    serve(mx.__version__, cases)
