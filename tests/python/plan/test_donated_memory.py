"""The memory of a donated array is reused only if it has no other reader, so all other arrays keep their values."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, nd

SHAPE = (64, 8)


@pytest.fixture(params=["one operator", "several"])
def donating(request: pytest.FixtureRequest) -> Any:
    x = mx.sym.var("x")
    return mx.function([mx.In(x, donate=True)], mx.sym.exp(x) if request.param == "one operator" else x * 2 + 7)


def fresh(value: float = 1.0) -> Any:
    return nd.array(np.full(SHAPE, value))


def address(array: Any) -> int:
    array.wait_to_read()
    return np.from_dlpack(array).ctypes.data


def test_an_array_over_the_same_memory_by_dlpack(donating: Any) -> None:
    given = fresh()
    neighbor = nd.from_dlpack(given)
    outside = np.from_dlpack(given)
    result = donating(given)
    result.wait_to_read()
    assert (neighbor.asnumpy() == 1).all()
    assert (outside == 1).all()
    # After the other arrays are freed, the memory is reused again.
    given, place = fresh(), None
    neighbor = nd.from_dlpack(given)
    place = address(given)
    del neighbor
    assert address(donating(given)) == place


def test_an_unconsumed_capsule_keeps_its_values(donating: Any) -> None:
    given = fresh()
    capsule = given.to_dlpack_for_write()
    donating(given).wait_to_read()
    assert (nd.from_dlpack(capsule).asnumpy() == 1).all()


def test_arrays_of_an_executor(donating: Any) -> None:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    bound = {"x": fresh(), "y": fresh(2.0)}
    executor = (x + y).bind(mx.cpu(), dict(bound), args_grad={"x": (gradient := fresh(5.0)), "y": fresh(6.0)})
    assert (executor.forward(is_train=True)[0].asnumpy() == 3).all()
    output = executor.outputs[0]
    for array in (bound["x"], gradient, output):
        donating(array).wait_to_read()
    executor.backward([fresh(4.0)])
    assert (executor.grad_arrays[1].asnumpy() == 4).all()
    assert (executor.forward(is_train=False)[0].asnumpy() == 3).all()


def test_gradient_buffers(donating: Any) -> None:
    x = fresh()
    x.attach_grad()
    with autograd.record():
        y = x * 3
    y.backward()
    donating(x.grad).wait_to_read()
    assert (x.grad.asnumpy() == 3).all()
    with autograd.record():
        y = x * 4
    y.backward()
    assert (x.grad.asnumpy() == 4).all()


def test_values_that_the_tape_has_saved(donating: Any) -> None:
    x, factor = fresh(2.0), fresh(3.0)
    x.attach_grad()
    with autograd.record():
        y = x * factor
    donating(factor).wait_to_read()
    y.backward()
    assert (x.grad.asnumpy() == 3).all()
    x.attach_grad()
    with autograd.record():
        middle = x * 2
        y = middle * middle
    donating(middle).wait_to_read()
    y.backward()
    assert (x.grad.asnumpy() == 16).all()


def test_constants_of_a_graph(donating: Any) -> None:
    constant = fresh(5.0)
    x = mx.sym.var("x")
    reads = mx.function([x], x + constant) if _symbols_take_arrays(x, constant) else None
    shared = mx.shared(fresh(6.0))
    block = mx.gluon.nn.HybridLambda(lambda F, x: x + constant)
    block.hybridize()
    assert (block(fresh()).asnumpy() == 6).all()
    donating(constant).wait_to_read()
    assert (block(fresh()).asnumpy() == 6).all()
    if reads is not None:
        assert (reads(fresh()).asnumpy() == 6).all()
    total = mx.function([x], x + shared)
    donating(total.shared[0].detach()).wait_to_read()
    assert (total(fresh()).asnumpy() == 7).all()


def _symbols_take_arrays(x: Any, array: Any) -> bool:
    try:
        return x + array is not None
    except mx.MXNetError:
        return False


def test_views_and_their_base(donating: Any) -> None:
    base = nd.array(np.arange(1024.0).reshape(128, 8))
    kept = base.asnumpy()
    donating(base[0:64]).wait_to_read()
    donating(base[64:128].reshape(SHAPE)).wait_to_read()
    np.testing.assert_array_equal(base.asnumpy(), kept)
    view = base[10:20]
    donating(base[0:64]).wait_to_read()
    np.testing.assert_array_equal(view.asnumpy(), kept[10:20])


def test_memory_of_numpy(donating: Any) -> None:
    memory = np.ones(SHAPE, "float32")
    donating(nd.from_numpy(memory)).wait_to_read()
    donating(nd.from_numpy(memory).reshape(SHAPE)).wait_to_read()
    assert (memory == 1).all()
    given = fresh()
    copy = given.asnumpy()
    donating(given).wait_to_read()
    assert (copy == 1).all()


def test_the_same_array_as_two_arguments() -> None:
    x, y = mx.sym.var("x"), mx.sym.var("y")
    both = mx.function([mx.In(x, donate=True), mx.In(y, donate=True)], [x + 1, y * 2, x - y])
    given = fresh(3.0)
    first, second, third = both(given, nd.from_dlpack(given))
    assert [float(a.asnumpy()[0, 0]) for a in (first, second, third)] == [4, 6, 0]


def test_work_that_waits_for_the_array(donating: Any) -> None:
    for _ in range(20):
        big = nd.ones((256, 256))
        given = fresh()
        slow = nd.dot(nd.dot(big, big), big)[0:64, 0:8] * 0 + given
        later = given * 3
        result = donating(given)
        assert (slow.asnumpy() == 1).all()
        assert (later.asnumpy() == 3).all()
        result.wait_to_read()


def test_parameters_keep_their_values(donating: Any) -> None:
    layer = mx.gluon.nn.Dense(8, in_units=64, use_bias=False)
    layer.initialize(mx.init.One())
    donating(layer.weight.data().detach()).wait_to_read()
    assert (layer.weight.data().asnumpy() == 1).all()


def test_another_object_of_the_same_array(donating: Any) -> None:
    for other in (lambda x: x.as_np_ndarray(), lambda x: type(x)(x), lambda x: mx.np.ndarray(x)):
        given = fresh()
        kept = other(given)
        donating(given).wait_to_read()
        assert (kept.asnumpy() == 1).all()


def test_a_program_that_runs_ahead_stays_in_the_memory(donating: Any) -> None:
    given = fresh(0.0)
    place = address(given)
    for _ in range(300):
        given = donating(given)
        given = donating(given)
    assert address(given) == place


def test_memory_that_a_failed_call_wrote_to_is_not_read() -> None:
    x, i, j = (mx.sym.var(name) for name in "xij")
    new = mx.sym.contrib.index_copy(x, i, mx.sym.slice_axis(x, axis=0, begin=0, end=1) * 7)
    late = mx.sym.contrib.index_copy(mx.sym.sum(new, axis=0, keepdims=True), j, mx.sym.sum(new, axis=0, keepdims=True))
    writing = mx.function([mx.In(x, donate=True), i, j], [new, late])
    for _ in range(3):
        given = fresh()
        with pytest.raises(mx.errors.IndexError):
            for result in writing(given, nd.array([1], dtype="int64"), nd.array([9], dtype="int64")):
                result.asnumpy()
        with pytest.raises(mx.errors.ValueError, match="donated"):
            given.asnumpy()
