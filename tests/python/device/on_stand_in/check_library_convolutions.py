"""Convolutions by cuDNN: the values of the CPU, which engines are taken, and what happens when the library fails."""

from __future__ import annotations

import pathlib
import threading
from typing import Any

import hybridnet as mx
import numpy as np
import operator_sweep
import pytest
import stand_in
from hybridnet import autograd, gluon
from hybridnet.errors import HybridNetError
from hybridnet.gluon import nn

GPU = mx.gpu(0)
RANDOM = np.random.default_rng(11)
OPERATORS = [
    *("Convolution", "_conv_backward_data", "_conv_backward_weights", "Deconvolution", "_fused_convolution"),
]


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def convolutions() -> int:
    mx.nd.waitall()
    return stand_in.counters()["convolutions"]


@pytest.mark.usefixtures("by_library")
@pytest.mark.parametrize("name", OPERATORS)
def test_samples_and_gradients_have_the_values_of_the_cpu(name: str) -> None:
    operator_sweep.check(name)
    assert convolutions() > 0


def results(ctx: mx.Context, dtype: str, shapes: tuple, case: dict[str, Any]) -> list[np.ndarray]:
    """The output of a convolution or deconvolution, and the gradients of all of its inputs."""
    random = np.random.default_rng(3)
    inputs = [mx.nd.array(random.standard_normal(shape), dtype=dtype, ctx=ctx) for shape in shapes]
    for array in inputs:
        array.attach_grad()
    function = mx.nd.Deconvolution if case.get("transposed") else mx.nd.Convolution
    attributes = {name: value for name, value in case.items() if name != "transposed"}
    with autograd.record():
        output = function(*inputs, no_bias=len(inputs) == 2, **attributes)
        (output * output).backward()
    return [array.astype("float64").asnumpy() for array in (output, *(array.grad for array in inputs))]


# Shapes of data, weight and bias; attributes.
CASES: dict[str, tuple[tuple, dict[str, Any]]] = {
    "1-D": (((2, 4, 11), (6, 4, 3), (6,)), {"kernel": 3, "num_filter": 6, "stride": 2, "pad": 1}),
    "1-D, groups, dilation": (
        ((2, 4, 11), (6, 2, 3)),
        {"kernel": 3, "num_filter": 6, "num_group": 2, "dilate": 3},
    ),
    "2-D, odd sizes": (
        ((3, 5, 7, 9), (4, 5, 3, 2), (4,)),
        {"kernel": (3, 2), "num_filter": 4, "stride": (2, 3), "pad": (1, 0)},
    ),
    "2-D, groups, dilation": (
        ((2, 6, 9, 8), (9, 2, 3, 3), (9,)),
        {"kernel": (3, 3), "num_filter": 9, "num_group": 3, "dilate": (2, 1), "pad": (2, 1)},
    ),
    "2-D, one channel a group": (
        ((2, 5, 6, 6), (5, 1, 3, 3)),
        {"kernel": (3, 3), "num_filter": 5, "num_group": 5, "pad": (1, 1)},
    ),
    "2-D, one column": (((2, 3, 9, 1), (4, 3, 3, 1)), {"kernel": (3, 1), "num_filter": 4}),
    "2-D, channels last": (
        ((2, 6, 5, 4), (6, 3, 3, 2), (6,)),
        {"kernel": (3, 3), "num_filter": 6, "num_group": 2, "pad": (1, 1), "layout": "NHWC"},
    ),
    "3-D": (
        ((2, 3, 5, 4, 6), (4, 3, 2, 3, 2), (4,)),
        {"kernel": (2, 3, 2), "num_filter": 4, "stride": (1, 1, 2), "pad": (1, 0, 1)},
    ),
    "transposed 1-D": (
        ((2, 4, 5), (4, 3, 3), (6,)),
        {"kernel": 3, "num_filter": 6, "num_group": 2, "stride": 2, "adj": 1, "transposed": True},
    ),
    "transposed 2-D": (
        ((2, 4, 5, 3), (4, 5, 3, 3), (5,)),
        {"kernel": (3, 3), "num_filter": 5, "stride": (2, 2), "pad": (1, 1), "adj": (1, 0), "transposed": True},
    ),
    "transposed 2-D to a shape": (
        ((1, 2, 4, 4), (2, 3, 3, 3)),
        {"kernel": (3, 3), "num_filter": 3, "stride": (2, 2), "target_shape": (8, 8), "transposed": True},
    ),
    "transposed 3-D": (
        ((1, 2, 3, 2, 3), (2, 2, 2, 2, 3)),
        {"kernel": (2, 2, 3), "num_filter": 2, "dilate": (1, 2, 1), "transposed": True},
    ),
}


