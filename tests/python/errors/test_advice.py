"""Errors of operators blame the data of a layer, have a fix, and advise no cast of floating numbers to integers."""

from __future__ import annotations

import re
import traceback

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import gluon
from hybridnet.gluon import nn

LAYERS = [
    (lambda: nn.Dense(3, in_units=5), (2, 4), "expected 5 features, got 4"),
    (lambda: nn.Dense(3, in_units=1), (2, 4), "expected 1 feature, got 4"),
    (lambda: nn.Conv2D(3, 1, in_channels=2), (1, 3, 4, 4), "expected 2 input channels, got 3"),
    (lambda: nn.Conv2D(3, 1, in_channels=2, layout="NHWC"), (1, 4, 4, 3), "expected 2 input channels, got 3"),
    (lambda: nn.Conv2DTranspose(3, 1, in_channels=2), (1, 3, 4, 4), "expected 2 input channels, got 3"),
    (lambda: nn.BatchNorm(in_channels=2), (1, 3, 4, 4), "expected 2 channels, got 3"),
    (lambda: nn.InstanceNorm(in_channels=2), (1, 3, 4), "expected 2 channels, got 3"),
]


def error_of(call) -> mx.MXNetError:
    with pytest.raises(mx.MXNetError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(("make", "shape", "says"), LAYERS)
def test_a_layer_blames_the_shape_of_its_data(make, shape, says, hybrid):
    net = nn.HybridSequential()
    net.add(make())
    net.initialize()
    net.hybridize(hybrid)
    text = str(error_of(lambda: net(mx.nd.ones(shape))))
    assert f"input 'data': {says}." in text
    assert "\n  Because: the layer was built for " in text
    assert "\n  Fix: pass data with " in text
    assert "\n  At: " in text


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float64"])
@pytest.mark.parametrize(("make", "shape"), [(lambda: nn.Dense(3), (2, 4)), (lambda: nn.Conv2D(3, 1), (1, 3, 4, 4))])
def test_a_layer_blames_the_dtype_of_its_data(make, shape, dtype, hybrid):
    net = make()
    net.initialize()
    net.hybridize(hybrid)
    text = str(error_of(lambda: net(mx.nd.ones(shape, dtype=dtype))))
    assert f"input 'data': expected dtype float32, got {dtype}." in text
    assert "cast the data: net(x.astype('float32'))" in text


def test_an_operator_without_a_layer_blames_the_weight():
    text = str(
        error_of(lambda: mx.nd.FullyConnected(mx.nd.ones((2, 4)), mx.nd.ones((3, 5)), num_hidden=3, no_bias=True))
    )
    assert "input 'weight': expected shape (3, 4), got (3, 5)." in text


DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"]


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_no_fix_turns_floating_numbers_into_integers(left, right):
    if left == right:
        return
    text = str(error_of(lambda: mx.nd.ones((2,), dtype=left) + mx.nd.ones((2,), dtype=right)))
    advised = re.findall(r"astype\('(\w+)'\)", text.split("Fix: ")[1])
    floating = [dtype for dtype in (left, right) if np.dtype(dtype).kind == "f"]
    assert advised
    assert not floating or set(advised) <= set(floating)


def test_a_wrong_rank_in_the_first_batch_is_one_error():
    net = nn.Conv2D(3, 1)
    net.initialize()
    error = error_of(lambda: net(mx.nd.ones((4, 4))))
    report = "".join(traceback.format_exception(error))
    assert report.count("Traceback") == 1
    assert "DeferredInitializationError" not in report
    assert "reshape((1, 1, 4, 4))" in str(error)


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: mx.nd.ones((2, 3)).mean(axis=5), "axes count from 0"),
        (lambda: mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 4))), "transpose_a=True"),
        (lambda: mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((4, 5))), "the last size of the first array"),
        (lambda: mx.nd.dot(mx.nd.ones((2, 3))), "pass both arrays"),
        (lambda: mx.nd.where(mx.nd.ones((2, 3))), "pass all three arrays"),
        (lambda: mx.nd.ones((2, 3)).transpose((0, 0)), "axes=(1, 0)"),
        (lambda: mx.nd.LayerNorm(mx.nd.ones((2, 3)), mx.nd.ones((2,)), mx.nd.ones((2,))), "features"),
        (lambda: mx.nd.ones((2, 3)).squeeze(0), "axes of size 1"),
        (lambda: mx.nd.split(mx.nd.ones((3, 4)), 2, axis=0), "split_v2"),
        (lambda: mx.nd.Activation(mx.nd.ones((2,)), act_type="rleu"), "did you mean 'relu'?"),
        (lambda: mx.nd.Pooling(mx.nd.ones((3, 4, 4)).reshape((48,)), kernel=(2, 2)), "batch, channels, height, width"),
    ],
)
def test_errors_without_a_fix_of_the_library_get_one(call, fix):
    text = str(error_of(call))
    assert fix in text.split("\n  Fix: ")[1]
    assert text.count("\n  Fix: ") == 1


# --- calls of blocks --------------------------------------------------------------------------------------------------


class Two(gluon.HybridBlock):
    def hybrid_forward(self, F, x, y, scale=1):
        return x + y * scale


class Plain(gluon.Block):
    def forward(self, x):
        return x + len(x.nothing)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("count", [1, 4])
def test_a_wrong_number_of_inputs_is_named(count, hybrid):
    net = Two()
    net.hybridize(hybrid)
    error = error_of(lambda: net(*[mx.nd.ones((2,))] * count))
    assert str(error).startswith(f"Two: inputs: expected (x, y), got {count} input")


def test_a_type_error_inside_of_forward_stays():
    class Broken(gluon.Block):
        def forward(self, x):
            return len(3)

    with pytest.raises(TypeError, match="has no len") as caught:
        Broken()(1)
    assert not isinstance(caught.value, mx.MXNetError)


def test_a_block_without_the_constructor_of_its_base_says_so_wherever_it_is_used():
    class Net(gluon.Block):
        def __init__(self):
            self.size = 3

        def forward(self, x):
            return x

    for use in (lambda n: n(1), lambda n: n.initialize(), lambda n: n.collect_params(), lambda n: n.hybridize()):
        error = error_of(lambda use=use: use(Net()))
        assert "begin Net.__init__ with super().__init__()" in str(error)


def test_blocks_are_copied_and_pickled_without_arguments():
    import copy

    net = nn.Dense(3, in_units=2)
    net.initialize()
    assert copy.deepcopy(net).weight.data().shape == (3, 2)
    assert nn.Dense.__new__(nn.Dense).__class__ is nn.Dense
