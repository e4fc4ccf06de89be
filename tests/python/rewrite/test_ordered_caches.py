"""Caches of keys and values that a loop reorders after each word stay in place; the results keep their bits."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd

STEPS = 9
# Parents are out of range on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:(?s).*expected an integer from 0 to")


@dataclasses.dataclass(frozen=True)
class Search:
    """A loop over steps that write `new` rows of keys and values, attend, and reorder the caches."""

    beams: int = 3
    heads: int = 2
    shared: int = 1  # heads of queries for each head of keys
    size: int = 4
    new: int = 1
    layers: int = 2
    inside: bool = False  # (beams, rows, heads, size) instead of (beams, heads, rows, size)
    mode: str = "clip"
    parents_dtype: str = "int32"
    mask: str = "lengths"  # or "added" or none
    written: str = "index_copy"  # or "assign"
    dtype: str = "float32"
    # The use that keeps the caches from staying in place.
    spoiled: str = ""

    @property
    def rows(self) -> int:
        return STEPS * self.new + 2

    @property
    def cache_shape(self) -> tuple[int, ...]:
        if self.inside:
            return self.beams, self.rows, self.heads, self.size
        return self.beams, self.heads, self.rows, self.size

    @property
    def axis(self) -> int:
        return 1 if self.inside else 2


class Loop(gluon.HybridBlock):
    def __init__(self, search: Search) -> None:
        super().__init__()
        self.search = search

    def attended(self, query: Any, key: Any, value: Any, position: Any) -> Any:
        s = self.search
        if s.inside:
            query, key, value = (x.transpose((0, 2, 1, 3)) for x in (query, key, value))
        if s.shared > 1:
            key, value = (nd.repeat(x, s.shared, axis=1) for x in (key, value))
        scores = nd.batch_dot(query, key, transpose_b=True) * 0.5
        if s.mask == "lengths":
            lengths = (position + s.new).astype("int32").reshape((1, 1, 1))
            lengths = nd.broadcast_to(lengths, shape=(s.beams, s.heads * s.shared, s.new))
            weights = nd.softmax(scores, lengths, use_length=True)
        elif s.mask == "added":
            behind = nd.arange(s.rows).reshape((1, 1, 1, -1)) >= (position + s.new).astype("float32").reshape(
                (1, 1, 1, 1)
            )
            weights = nd.softmax(nd.broadcast_add(scores, behind.astype(s.dtype) * -1e4))
        else:
            weights = nd.softmax(scores)
        mixed = nd.batch_dot(weights, value)
        return mixed.transpose((0, 2, 1, 3)) if s.inside else mixed

    def write(self, cache: Any, rows: Any, new: Any) -> Any:
        s = self.search
        if s.written == "assign":
            if s.inside:
                cache[:, rows] = new
            else:
                cache[:, :, rows] = new
            return cache
        return nd.contrib.index_copy(cache, rows, new, axis=s.axis)

    def step(self, position: Any, x: Any, parents: Any, *caches: Any) -> tuple[Any, ...]:
        s = self.search
        rows = position + nd.arange(s.new, dtype="int64")
        kept, seen = [], []
        for layer in range(s.layers):
            query = nd.broadcast_add(x, nd.array(np.linspace(-1, 1, s.size), dtype=s.dtype).reshape((1, 1, 1, -1)))
            new = nd.slice_axis(nd.sin(query * (layer + 2)), axis=3 - s.axis, begin=0, end=s.heads)
            key, value = self.write(caches[2 * layer], rows, new), self.write(caches[2 * layer + 1], rows, new * 2)
            if s.spoiled == "another reader":
                x = x + nd.mean(value)
            attended = self.attended(query, key, nd.cos(value) if s.spoiled == "one is no cache" else value, position)
            x = nd.tanh(attended + x)
            if s.spoiled == "output":
                seen.append(value)
            others = parents if s.spoiled != "other parents" else s.beams - 1 - parents
            kept += [nd.take(key, parents, axis=0, mode=s.mode), nd.take(value, others, axis=0, mode=s.mode)]
        turned = (parents * 2 + position.astype(s.parents_dtype).reshape((1,)) + 1) % (s.beams + 1)
        return (nd.sum(x, axis=(1, 2, 3)), *seen), (position + s.new, nd.take(x, turned, axis=0), turned, *kept)

    def forward(self, x: Any, parents: Any, *caches: Any) -> Any:
        end = STEPS * self.search.new
        rows, last = mx.contrib.while_loop(
            lambda position, x, parents, *_: position < end, self.step,
            (nd.zeros((1,), dtype="int64"), x, parents, *caches), STEPS + 3,
        )  # fmt: skip
        return (*(rows if isinstance(rows, (list, tuple)) else [rows]), *last[1:])


def inputs(s: Search) -> list[Any]:
    rng = np.random.default_rng(0)
    heads = s.heads * s.shared
    shape = (s.beams, s.new, heads, s.size) if s.inside else (s.beams, heads, s.new, s.size)
    x = nd.array(rng.standard_normal(shape), dtype=s.dtype)
    parents = nd.array(rng.integers(0, max(s.beams, 1), s.beams), dtype=s.parents_dtype)
    return [x, parents, *(nd.array(rng.standard_normal(s.cache_shape), dtype=s.dtype) for _ in range(2 * s.layers))]


def numbers(outputs: Any) -> list[np.ndarray]:
    return [x.astype("float32").asnumpy() if x.dtype != np.float64 else x.asnumpy() for x in outputs]


def ops(block: Any) -> list[str]:
    """The operators of the block's plan, with those of bodies."""
    return re.findall(r"^ *\[\d+\] (\w+)", block.plan_text(), re.MULTILINE)


