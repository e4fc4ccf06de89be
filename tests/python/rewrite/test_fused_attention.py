"""Attention composed of operators runs as one operator, with and without dropout, if nothing else reads its weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon

from rewrite.graphs import Function


def _scores(F: Any, q: Any, k: Any) -> Any:
    return F.batch_dot(q, k, transpose_b=True) * 0.25


def _plain(F: Any, q: Any, k: Any, v: Any) -> Any:
    return F.batch_dot(F.softmax(_scores(F, q, k)), v)


def _transposed(F: Any, q: Any, k: Any, v: Any) -> Any:
    return F.batch_dot(F.softmax(F.batch_dot(q, F.transpose(k, axes=(0, 2, 1))) / 4), v)


def _masked(F: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return F.batch_dot(F.softmax(F.broadcast_add(_scores(F, q, k), mask), axis=2), v)


def _shortened(F: Any, q: Any, k: Any, v: Any, lengths: Any) -> Any:
    return F.batch_dot(F.softmax(_scores(F, q, k), lengths, use_length=True), v)


def _dropped(F: Any, q: Any, k: Any, v: Any) -> Any:
    return F.batch_dot(F.Dropout(F.softmax(_scores(F, q, k)), p=0.3), v)


def _interleaved(F: Any, qkv: Any) -> Any:
    scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=3)
    return F.contrib.interleaved_matmul_selfatt_valatt(qkv, F.Dropout(F.softmax(scores), p=0.2), heads=3)


def _interleaved_cross(F: Any, q: Any, kv: Any, mask: Any) -> Any:
    scores = F.contrib.interleaved_matmul_encdec_qk(q, kv, heads=3)
    return F.contrib.interleaved_matmul_encdec_valatt(kv, F.softmax(scores + mask), heads=3)


def _split(F: Any, x: Any) -> Any:  # (batch, length, 3 heads * size) to (batch * heads, length, size)
    return x.reshape((0, 0, 3, -1)).transpose((0, 2, 1, 3)).reshape((-3, 0, 0))


def _joined(x: Any) -> Any:
    return x.reshape((-4, -1, 3, 0, 0)).transpose((0, 2, 1, 3)).reshape((0, 0, -3))


def _heads(F: Any, q: Any, k: Any, v: Any) -> Any:
    return _joined(_plain(F, *(_split(F, x) for x in (q, k, v))))


def _heads_dropped(F: Any, q: Any, k: Any, v: Any) -> Any:
    return _joined(_dropped(F, *(_split(F, x) for x in (q, k, v))))


def _heads_masked(F: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    return _joined(_masked(F, *(_split(F, x) for x in (q, k, v)), mask))


def _heads_shortened(F: Any, q: Any, k: Any, v: Any, lengths: Any) -> Any:
    return _joined(_shortened(F, *(_split(F, x) for x in (q, k, v)), lengths))


def _heads_of_four_axes(F: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    q, k, v = (x.reshape((0, 0, 3, -1)) for x in (q, k, v))
    scores = F.batch_dot(q.transpose((0, 2, 1, 3)), k.transpose((0, 2, 3, 1))) / 4
    weights = F.softmax(F.broadcast_add(scores, mask))
    return F.batch_dot(weights, F.swapaxes(v, 1, 2)).transpose((0, 2, 1, 3)).reshape((0, 0, -3))


def _heads_of_one_sequence(F: Any, q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.reshape((0, 3, -1)).transpose((1, 0, 2)) for x in (q, k, v))
    return _plain(F, q, k, v).transpose((1, 0, 2)).reshape((0, -1))


QUERY, KEY, VALUE = (2, 70, 16), (2, 91, 16), (2, 91, 24)
FORMS = {
    "plain": (_plain, [QUERY, KEY, VALUE]),
    "transposed": (_transposed, [QUERY, KEY, VALUE]),
    "masked": (_masked, [QUERY, KEY, VALUE, (1, 70, 91)]),
    "lengths": (_shortened, [QUERY, KEY, VALUE, np.arange(140).reshape(2, 70).astype("int32") % 92]),
    "dropout": (_dropped, [QUERY, KEY, VALUE]),
    **(
        HEADS := {
            "heads": (_heads, [(2, 70, 48), (2, 91, 48), (2, 91, 72)]),
            "heads with dropout": (_heads_dropped, [(2, 70, 48), (2, 91, 48), (2, 91, 72)]),
            "heads with one mask": (_heads_masked, [(2, 70, 48), (2, 91, 48), (2, 91, 72), (1, 70, 91)]),
            "heads with masks": (_heads_masked, [(2, 70, 48), (2, 91, 48), (2, 91, 72), (6, 1, 91)]),
            "heads with lengths": (
                _heads_shortened,
                [(2, 70, 48), (2, 91, 48), (2, 91, 72), np.arange(420).reshape(6, 70).astype("int32") % 92],
            ),
            "heads of four axes": (_heads_of_four_axes, [(2, 70, 48), (2, 91, 48), (2, 91, 72), (2, 1, 1, 91)]),
            "heads of one sequence": (_heads_of_one_sequence, [(70, 48), (91, 48), (91, 72)]),
        }
    ),
    "interleaved": (_interleaved, [(70, 2, 3 * 3 * 8)]),
    "interleaved encoder": (_interleaved_cross, [(70, 2, 3 * 8), (91, 2, 3 * 2 * 8), (6, 70, 91)]),
}


def _arrays(rng: np.random.Generator, inputs: list[Any], dtype: str) -> list[mx.nd.NDArray]:
    return [
        mx.nd.array(rng.normal(size=x), dtype=dtype) if isinstance(x, tuple) else mx.nd.array(x, dtype=x.dtype)
        for x in inputs
    ]


def _trained(function: Callable[..., Any], arrays: list[mx.nd.NDArray], exclude: list[str]) -> list[np.ndarray]:
    net = Function(function)
    net.hybridize(exclude=exclude)
    for array in arrays:
        array.attach_grad()
    mx.random.seed(3)
    with autograd.record():
        out = net(*arrays)
    out.backward(mx.nd.arange(out.size, dtype=str(np.dtype(out.dtype))).reshape(out.shape) % 7)
    return [out.asnumpy(), *(a.grad.asnumpy() for a in arrays if a.grad is not None)]


def _is_fused(net: gluon.HybridBlock) -> bool:
    return "_flash_attention" in net.plan_text()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 3e-5)])
def test_every_form_gives_the_values_and_gradients_of_its_parts(form, dtype, tolerance, rng):
    function, inputs = FORMS[form]
    arrays = _arrays(rng, inputs, dtype)
    apart, fused = (_trained(function, arrays, exclude) for exclude in (["attention"], []))
    for a, b in zip(apart, fused, strict=True):
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * np.abs(a).max())


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_one_operator(form, rng):
    function, inputs = FORMS[form]
    net = Function(function)
    net.hybridize()
    net(*_arrays(rng, inputs, "float32"))
    assert _is_fused(net)
    assert "softmax" not in net.plan_text()


@pytest.mark.parametrize("form", HEADS)
def test_heads_stay_where_they_are(form, rng):
    function, inputs = HEADS[form]
    net = Function(function)
    net.hybridize()
    arrays = _arrays(rng, inputs, "float32")
    net(*arrays)
    assert "transpose" not in net.plan_text()
    assert "SwapAxis" not in net.plan_text()
    for array in arrays[:3]:  # the gradient of a mask has the shape of the weights
        array.attach_grad()
    with autograd.record():
        net(*arrays).backward()
    assert "transpose" not in net.plan_text()


def test_heads_that_another_axis_stands_between_are_moved(rng):
    def run(F: Any, q: Any, k: Any, v: Any) -> Any:  # (length, batch, heads, size)
        q, k, v = (x.transpose((1, 2, 0, 3)).reshape((-3, 0, 0)) for x in (q, k, v))
        return _plain(F, q, k, v)

    net = Function(run)
    net.hybridize()
    arrays = _arrays(rng, [(70, 2, 3, 16)] * 3, "float64")
    out = net(*arrays).asnumpy()
    assert "heads_inside" not in net.plan_text()
    q, k, v = (a.asnumpy().transpose(1, 2, 0, 3).reshape(6, 70, 16) for a in arrays)
    weights = np.exp(q @ k.swapaxes(-1, -2) / 4)
    np.testing.assert_allclose(out, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(
    ("function", "shapes"), [(_dropped, [QUERY, KEY, VALUE]), (_heads_dropped, [(2, 50, 24), (2, 60, 24), (2, 60, 36)])]
)
def test_second_derivatives_survive_dropout(function, shapes, rng):
    arrays = _arrays(rng, shapes, "float64")
    results = []
    for exclude in (["attention"], []):
        net = Function(function)
        net.hybridize(exclude=exclude)
        for array in arrays:
            array.attach_grad()
        mx.random.seed(5)
        with autograd.record():
            out = net(*arrays)
            grads = autograd.grad((out * out).sum(), arrays, create_graph=True)
            total = sum((i + 1) * (g * g).sum() for i, g in enumerate(grads))
        total.backward()
        results.append([a.grad.asnumpy() for a in arrays])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())


def test_the_products_of_the_numpy_interface_are_recognized(rng):
    class Attention(gluon.HybridBlock):
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            scores = mx.np.matmul(q, mx.np.swapaxes(k, -1, -2)) / 4.0
            return mx.np.matmul(mx.npx.softmax(scores, axis=-1), v)

    net = Attention()
    net.hybridize()
    arrays = [mx.np.array(rng.normal(size=(2, 3, 64, 16))) for _ in range(3)]
    out = net(*arrays).asnumpy()
    assert _is_fused(net)
    q, k, v = (a.asnumpy() for a in arrays)
    weights = np.exp(q @ k.swapaxes(-1, -2) / 4)
    np.testing.assert_allclose(out, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-5, atol=1e-6)


def test_attention_in_the_body_of_a_loop_is_fused(rng):
    def run(F: Any, q: Any, k: Any, v: Any) -> Any:
        return F.contrib.foreach(lambda x, s: (_plain(F, x, s[0], s[1]), s), q, [k, v])[0]

    net = Function(run)
    net.hybridize()
    arrays = _arrays(rng, [(3, *QUERY), KEY, VALUE], "float32")
    out = net(*arrays).asnumpy()
    assert _is_fused(net)
    for i in range(3):
        alone = Function(_plain)
        np.testing.assert_allclose(out[i], alone(arrays[0][i], *arrays[1:]).asnumpy(), rtol=1e-5, atol=1e-5)


def _weights_returned(F: Any, q: Any, k: Any, v: Any) -> Any:
    weights = F.softmax(_scores(F, q, k))
    return [F.batch_dot(weights, v), weights]


LEFT_ALONE = {
    "weights returned": (_weights_returned, [QUERY, KEY, VALUE]),
    "other axis": (lambda F, q, k, v: F.batch_dot(F.softmax(_scores(F, q, k), axis=1), v), [QUERY, KEY, VALUE]),
    "dropout always": (
        lambda F, q, k, v: F.batch_dot(F.Dropout(F.softmax(_scores(F, q, k)), p=0.3, mode="always"), v),
        [QUERY, KEY, VALUE],
    ),
    "shared dropout": (
        lambda F, q, k, v: F.batch_dot(F.Dropout(F.softmax(_scores(F, q, k)), p=0.3, axes=(1,), mode="always"), v),
        [QUERY, KEY, VALUE],
    ),
    "few keys": (_plain, [(2, 70, 16), (2, 9, 16), (2, 9, 16)]),
    "some queries": (_plain, [(2, 17, 16), (2, 500, 16), (2, 500, 16)]),
    "long vectors": (_plain, [(2, 70, 256), (2, 91, 256), (2, 91, 256)]),
    "mask under the temperature": (
        lambda F, q, k, v, m: F.batch_dot(F.softmax(_scores(F, q, k) + m, temperature=2), v),
        [QUERY, KEY, VALUE, (2, 70, 91)],
    ),
    "other values": (
        lambda F, a, b: F.contrib.interleaved_matmul_selfatt_valatt(
            b, F.softmax(F.contrib.interleaved_matmul_selfatt_qk(a, heads=3)), heads=3
        ),
        [(70, 2, 72), (70, 2, 72)],
    ),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_similar_graphs_that_are_not_attention_stay(case, rng):
    function, inputs = LEFT_ALONE[case]
    net = Function(function)
    net.hybridize()
    net(*_arrays(rng, inputs, "float32"))
    assert not _is_fused(net)


def test_a_query_whose_keys_are_all_masked_gives_zeros(rng):
    mask = np.zeros((1, 70, 91), "float32")
    mask[0, 5] = -np.inf
    net = Function(_masked)
    net.hybridize()
    out = net(*_arrays(rng, [QUERY, KEY, VALUE], "float32"), mx.nd.array(mask)).asnumpy()
    assert (out[:, 5] == 0).all() and np.isfinite(out).all()


ONE = (2, 1, 16)
FEW_QUERIES = {
    "plain": (_plain, [ONE, KEY, VALUE]),
    "few keys": (_plain, [ONE, (2, 5, 16), (2, 5, 24)]),
    "long vectors": (_plain, [(2, 1, 256), (2, 91, 256), (2, 91, 256)]),
    "masked": (_masked, [ONE, KEY, VALUE, (1, 1, 91)]),
    "lengths": (_shortened, [ONE, KEY, VALUE, np.array([[7], [91]], "int32")]),
    "two queries": (_plain, [(2, 2, 16), KEY, VALUE]),
    "heads": (_heads, [(2, 1, 48), (2, 91, 48), (2, 91, 72)]),
    "heads with masks": (_heads_masked, [(2, 1, 48), (2, 91, 48), (2, 91, 72), (6, 1, 91)]),
    "heads of four axes": (_heads_of_four_axes, [(2, 1, 48), (2, 91, 48), (2, 91, 72), (2, 1, 1, 91)]),
}


@pytest.mark.parametrize("case", FEW_QUERIES)
def test_few_queries_are_fused_for_prediction_alone(case, rng):
    function, inputs = FEW_QUERIES[case]
    arrays = _arrays(rng, inputs, "float32")
    net = Function(function)
    expected = net(*arrays).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(*arrays).asnumpy(), expected, rtol=1e-5, atol=1e-5)
    assert _is_fused(net)
    for array in arrays[:3]:
        array.attach_grad()
    trained = Function(function)
    trained.hybridize()
    with autograd.record():
        trained(*arrays).sum().backward()
    assert not _is_fused(trained)


def _repeated(F: Any, x: Any, times: int) -> Any:
    return F.repeat(x, repeats=times, axis=1)


def _broadcast(F: Any, x: Any, times: int) -> Any:
    return F.broadcast_axis(x.expand_dims(axis=2), axis=2, size=times).reshape((0, -3, 0, 0))


def _grouped(repeated: Callable[..., Any], times: int) -> Callable[..., Any]:
    def function(F: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        scores = F.batch_dot(q, repeated(F, k, times), transpose_b=True) / 4
        return F.batch_dot(F.softmax(F.broadcast_add(scores, mask)), repeated(F, v, times))

    return function


@pytest.mark.parametrize("queries", [1, 70])
@pytest.mark.parametrize(("heads", "shared"), [(6, 3), (4, 4)])
@pytest.mark.parametrize("repeated", [_repeated, _broadcast])
def test_keys_that_heads_share_are_not_repeated(repeated, heads, shared, queries, rng):
    """Grouped (6 heads of queries, 2 of keys) and multi-query heads; masks of each head, as those of ALiBi."""
    function = _grouped(repeated, shared)
    own = heads // shared
    arrays = _arrays(rng, [(2, heads, queries, 16), (2, own, 91, 16), (2, own, 91, 24), (1, heads, 1, 91)], "float32")
    net = Function(function)
    expected = net(*arrays).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(*arrays).asnumpy(), expected, rtol=2e-5, atol=2e-5)
    assert "] _flash_attention (i0, i1, " in net.plan_text()  # the keys are an input of the block
    assert "] repeat (" not in net.plan_text() and "] broadcast_axis (" not in net.plan_text()
    apart, fused = (_trained(function, arrays, exclude) for exclude in (["attention"], []))
    for a, b in zip(apart, fused, strict=True):
        np.testing.assert_allclose(b, a, rtol=3e-5, atol=3e-5 * np.abs(a).max())


def test_keys_and_values_that_are_shared_differently_are_repeated(rng):
    def function(F: Any, q: Any, k: Any, v: Any) -> Any:
        return _plain(F, q, F.repeat(k, repeats=2, axis=0), F.repeat(v, repeats=4, axis=0))

    arrays = _arrays(rng, [(4, 1, 16), (2, 91, 16), (1, 91, 16)], "float32")
    net = Function(function)
    expected = net(*arrays).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(*arrays).asnumpy(), expected, rtol=2e-5, atol=2e-5)
    assert net.plan_text().count("] repeat (") == 2
