"""Consistency checks of hybridized blocks and of optimizers, and an iterator without reading costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import autograd, initializer
from .. import random as mx_random
from ..ndarray import NDArray
from ..util import use_np_shape
from ._compare import assert_almost_equal, compare_ndarray_tuple
from ._random_inputs import rand_ndarray


class DummyIter:
    """Repeats the first batch of an iterator forever: measures training speed without the cost of reading data."""

    def __init__(self, real_iter: Any) -> None:
        self.real_iter = real_iter
        self.provide_data = real_iter.provide_data
        self.provide_label = real_iter.provide_label
        self.batch_size = real_iter.batch_size
        self.the_batch = next(iter(real_iter))

    def __iter__(self) -> DummyIter:
        return self

    def __next__(self) -> Any:
        return self.the_batch

    next = __next__

    def reset(self) -> None:
        """Does nothing: every batch is the same."""


class _Given(initializer.Initializer):
    """Initializes every parameter with the array of its name."""

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        super().__init__()
        self._values = values

    def _init_weight(self, name: Any, arr: Any) -> None:
        arr[()] = self._values[str(name)]

    _init_bias = _init_gamma = _init_beta = _init_default = _init_weight  # type: ignore[assignment]


@use_np_shape
def check_gluon_hybridize_consistency(
    net_builder: Callable[..., Any],
    data_l: Sequence[Any],
    numpy_func: Callable[..., Any] | None = None,
    test_grad: bool = True,
    rtol: float = 1e-4,
    atol: float = 1e-4,
) -> None:
    """Raises AssertionError unless a block computes the same plain and hybridized, recorded and not.

    net_builder(prefix=...) creates the block, which draws no random numbers; data_l: its inputs; numpy_func: the
    expected function of NumPy arrays; test_grad: also compare gradients of the inputs.
    """
    start: Any = None
    output = None
    gradients: list[np.ndarray] | None = None
    for hybridized in (False, True):
        for recorded in (False, True) if test_grad else (False,):
            net = net_builder(prefix="net_")
            net.initialize(start) if start is not None else net.initialize()
            if hybridized:
                net.hybridize()
            inputs = [value.copy() for value in data_l]
            out, grads = _run(net, inputs, recorded)
            if start is None:
                start = _Given({name: p.data().asnumpy() for name, p in net.collect_params().items()})
            output = out if output is None else output
            assert_almost_equal(out, output, rtol=rtol, atol=atol)
            if grads is not None:
                gradients = grads if gradients is None else gradients
                for found, want in zip(grads, gradients):
                    assert_almost_equal(found, want, rtol=rtol, atol=atol)
    if numpy_func is not None:
        assert_almost_equal(output, numpy_func(*[value.asnumpy() for value in data_l]), rtol=rtol, atol=atol)


def _run(net: Any, inputs: list[Any], recorded: bool) -> tuple[np.ndarray, list[np.ndarray] | None]:
    if not recorded:
        return net(*inputs).asnumpy(), None
    for value in inputs:
        value.attach_grad()
    with autograd.record():
        out = net(*inputs)
    out.backward(out)
    return out.asnumpy(), [value.grad.asnumpy() for value in inputs]


def _of_storage(value: NDArray, stype: str) -> NDArray:
    return value if stype == "default" else value.tostype(stype)


def _gradient(shape: Sequence[int], stype: str, dtype: Any) -> NDArray:
    return (
        mx_random.uniform(shape=shape, dtype=dtype) if stype == "default" else rand_ndarray(shape, stype, dtype=dtype)
    )


def compare_optimizer(
    opt1: Any,
    opt2: Any,
    shape: Any,
    dtype: Any,
    w_stype: str = "default",
    g_stype: str = "default",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    compare_states: bool = True,
    ntensors: int = 1,
) -> None:
    """Raises AssertionError unless two optimizers change equal weights in the same way.

    opt1 is the reference with dense arrays; w_stype and g_stype are the storage types for opt2.
    shape: shape of the weight; a list of shapes checks opt2's update of many weights at once against opt1's, one by
    one.
    """
    several = isinstance(shape, list)
    shapes = shape if several else [shape]
    first = [mx_random.uniform(shape=s, dtype=dtype) for s in shapes]
    second = [_of_storage(weight.copy(), w_stype) for weight in first]  # every row is stored
    grads = [_gradient(s, g_stype, dtype) for s in shapes]
    states1 = [opt1.create_state_multi_precision(i, weight) for i, weight in enumerate(first)]
    states2 = [opt2.create_state_multi_precision(i, weight) for i, weight in enumerate(second)]
    for i, (weight, grad) in enumerate(zip(first, grads)):
        opt1.update_multi_precision(i, weight, grad.tostype("default").copy(), states1[i])
    copies = [grad.copy() for grad in grads]
    if several:
        opt2.update_multi_precision(list(range(ntensors)), second, copies, states2)
    else:
        opt2.update_multi_precision(0, second[0], copies[0], states2[0])
    for i in range(len(shapes)):
        assert_almost_equal(first[i], second[i], rtol=rtol, atol=atol)
        if compare_states:
            compare_ndarray_tuple(states1[i], states2[i], rtol, atol)