@pytest.mark.usefixtures("by_library")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_convolution_has_the_values_of_the_cpu(name: str, dtype: str) -> None:
    shapes, case = CASES[name]
    expected = results(mx.cpu(), dtype, shapes, case)
    before = convolutions()
    found = results(GPU, dtype, shapes, case)
    assert convolutions() - before == 3  # the convolution and its two gradients
    half_ulp = {"float32": 2.0**-21, "float64": 2.0**-49, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    for one, other in zip(found, expected, strict=True):
        assert np.abs(one - other).max() <= 6 * half_ulp * np.abs(other).max()


@pytest.mark.usefixtures("by_library")
def test_empty_batches_are_not_for_the_library() -> None:
    data = mx.nd.ones((0, 3, 5, 5), ctx=GPU)
    weight = mx.nd.ones((2, 3, 3, 3), ctx=GPU)
    weight.attach_grad()
    with autograd.record():
        found = mx.nd.Convolution(data, weight, kernel=(3, 3), num_filter=2, no_bias=True)
    found.backward()
    assert found.shape == (0, 2, 3, 3)
    assert (weight.grad.asnumpy() == 0).all()
    assert convolutions() == 0


@pytest.mark.usefixtures("by_library")
def test_views_at_odd_addresses_are_convolved() -> None:
    data, weight = values(3, 3, 5, 5), values(2, 3, 3, 3)
    there = mx.nd.array(data, ctx=GPU)
    for start in (1, 2):  # images of 75 elements
        found = mx.nd.Convolution(
            there[start:], mx.nd.array(weight, ctx=GPU), kernel=(3, 3), num_filter=2, no_bias=True
        )
        expected = mx.nd.Convolution(
            mx.nd.array(data[start:]), mx.nd.array(weight), kernel=(3, 3), num_filter=2, no_bias=True
        )
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-5)
    assert convolutions() == 2


def lenet() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 5, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(6, 3, activation="tanh"))
    net.add(nn.MaxPool2D(2, 2), nn.Flatten(), nn.Dense(16, activation="tanh"), nn.Dense(10))
    return net


class Residual(gluon.HybridBlock):
    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.body = nn.HybridSequential()
        self.body.add(nn.Conv2D(channels, 3, stride, 1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
        self.body.add(nn.Conv2D(channels, 3, 1, 1, use_bias=False), nn.BatchNorm())
        self.shortcut = nn.Conv2D(channels, 1, stride, use_bias=False)

    def forward(self, x: mx.nd.NDArray) -> mx.nd.NDArray:
        return mx.nd.relu(self.body(x) + self.shortcut(x))


def resnet() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, 1, 1), Residual(4, 1), Residual(8, 2), nn.GlobalAvgPool2D(), nn.Dense(10))
    return net


def losses(make: Any, ctx: mx.Context, hybridize: bool, dtype: str = "float32") -> np.ndarray:
    random = np.random.default_rng(4)
    mx.random.seed(1)
    net = make()
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.cast(dtype)
    if hybridize:
        net.hybridize(static_alloc=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9})
    data = mx.nd.array(random.random((4, 1, 14, 14)), ctx=ctx, dtype=dtype)
    label = mx.nd.array(random.integers(0, 10, 4), ctx=ctx)
    found = []
    for _ in range(4):
        with autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(4)
        found.append(float(loss.mean().asscalar()))
    return np.array(found)


@pytest.mark.usefixtures("by_library", "order")
@pytest.mark.parametrize("make", [lenet, resnet])
@pytest.mark.parametrize("hybridize", [False, True], ids=["imperative", "hybridized"])
def test_a_net_trains_with_the_losses_of_the_cpu_and_equal_bits_in_each_run(make: Any, hybridize: bool) -> None:
    first, second = losses(make, GPU, hybridize), losses(make, GPU, hybridize)
    layers = 2 if make is lenet else 7
    assert convolutions() == 2 * 4 * (3 * layers - 1)  # the data needs no gradient
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, losses(make, mx.cpu(), hybridize), rtol=2e-4)
    assert first[-1] < first[0]


