"""Python operators, NumPy functions called on arrays of mx.np, and functions that NumPy computes."""

from __future__ import annotations

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import autograd, np, npx

WHOLE = onp.array([[7, -7, 4], [1, 0, -3]], dtype="int32")
REAL = onp.array([[1.5, -2.5, 4.0], [1.0, 0.25, -3.0]], dtype="float32")


@pytest.mark.parametrize("values", [WHOLE, REAL], ids=["whole", "real"])
@pytest.mark.parametrize(
    "operator",
    [
        lambda x: x // 2,
        lambda x: 7 // (x * x + 1),
        lambda x: x // x.T.reshape(x.shape) if (x == 0).sum() == 0 else x // 3,
        lambda x: divmod(x, 3)[0],
        lambda x: divmod(x, 3)[1],
        lambda x: x % 4,
        lambda x: -x,
        lambda x: abs(x),
        lambda x: +x,
        lambda x: x**2,
        lambda x: 2 - x,
        lambda x: (x > 1) & (x < 5),
        lambda x: (x > 1) | (x < -5),
        lambda x: (x > 1) ^ (x > 2),
        lambda x: ~(x > 1),
    ],
)
def test_operators_of_python_are_numpys(operator, values):
    wanted = operator(values)
    found = operator(np.array(values, dtype=values.dtype))
    assert type(found) is np.ndarray and onp.dtype(found.dtype) == wanted.dtype
    onp.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "operator",
    [lambda x: x & 6, lambda x: 6 | x, lambda x: x ^ 3, lambda x: ~x, lambda x: x & x],
)
def test_bits_of_integers(operator):
    onp.testing.assert_array_equal(operator(np.array(WHOLE, dtype="int32")).asnumpy(), operator(WHOLE))


def test_bits_of_floats_are_refused():
    with pytest.raises(mx.errors.DTypeError, match="integers or bool"):
        np.array(REAL) & 1
    with pytest.raises(TypeError, match="unsupported operand"):
        np.array(WHOLE, dtype="int32") & "a"


