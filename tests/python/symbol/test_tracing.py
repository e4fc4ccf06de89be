"""Traced arrays: shape and dtype are known, deferred parameters are initialized, reading values is refused."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest


@pytest.fixture
def traced():
    before = mx._core.set_trace_state(True, "net.body")
    with mx.name.NameManager():
        yield lambda name, shape=None, dtype="float32": mx._core.traced_variable(name, shape, dtype)
    mx._core.set_trace_state(*before)


def run(out, **values):
    return out.eval(**{n: mx.nd.array(v) for n, v in values.items()})[0].asnumpy()


def test_shapes_and_dtypes_follow_operators(traced):
    x = traced("x", (2, 3))
    y = mx.nd.concat(x * 2, x + 1, dim=1)
    assert y.shape == (2, 6)
    assert y.dtype == np.float32
    assert (y.ndim, y.size, len(y)) == (2, 12, 2)
    assert y.T.shape == (6, 2)
    assert y.reshape((-1,)).shape == (12,)
    assert y.astype("int32").dtype == np.int32


def test_deferred_parameters_learn_their_shape(traced):
    x, w, b = traced("x", (2, 3)), traced("w", (4, -1), None), traced("b", None, None)
    y = mx.nd.FullyConnected(x, w, b, num_hidden=4)
    assert y.shape == (2, 4)
    specs = mx._core.symbol_input_specs(y)
    assert specs["w"] == ((4, 3), np.float32)
    assert specs["b"] == ((4,), np.float32)


def test_knowledge_flows_back_through_nodes(traced):
    w = traced("w", None, None)
    cast = mx.nd.identity(w)
    y = mx.nd.FullyConnected(traced("x", (2, 3)), cast, num_hidden=4, no_bias=True)
    assert y.shape == (2, 4)
    assert w.shape == (4, 3)


def test_a_wrong_shape_is_reported_at_the_users_line(traced):
    with pytest.raises(mx.errors.ShapeError) as caught:
        mx.nd.concat(traced("x", (2, 3)), traced("y", (3, 3)), dim=1)
    assert "test_tracing.py" in str(caught.value)
    assert caught.value.block == "net.body"
    assert caught.value.op == "Concat"


def test_arithmetic_broadcasts_like_arrays(traced):
    x, row = traced("x", (2, 3)), traced("row", (1, 3))
    y = x * row + row
    assert y.shape == (2, 3)
    values = np.arange(6.0).reshape(2, 3), np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_allclose(run(y, x=values[0], row=values[1]), values[0] * values[1] + values[1])


def test_arrays_become_constants(traced):
    y = traced("x", (2, 3)) + mx.nd.array([[1.0, 2.0, 3.0]])
    assert next(iter(mx._core.symbol_constants(y).values())).shape == (1, 3)


def test_creation_and_random_functions_make_nodes_while_tracing(traced):
    assert isinstance(mx.nd.zeros((2, 3)), mx.sym.Symbol)
    assert mx.nd.random.uniform(shape=(2, 3)).shape == (2, 3)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        slice(1, None),
        (slice(None), 1),
        (0, 1),
        (Ellipsis, 0),
        None,
        (None, 0),
        (slice(None), None, slice(0, 2)),
        (1, slice(None, None, -1)),
        (0, 1, 2),
        (slice(None, None, 2), Ellipsis, slice(1, 3)),
    ],
    ids=repr,
)
def test_indexing_agrees_with_arrays(traced, key):
    values = np.arange(60, dtype="float32").reshape(4, 3, 5)
    y = traced("x", (4, 3, 5))[key]
    mx._core.set_trace_state(False, "")
    expected = mx.nd.array(values)[key].asnumpy()
    assert y.shape == expected.shape
    np.testing.assert_array_equal(run(y, x=values), expected)


def test_indexing_errors(traced):
    x = traced("x", (4, 3))
    with pytest.raises(IndexError, match="out of bounds"):
        x[4]
    with pytest.raises(IndexError, match="too many"):
        x[0, 0, 0]
    with pytest.raises(TypeError, match="integer or boolean"):
        x["rows"[:1], 0]
    with pytest.raises(TypeError, match="stack"):
        x[[x, 1]]


def test_values_are_refused_with_the_line_and_the_remedy(traced):
    x = traced("x", (2, 3))
    for use, remedy in (
        (lambda: bool(x.sum() > 0), "cond"),
        (lambda: float(x.sum()), "cond"),
        (lambda: list(x), "foreach"),
        (lambda: x.asnumpy(), "foreach"),
    ):
        with pytest.raises(mx.errors.TraceError, match=remedy) as caught:
            use()
        assert "test_tracing.py" in str(caught.value)


def test_several_outputs_are_taken_by_number(traced):
    a, b = mx.nd.split(traced("x", (2, 4)), num_outputs=2, axis=1)
    assert a.shape == b.shape == (2, 2)