def run(s: Search, **options: Any) -> tuple[list[np.ndarray], list[str]]:
    """The outputs of the hybridized loop, and the operators of its plan."""
    block = Loop(s)
    block.hybridize(**options)
    return numbers(block(*inputs(s))), ops(block)


KEPT = {
    "plain": Search(),
    "one beam": Search(beams=1),
    "five beams": Search(beams=5, layers=1),
    "no mask": Search(mask=""),
    "added mask": Search(mask="added"),
    "rows first": Search(inside=True),
    "shared keys": Search(shared=3),
    "two words in a step": Search(new=2),
    "float parents": Search(parents_dtype="float32"),
    "wrapped parents": Search(mode="wrap"),
    "assigned": Search(written="assign"),
    "float64": Search(dtype="float64"),
    "bfloat16": Search(dtype="bfloat16"),
    "float16": Search(dtype="float16"),
    "long": Search(size=40, layers=3),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("options", [{}, {"static_alloc": True, "static_shape": True}], ids=["plain", "static"])
def test_caches_stay_in_place_and_results_keep_their_bits(name, options):
    search = KEPT[name]
    found, plan = run(search, **options)
    assert plan.count("_ordered_attention") == search.layers
    assert plan.count("_ordered_rows") == 2 * search.layers
    expected, plain = run(search, passes="-ordered_caches", **options)
    assert "_ordered_attention" not in plain and "_ordered_rows" not in plain
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["plain", "rows first", "shared keys", "two words in a step", "added mask"])
def test_loops_agree_with_imperative_ones(name):
    search = dataclasses.replace(KEPT[name], dtype="float64")
    found, plan = run(search)
    assert "_ordered_attention" in plan
    for ours, theirs in zip(found, numbers(Loop(search)(*inputs(search))), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_the_search_is_that_of_numpy():
    s = Search(layers=1)
    x, parents, key, value = (a.asnumpy().astype("float64") for a in inputs(s))
    parents, sums = parents.astype(int), []
    for step in range(STEPS):
        query = x + np.linspace(-1, 1, s.size)
        new = np.sin(query * 2)
        key[:, :, step], value[:, :, step] = new[:, :, 0], new[:, :, 0] * 2
        scores = np.einsum("bhqd,bhkd->bhqk", query, key[:, :, : step + 1]) * 0.5
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        x = np.tanh(np.einsum("bhqk,bhkd->bhqd", weights / weights.sum(-1, keepdims=True), value[:, :, : step + 1]) + x)
        sums.append(x.sum((1, 2, 3)))
        taken = parents.clip(0, s.beams - 1)
        key, value = key[taken], value[taken]
        parents = (parents * 2 + step + 1) % (s.beams + 1)
        x = x[parents.clip(0, s.beams - 1)]
    found, _ = run(s)
    for ours, theirs in zip(found, [np.array(sums), x, parents, key, value], strict=True):
        np.testing.assert_allclose(ours[: len(theirs)], theirs, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("spoiled", ["another reader", "one is no cache", "output", "other parents"])
def test_caches_that_are_used_in_another_way_are_reordered(spoiled):
    search = dataclasses.replace(KEPT["plain"], spoiled=spoiled)
    found, plan = run(search)
    assert "_ordered_attention" not in plan and "_ordered_rows" not in plan
    for ours, theirs in zip(found, numbers(Loop(search)(*inputs(search))), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [{"size": 0}, {"beams": 0, "mask": ""}, {"heads": 0, "mask": ""}], ids=str)
def test_empty_caches_are_left_as_they_are(sizes, capfd):
    search = Search(**sizes)
    found, plan = run(search)
    assert "_ordered_attention" not in plan
    for ours, theirs in zip(found, numbers(Loop(search)(*inputs(search))), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert "ordered_caches" not in capfd.readouterr().err  # the warning of a pass that fails


def test_many_words_in_a_step_are_attended_without_the_order():
    found, plan = run(Search(new=9))
    assert "_ordered_attention" not in plan and "_ordered_rows" not in plan
    for ours, theirs in zip(found, numbers(Loop(Search(new=9))(*inputs(Search(new=9)))), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_donated_caches_are_those_of_a_loop_without_donation():
    search = Search()
    block, (x, parents, *caches) = Loop(search), inputs(search)
    block.hybridize(static_alloc=True, donate=["caches"])
    expected, _ = run(search)
    first = block(x, parents, *caches)
    assert "_ordered_rows" in ops(block)
    for ours, theirs in zip(numbers(first), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    again = block(x, parents, *first[3:])  # the memory of the first results
    repeated, _ = run(search)
    plain = Loop(search)
    plain.hybridize()
    results = plain(x, parents, *(nd.array(cache, dtype=search.dtype) for cache in expected[3:]))
    for ours, theirs in zip(numbers(again), numbers(results), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(repeated, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["plain", "shared keys", "rows first"])
def test_gradients_are_those_of_reordered_caches(name):
    search = dataclasses.replace(KEPT[name], dtype="float64")
    grads = []
    for passes in ("", "-ordered_caches"):
        block, given = Loop(search), inputs(search)
        block.hybridize(passes=passes)
        for array in (given[0], *given[2:]):
            array.attach_grad()
        with autograd.record():
            out = block(*given)
            loss = sum((x * x).sum() for x in (out[0], *out[3:]))
        loss.backward()
        grads.append([array.grad.asnumpy() for array in (given[0], *given[2:])])
    assert any(np.abs(grad).max() > 0 for grad in grads[0])
    for ours, theirs in zip(*grads, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_loop_without_iterations_returns_its_caches():
    search = Search()

    class Never(Loop):
        def forward(self, x: Any, parents: Any, *caches: Any) -> Any:
            begin = ((parents.slice_axis(axis=0, begin=0, end=1) * 0 + STEPS).astype("int64"), x, parents, *caches)
            _, last = mx.contrib.while_loop(lambda position, *_: position < STEPS, self.step, begin, STEPS)
            return last[3:]

    block, given = Never(search), inputs(search)
    block.hybridize()
    found = block(*given)
    assert "_ordered_rows" in ops(block)
    for ours, theirs in zip(found, given[2:], strict=True):
        np.testing.assert_array_equal(ours.asnumpy(), theirs.asnumpy())


def test_a_position_out_of_range_is_named():
    search = dataclasses.replace(Search(), written="index_copy")

    class Beyond(Loop):
        def forward(self, x: Any, parents: Any, *caches: Any) -> Any:
            begin = (nd.full((1,), search.rows - 2, dtype="int64"), x, parents, *caches)
            return mx.contrib.while_loop(lambda position, *_: position < 1000, self.step, begin, 50)[1]

    block = Beyond(search)
    block.hybridize()
    with pytest.raises(IndexError, match="_contrib_index_copy"):
        block(*inputs(search))[-1].asnumpy()