def test_in_place_operators_write_into_the_array():
    x = np.array(WHOLE, dtype="int32")
    alias = x
    x //= 2
    x &= 7
    x |= 1
    x ^= 2
    assert alias is x
    onp.testing.assert_array_equal(x.asnumpy(), (((WHOLE // 2) & 7) | 1) ^ 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: onp.add(x, x),
        lambda x: onp.exp(x),
        lambda x: onp.divide(x, 2),
        lambda x: onp.maximum(0, x),
        lambda x: onp.sum(x, axis=0),
        lambda x: onp.mean(x),
        lambda x: onp.concatenate([x, x], axis=1),
        lambda x: onp.stack([x, x]),
        lambda x: onp.reshape(x, (3, 2)),
        lambda x: onp.where(x > 0, x, 0),
        lambda x: onp.dot(x, x.T),
        lambda x: onp.add.reduce(x),
        lambda x: onp.heaviside(x, 0.5),
        lambda x: onp.linalg.norm(x),
    ],
)
def test_functions_of_numpy_give_arrays_of_mx_np(function):
    found = function(np.array(REAL))
    assert type(found) is np.ndarray
    onp.testing.assert_allclose(found.asnumpy(), function(REAL), rtol=1e-6)


def test_functions_of_numpy_are_recorded_where_mx_np_has_them():
    x = np.array(REAL)
    x.attach_grad()
    with autograd.record():
        onp.multiply(x, x).sum().backward()
    onp.testing.assert_allclose(x.grad.asnumpy(), 2 * REAL)


def test_results_go_into_out():
    x, out = np.array(REAL), np.zeros((2, 3))
    assert onp.add(x, x, out=out) is out
    onp.testing.assert_allclose(out.asnumpy(), 2 * REAL)
    assert onp.add.reduce(x, out=out[0]).tolist() == REAL.sum(axis=0).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda np, x: np.allclose(x, x),
        lambda np, x: np.isclose(x, x + 1e-9),
        lambda np, x: np.array_equal(x, x),
        lambda np, x: np.count_nonzero(x),
        lambda np, x: np.float_power(x, 2),
        lambda np, x: np.signbit(x),
        lambda np, x: np.heaviside(x, 0.5),
        lambda np, x: np.ptp(x, axis=0),
        lambda np, x: np.nanmax(x, axis=1),
        lambda np, x: np.searchsorted(x.reshape(-1)[:0], x[0]),
        lambda np, x: np.trapz(x) if hasattr(np, "trapz") else np.trapezoid(x),
        lambda np, x: np.union1d(x, x),
        lambda np, x: np.size(x),
        lambda np, x: np.ndim(x),
    ],
)
def test_functions_that_numpy_computes(call):
    found, wanted = call(np, np.array(REAL)), call(onp, REAL)
    if isinstance(wanted, (onp.ndarray, onp.floating, onp.bool_)):
        assert type(found) is np.ndarray
        found = found.asnumpy()
    onp.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_functions_that_numpy_computes_have_no_gradient_and_no_graph():
    x = np.array(REAL)
    x.attach_grad()
    with autograd.record(), pytest.raises(mx.errors.GradientError, match="no gradient"):
        np.signbit(x * 2)

    class Block(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.np.signbit(x)

    npx.set_np()
    try:
        net = Block()
        net.hybridize()
        with pytest.raises(mx.errors.TraceError, match="abstract array"):
            net(x)
    finally:
        npx.reset_np()


def test_symbols_have_the_operators_too():
    x = mx.sym.var("x").as_np_ndarray()
    y = ((x // 2) & 3) | 4
    z = ~(x > 1) ^ (x < 5)
    out = mx.sym.Group([y, z]).bind(mx.cpu(), {"x": mx.nd.array(WHOLE, dtype="int32")}).forward()
    onp.testing.assert_array_equal(out[0].asnumpy(), ((WHOLE // 2) & 3) | 4)
    onp.testing.assert_array_equal(out[1].asnumpy(), ~(WHOLE > 1) ^ (WHOLE < 5))


def test_unknown_names_are_errors():
    with pytest.raises(AttributeError, match=r"hybridnet\.numpy.*no_such"):
        _ = np.no_such
    assert "allclose" in dir(np) and "add" in dir(mx.sym.np) and "relu" in dir(npx)


@pytest.mark.parametrize("function", [np.exp, np.isnan, np.negative, np.add], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "keyword, error",
    [
        ({"where": False}, NotImplementedError),
        ({"subok": False}, NotImplementedError),
        ({"dtype": onp.int8}, NotImplementedError),
        ({"dtype": "no dtype"}, TypeError),
        ({"casting": "safe"}, NotImplementedError),
        ({"casting": "no casting"}, TypeError),
        ({"order": "F"}, NotImplementedError),
        ({"no_keyword": 1}, TypeError),
    ],
    ids=str,
)
def test_keywords_of_universal_functions_are_obeyed_or_refused(function, keyword, error):
    arrays = [np.array(REAL)] * (2 if function is np.add else 1)
    with pytest.raises(error, match=f"{function.__name__}|no dtype"):
        function(*arrays, **keyword)
    neutral = function(*arrays, where=True, casting="same_kind", order="K", dtype=None, subok=True)
    onp.testing.assert_array_equal(neutral.asnumpy(), function(*arrays).asnumpy())


def test_out_stands_behind_the_operands():
    x, out = np.array(REAL), np.zeros((2, 3))
    assert np.exp(x, out) is out and np.around(x, 1, out) is out
    onp.testing.assert_allclose(out.asnumpy(), onp.around(REAL, 1))


def test_memory_orders_other_than_rows_first_are_refused():
    for call in (lambda: np.zeros(2, order="F"), lambda: np.empty(2, order="F"), lambda: np.ones(2).copy(order="F")):
        with pytest.raises(NotImplementedError, match="row-major"):
            call()


def test_formats_are_for_single_numbers():
    assert f"{np.array(1.25):.1f}" == "1.2" and f"{np.ones(2)}" == "[1. 1.]"
    with pytest.raises(TypeError, match="format"):
        _ = f"{np.ones(2):10}"


def test_shared_memory_is_that_of_common_bytes():
    x = np.zeros((4, 3))
    assert np.shares_memory(x, x[1]) and np.may_share_memory(x[1:3], x[2])
    assert not np.shares_memory(x[0], x[1]) and not np.shares_memory(x, x.copy())
    assert not np.shares_memory(x, np.zeros((0, 3))) and not np.shares_memory(x, onp.zeros(3))


def test_broadcast_to_takes_numbers_and_keeps_sizes():
    assert np.broadcast_to(2, (2, 2)).tolist() == [[2, 2], [2, 2]]
    assert np.broadcast_to([1, 2], (2, 2)).tolist() == [[1, 2], [1, 2]]
    assert np.broadcast_to(np.zeros((3, 1)), (2, -2, 4)).shape == (2, 3, 4)


def test_a_narrower_result_is_rounded_once(rng):
    x = rng.normal(size=1000).astype("float32")
    for name in ("sum", "mean", "std"):
        wanted = getattr(onp, name)(x.astype("float64")).astype("float16")
        assert getattr(np, name)(np.array(x), dtype="float16").asnumpy() == wanted


@pytest.mark.parametrize(
    "function",
    [
        lambda F, x: F.np.array_split(x, 1)[0],
        lambda F, x: F.np.full((2, 3), x, dtype="float64"),
        lambda F, x: x.clip(None, 1),
    ],
    ids=["array_split", "full", "clip"],
)
def test_functions_of_arrays_work_in_hybridized_blocks(function):
    class Block(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return function(F, x)

    npx.set_np()
    try:
        net, x = Block(), np.array(REAL)
        eager = net(x)
        net.hybridize()
        traced = net(x)
        assert type(traced) is np.ndarray and traced.dtype == eager.dtype
        onp.testing.assert_array_equal(traced.asnumpy(), eager.asnumpy())
    finally:
        npx.reset_np()


def test_names_by_which_programs_check_the_protocols():
    from hybridnet import numpy_dispatch_protocol as protocol
    from hybridnet.numpy_op_signature import _get_builtin_op

    assert protocol.with_array_function_protocol(test_bits_of_floats_are_refused) is test_bits_of_floats_are_refused
    for name in protocol._NUMPY_ARRAY_FUNCTION_LIST + protocol._NUMPY_ARRAY_UFUNC_LIST:
        home = np.linalg if name.startswith("linalg.") else np
        assert callable(getattr(home, name.removeprefix("linalg."))), name
    assert _get_builtin_op("_np_sum") is np.sum and _get_builtin_op("_npx_relu") is npx.relu
    assert _get_builtin_op("sum") is None
    with pytest.raises(ValueError, match="no_such"):
        _get_builtin_op("_np_no_such")