@pytest.mark.usefixtures("by_library")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_fused_net_predicts_with_the_values_of_the_cpu(dtype: str) -> None:
    def found(ctx: mx.Context) -> np.ndarray:
        mx.random.seed(2)
        net = resnet()
        net.initialize(mx.init.Xavier(), ctx=ctx)
        net.cast(dtype)
        net.hybridize(static_alloc=True)
        data = mx.nd.array(np.random.default_rng(5).random((2, 1, 9, 9)), ctx=ctx, dtype=dtype)
        return [net(data).astype("float32").asnumpy() for _ in range(3)][-1]

    np.testing.assert_allclose(found(GPU), found(mx.cpu()), rtol=1e-4 if dtype == "float32" else 1e-2, atol=2e-3)
    assert convolutions() == 3 * 7


@pytest.mark.usefixtures("by_library")
def test_loops_with_convolutions_of_the_library_are_the_hosts() -> None:
    class Net(gluon.HybridBlock):
        def forward(self, x: mx.nd.NDArray, weight: mx.nd.NDArray) -> mx.nd.NDArray:
            def body(row: mx.nd.NDArray, image: mx.nd.NDArray) -> tuple:
                image = mx.nd.Convolution(image, weight, kernel=(3, 3), pad=(1, 1), num_filter=2, no_bias=True)
                return image.sum(), mx.nd.tanh(image + row)

            return mx.nd.contrib.foreach(body, mx.nd.arange(9, ctx=x.context), x)[1]

    given = values(1, 2, 4, 4), values(2, 2, 3, 3) / 4

    def found(ctx: mx.Context) -> list[np.ndarray]:
        net = Net()
        net.hybridize(static_alloc=True, strict=True)
        inputs = [mx.nd.array(x, ctx=ctx) for x in given]
        return [net(*inputs).asnumpy() for _ in range(3)]

    for one in found(GPU):
        np.testing.assert_allclose(one, found(mx.cpu())[0], rtol=1e-5, atol=1e-6)
    assert convolutions() == 3 * 9


def test_large_convolutions_go_to_the_library_and_small_ones_do_not() -> None:
    def run(channels: int) -> np.ndarray:
        data, weight = mx.nd.ones((1, channels, 4, 4), ctx=GPU), mx.nd.ones((8, channels, 3, 3), ctx=GPU)
        return mx.nd.Convolution(data, weight, kernel=(3, 3), num_filter=8, no_bias=True).asnumpy()

    assert (run(7) == 63).all()
    assert convolutions() == 0
    assert (run(57) == 513).all()
    assert convolutions() == 1


@pytest.mark.usefixtures("by_library")
def test_tf32_is_used_only_where_it_is_allowed() -> None:
    data, weight = (mx.nd.array(values(*shape), ctx=GPU) for shape in ((2, 3, 6, 6), (4, 3, 3, 3)))

    def run(dtype: str = "float32") -> np.ndarray:
        inputs = data.astype(dtype), weight.astype(dtype)
        return mx.nd.Convolution(*inputs, kernel=(3, 3), num_filter=4, no_bias=True).asnumpy()

    exact, wide = run(), run("float64")
    assert stand_in.counters()["tf32_convolutions"] == 0
    before = mx.cuda.allow_tf32(True)
    try:
        rounded = run()
        np.testing.assert_array_equal(run("float64"), wide)
        assert stand_in.counters()["tf32_convolutions"] == 1
    finally:
        mx.cuda.allow_tf32(before)
    assert 1e-5 < np.abs(rounded - exact).max() < 0.1
    np.testing.assert_array_equal(run(), exact)


@pytest.mark.usefixtures("by_library", "order")
def test_threads_share_plans() -> None:
    data, weight = values(2, 3, 5, 5), values(3, 3, 3, 3)
    attributes = {"kernel": (3, 3), "num_filter": 3, "no_bias": True}
    expected = mx.nd.Convolution(mx.nd.array(data), mx.nd.array(weight), **attributes).asnumpy()
    wrong = []

    def work() -> None:
        for _ in range(20):
            there = mx.nd.Convolution(mx.nd.array(data, ctx=GPU), mx.nd.array(weight, ctx=GPU), **attributes).asnumpy()
            if not np.allclose(there, expected, rtol=1e-5, atol=1e-5):
                wrong.append(there)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert convolutions() == 40
    assert stand_in.counters()["convolution_choices"] <= 1


