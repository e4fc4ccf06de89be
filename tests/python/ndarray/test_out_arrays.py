"""``out=`` puts results into arrays of the caller, or raises an error that names operator, `out` and reason."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hostile import outs
from hybridnet import autograd, nd
from hybridnet.errors import DTypeError, ShapeError
from hybridnet.errors import ValueError as HybridNetValueError

CALLS = {
    "batch_dot": lambda **k: nd.batch_dot(nd.ones((3, 17, 8)), nd.ones((3, 8, 16)), **k),
    "dot": lambda **k: nd.dot(nd.ones((4, 3)), nd.ones((3, 2)), **k),
    "elemwise_add": lambda **k: nd.elemwise_add(nd.ones((2, 3)), nd.ones((2, 3)), **k),
    "square": lambda **k: nd.square(nd.ones((2, 3)), **k),
    "sum": lambda **k: nd.sum(nd.ones((2, 3)), axis=1, **k),
    "FullyConnected": lambda **k: nd.FullyConnected(nd.ones((2, 3)), nd.ones((5, 3)), no_bias=True, num_hidden=5, **k),
    "Reshape": lambda **k: nd.Reshape(nd.ones((2, 3)), shape=(3, 2), **k),
    "boolean_mask": lambda **k: nd.contrib.boolean_mask(nd.ones((3, 2)), nd.array([1, 0, 1]), **k),
    "np.add": lambda **k: mx.np.add(mx.np.ones((2, 3)), mx.np.ones((2, 3)), **k),
    "np.dot": lambda **k: mx.np.dot(mx.np.ones((2, 3)), mx.np.ones((3, 4)), **k),
    "np.mean": lambda **k: mx.np.mean(mx.np.ones((2, 3)), axis=0, **k),
    "a function": lambda **k: _function()._op(nd.ones((2, 3)), **k),
}


def _function() -> Any:
    x = mx.sym.var("x")
    return mx.function([x], x * 2 + 1)


def _like(result: Any, shape: tuple[int, ...], dtype: Any = None) -> Any:
    make = mx.np.zeros if isinstance(result, mx.np.ndarray) else nd.zeros
    return make(shape, dtype=dtype or result.dtype)


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_another_shape_or_dtype_are_refused_and_stay(name: str) -> None:
    result = CALLS[name]()
    shape = result.shape
    assert CALLS[name](out=_like(result, shape)).asnumpy().tolist() == result.asnumpy().tolist()
    wrong = [(7,), (*shape, 1), (1, *shape), shape[:-1], tuple(size + 1 for size in shape), (int(np.prod(shape)),)]
    for other in [s for s in wrong if s != shape]:
        out = _like(result, other)
        with pytest.raises(ShapeError, match=r"(?s)out.*expected.*got"):
            CALLS[name](out=out)
        assert (out.asnumpy() == 0).all()
    with pytest.raises(DTypeError, match=r"(?s)out.*expected.*got"):
        CALLS[name](out=_like(result, shape, "int8"))


def test_the_error_names_operator_and_both_sides() -> None:
    with pytest.raises(ShapeError) as caught:
        nd.batch_dot(nd.ones((3, 17, 8)), nd.ones((3, 8, 16)), out=nd.zeros((7,)))
    for word in ("batch_dot", "out", "(3, 17, 16)", "(7,)", "Fix"):
        assert word in str(caught.value)
    with pytest.raises(DTypeError, match=r"(?s)SliceChannel.*out\[1\].*float32.*float64"):
        nd.split(nd.ones((4, 2)), num_outputs=2, axis=0, out=[nd.zeros((2, 2)), nd.zeros((2, 2), dtype="float64")])


def test_uses_that_mxnet_allows_stay_allowed() -> None:
    drawn = nd.zeros((3, 2), dtype="float64")
    assert mx.nd.random.uniform(low=1, high=2, out=drawn) is drawn
    assert (drawn.asnumpy() >= 1).all()
    other = nd.zeros((3,), ctx=mx.cpu(1))
    nd.square(nd.array([1.0, 2.0, 3.0]), out=other)
    assert other.asnumpy().tolist() == [1, 4, 9]
    assert other.context == mx.cpu(1)
    for stype in ("row_sparse", "csr"):
        sparse = nd.sparse.zeros(stype, (2, 2))
        nd.square(nd.array([[1.0, 0.0], [0.0, 3.0]]), out=sparse)
        assert sparse.stype == stype
        assert sparse.asnumpy().tolist() == [[1, 0], [0, 9]]
        with pytest.raises(ShapeError, match="square"):
            nd.square(nd.ones((3, 2)), out=nd.sparse.zeros(stype, (2, 2)))


def test_functions_of_numpy_cast_of_the_same_kind() -> None:
    a, b = mx.np.array([1.0, 2.0]), mx.np.array([3.0, 4.0])
    for function, operands in ((mx.np.add, (a, b)), (mx.np.multiply, (a, b)), (mx.np.exp, (a,)), (mx.np.sum, (a,))):
        wanted = function(*operands)
        wide = mx.np.zeros(wanted.shape, dtype="float64")
        function(*operands, out=wide)
        np.testing.assert_allclose(wide.asnumpy(), wanted.asnumpy(), rtol=1e-6)
        with pytest.raises(DTypeError, match=r"(?s)out.*expected.*float32.*got.*int32"):
            function(*operands, out=mx.np.zeros(wanted.shape, dtype="int32"))


@pytest.mark.parametrize("shift", range(-3, 4))
def test_parts_of_an_input_are_read_before_they_are_written(shift: int) -> None:
    operators = {
        "square": lambda x, out: nd.square(x, out=out),
        "flip": lambda x, out: nd.flip(x, axis=0, out=out),
        "softmax": lambda x, out: nd.softmax(x, out=out),
        "+": lambda x, out: nd.elemwise_add(x, nd.flip(x, axis=0), out=out),
        "cumsum": lambda x, out: nd.cumsum(x, out=out),
        "sort": lambda x, out: nd.sort(x, is_ascend=False, out=out),
    }
    for run in operators.values():
        base = nd.array(np.random.RandomState(4).permutation(16))
        wanted, content = nd.zeros((9,)), base.asnumpy()
        run(base[3:12].copy(), wanted)
        run(base[3:12], base[3 + shift : 12 + shift])
        content[3 + shift : 12 + shift] = wanted.asnumpy()
        np.testing.assert_array_equal(base.asnumpy(), content)


@pytest.mark.parametrize("shift", [1, 2, 16])
@pytest.mark.parametrize("operator", ["square", "negative", "relu", "cumsum", "sort", "reverse"])
def test_foreign_memory_over_foreign_memory(operator: str, shift: int) -> None:
    """Arrays longer than a kernel's block overlap in both directions: a kernel must not read results as inputs."""
    arguments = {"reverse": {"axis": 0}, "cumsum": {"axis": 0}}.get(operator, {})
    function = getattr(nd, operator)
    for forwards in (True, False):
        memory = np.random.RandomState(0).randint(-9, 9, 1000).astype("float32")
        parts = [memory[:-shift], memory[shift:]]
        x, out = (nd.from_numpy(part) for part in (parts if forwards else parts[::-1]))
        wanted = function(nd.array(x.asnumpy()), **arguments).asnumpy()
        function(x, out=out, **arguments)
        np.testing.assert_array_equal(out.asnumpy(), wanted)