CALLS = [
    *("cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendGetAttribute", "cudnnBackendFinalize"),
    *("cudnnSetStream", "cudnnBackendExecute"),
]
OF_A_RUN = ("cudnnSetStream", "cudnnBackendExecute")


@pytest.mark.usefixtures("by_library")
def test_a_call_that_fails_is_an_error_with_the_sizes_and_the_next_convolution_works() -> None:
    numbers = dict.fromkeys(CALLS, 0)
    channels = 12
    for function in CALLS:
        while numbers[function] < 60:
            numbers[function] += 1
            channels += 1  # a layout that no other test has: the library prepares it anew
            if not fails_once(function, numbers[function], channels):
                break
    # Each call of a convolution has failed once: descriptors and finalizations of 3 tensors, convolution, operation,
    # graph, list of engines, ...
    assert numbers["cudnnBackendCreateDescriptor"] >= 18
    assert numbers["cudnnBackendSetAttribute"] >= 30
    assert numbers["cudnnBackendFinalize"] >= 9
    assert numbers["cudnnBackendGetAttribute"] >= 4
    assert numbers["cudnnSetStream"] == numbers["cudnnBackendExecute"] == 2


def fails_once(function: str, number: int, channels: int) -> bool:
    """Whether the convolution makes so many calls of this function; each of them is an error when it fails."""
    data, weight = values(1, channels, 3, 3), values(2, channels, 3, 3)
    inputs = [mx.nd.array(x, ctx=GPU) for x in (data, weight)]
    attributes = {"kernel": (3, 3), "num_filter": 2, "no_bias": True, "pad": (1, 1)}
    mx.nd.waitall()
    objects, before = stand_in.counters()["live_library_objects"], convolutions()
    stand_in.fail(f"{function}:{number}:5000")
    expected = mx.nd.Convolution(mx.nd.array(data), mx.nd.array(weight), **attributes).asnumpy()
    try:
        found = mx.nd.Convolution(*inputs, **attributes).asnumpy()
    except HybridNetError as error:
        stand_in.fail("")
        text = str(error)
        assert f"{function} failed: CUDNN_STATUS_EXECUTION_FAILED (5000), the stand-in says no" in text
        assert f"float32 convolution: data (1, {channels}, 3, 3), weight (2, {channels}, 3, 3)" in text
        assert "Convolution" in text
        assert "HYBRIDNET_CUDA_LIBRARIES=0" in text
        if function not in OF_A_RUN and number < 9:
            assert stand_in.counters()["live_library_objects"] == objects
        found = mx.nd.Convolution(*inputs, **attributes).asnumpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        return True
    stand_in.fail("")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert convolutions() - before == 1
    return False


def convolve(channels: int) -> None:
    """Checks the values of a convolution with these channels."""
    data, weight = values(2, channels, 4, 4), values(3, channels, 3, 3)
    attributes = {"kernel": (3, 3), "num_filter": 3, "no_bias": True}
    expected = mx.nd.Convolution(mx.nd.array(data), mx.nd.array(weight), **attributes).asnumpy()
    found = mx.nd.Convolution(mx.nd.array(data, ctx=GPU), mx.nd.array(weight, ctx=GPU), **attributes).asnumpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("by_library")
def test_our_kernel_computes_what_the_library_has_no_engine_for() -> None:
    stand_in.fail("cudnnBackendFinalize:6:3000")  # after three tensors, the convolution and its operation: the graph
    convolve(101)
    stand_in.fail("")
    convolve(101)  # it is not asked again
    assert convolutions() == 0


@pytest.mark.usefixtures("by_library")
def test_our_kernel_computes_what_needs_too_much_workspace() -> None:
    stand_in.library().hnstandin_workspace((256 << 20) + 1)
    try:
        convolve(102)
    finally:
        stand_in.library().hnstandin_workspace(0)
    assert convolutions() == 0


@pytest.mark.usefixtures("by_library")
def test_an_error_of_the_workspace_is_out_of_memory() -> None:
    data, weight = mx.nd.ones((2, 103, 4, 4), ctx=GPU), mx.nd.ones((3, 103, 3, 3), ctx=GPU)
    attributes = {"kernel": (3, 3), "num_filter": 3, "no_bias": True}
    GPU.empty_cache()
    mx.nd.waitall()
    stand_in.library().hnstandin_workspace(64 << 20)
    stand_in.fail("cuMemAllocAsync:2:2,cuMemAllocAsync:3:2")  # the first is that of the result
    try:
        with pytest.raises(HybridNetError, match="bytes left"):
            mx.nd.Convolution(data, weight, **attributes).asnumpy()
    finally:
        stand_in.fail("")
        stand_in.library().hnstandin_workspace(0)
    assert (mx.nd.Convolution(data, weight, **attributes).asnumpy() == 927).all()


CODE = """if True:
    import hybridnet as mx, stand_in
    x, w = mx.nd.ones((1, 64, 4, 4), ctx=mx.gpu(0)), mx.nd.ones((8, 64, 3, 3), ctx=mx.gpu(0))
    assert (mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=8, no_bias=True).asnumpy() == 576).all()
    print(stand_in.counters()["convolutions"], mx.runtime.gpu_libraries()["cuDNN"])
"""


def test_the_library_is_listed_and_can_be_turned_off() -> None:
    version, _, file = mx.runtime.gpu_libraries()["cuDNN"].partition(", ")
    assert version == "9.14.0"
    assert file == str(stand_in.LIBRARY)
    for libraries in ("0", "cublaslt"):
        done = stand_in.run(CODE, HYBRIDNET_CUDA_LIBRARIES=libraries)
        assert done.stdout == "0 turned off by HYBRIDNET_CUDA_LIBRARIES\n", done.stderr
    assert stand_in.run(CODE, HYBRIDNET_CUDA_LIBRARIES="cublaslt,cudnn").stdout.startswith("1 9.14.0")


def test_a_library_for_a_later_cuda_is_not_used() -> None:
    done = stand_in.run(CODE, HNSTANDIN_RUNTIME="13000")
    assert done.stdout == f"0 {stand_in.LIBRARY} is for CUDA 13, and the driver for CUDA 12\n", done.stderr


def test_a_library_without_those_that_it_loads_is_not_used(tmp_path: pathlib.Path) -> None:
    """cuDNN ends the process if it does not find cuBLASLt or NVRTC of its version."""
    there = {"HYBRIDNET_CUDA_DRIVER": str(stand_in.LIBRARY), "HYBRIDNET_CUDA_PATH": str(tmp_path)}
    for library in ("libnvrtc.so.12", "libcudnn_graph.so.9"):
        (tmp_path / library).symlink_to(stand_in.LIBRARY)
    done = stand_in.run(CODE, HNSTANDIN_RUNTIME="12080", **there)
    assert " needs cuBLASLt: no cuBLASLt was found among " in done.stdout, done.stderr
    assert done.stdout.startswith("0 "), done.stdout
    (tmp_path / "libcublasLt.so.12").symlink_to(stand_in.LIBRARY)
    assert stand_in.run(CODE, **there).stdout.startswith("1 9.14.0")


def test_a_gpu_that_the_library_does_not_know_has_our_kernel() -> None:
    done = stand_in.run(CODE, HNSTANDIN_FAIL="cudnnCreate:1:3007")
    assert done.stdout.startswith("0 9.14.0"), done.stderr
    done = stand_in.run(CODE, HNSTANDIN_FAIL="cudnnCreate:1:1001")
    assert "cudnnCreate failed: CUDNN_STATUS_NOT_INITIALIZED (1001)" in done.stderr


def test_a_convolution_that_is_waited_for_is_named_by_its_error() -> None:
    code = """if True:
        import hybridnet as mx, stand_in
        x, w = mx.nd.ones((1, 64, 4, 4), ctx=mx.gpu(0)), mx.nd.ones((8, 64, 3, 3), ctx=mx.gpu(0))
        convolution = lambda: mx.nd.Convolution(x, w, kernel=(3, 3), num_filter=8, no_bias=True).wait_to_read()
        convolution()  # the next one finds its memory in the pool
        stand_in.fail("cuStreamSynchronize:1:700")
        try:
            convolution()
        except mx.errors.HybridNetError as error:
            print(error)
    """
    done = stand_in.run(code, HYBRIDNET_CUDA_SYNC="1")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700): float32 convolution: data (1, 64, 4, 4)" in done.stdout, done.stderr