def test_memory_that_came_back_over_itself() -> None:
    own = nd.array([1.0, 2.0, 3.0])
    other = nd.from_dlpack(own)
    nd.elemwise_add(own[0:2], other[0:2], out=other[1:3])
    np.testing.assert_array_equal(own.asnumpy(), [1, 2, 4])


def test_results_that_would_overwrite_each_other_are_refused() -> None:
    a, base = nd.zeros((2,)), nd.zeros((6,))
    data = nd.array([1.0, 2.0, 3.0, 4.0])
    memory = np.zeros(3, "float32")
    foreign = [nd.from_numpy(memory[:2]), nd.from_numpy(memory[1:])]
    for out in ([a, a], [base[0:2], base[1:3]], [a, a.reshape((2,))], [a, a.detach()], foreign):
        with pytest.raises(HybridNetValueError, match=r"(?s)SliceChannel.*out.*overlap"):
            nd.split(data, num_outputs=2, axis=0, out=out)
    assert (a.asnumpy() == 0).all()
    nd.split(data, num_outputs=2, axis=0, out=[base[0:2], base[2:4]])  # adjacent parts of one array
    assert base.asnumpy().tolist() == [1, 2, 3, 4, 0, 0]
    x = mx.sym.var("x")
    function = mx.function([x], [x + 1, x * 2])
    with pytest.raises(HybridNetValueError, match="overlap"):
        function._op(nd.ones((2,)), out=[a, a])
    pair = nd.zeros((4,))
    mx.function([x], [x + 1, x + 1])._op(nd.ones((2,)), out=[pair[0:2], pair[2:4]])
    assert pair.asnumpy().tolist() == [2, 2, 2, 2]


def test_states_that_share_memory_with_inputs() -> None:
    weight, gradient = nd.array([1.0, 2.0, 3.0]), nd.array([4.0, 5.0, 6.0])
    with pytest.raises(HybridNetValueError, match=r"(?s)sgd_mom_update.*overlap"):
        nd.sgd_mom_update(weight, gradient, weight, lr=0.1, momentum=0.9, out=weight)
    base = nd.array([1.0, 2.0, 3.0, 4.0, 5.0])
    state, read = base[0:3], base[1:4]
    wanted_state, wanted = state.copy(), weight.copy()
    nd.sgd_mom_update(wanted, read.copy(), wanted_state, lr=0.1, momentum=0.9, out=wanted)
    nd.sgd_mom_update(weight, read, state, lr=0.1, momentum=0.9, out=weight)
    np.testing.assert_array_equal(weight.asnumpy(), wanted.asnumpy())
    np.testing.assert_array_equal(base.asnumpy()[:3], wanted_state.asnumpy())


@pytest.mark.parametrize("recorded", [False, True])
def test_too_many_arrays(recorded: bool) -> None:
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record() if recorded else autograd.pause():
        for out in ([nd.zeros((2,)), nd.zeros((2,))], [nd.sparse.zeros("csr", (1, 2))] * 2):
            with pytest.raises(mx.MXNetError, match="square"):
                nd.square(x if out[0].stype == "default" else x.reshape((1, 2)), out=out)


def test_random_arrays_for_every_operator() -> None:
    with mx.util.np_shape(True):
        _, found = outs.attack(seed=7, minutes=0, count=1500)
    assert found == []
