"""Products by cuBLASLt: the values of the CPU, in any order of streams, and what happens when the library fails."""

from __future__ import annotations

import threading

import hybridnet as mx
import numpy as np
import operator_sweep
import pytest
import stand_in
from hybridnet import autograd, gluon
from hybridnet.errors import HybridNetError
from hybridnet.gluon import nn

GPU = mx.gpu(0)
RANDOM = np.random.default_rng(9)
OPERATORS = [
    *("dot", "batch_dot", "FullyConnected", "_npi_matmul", "_npi_tensordot", "_linalg_gemm", "_linalg_gemm2"),
    *("_linalg_syrk", "_linalg_trmm", "RNN", "_contrib_interleaved_matmul_selfatt_qk"),
]


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def products() -> int:
    mx.nd.waitall()
    return stand_in.counters()["products"]


@pytest.mark.usefixtures("by_library")
@pytest.mark.parametrize("name", OPERATORS)
def test_samples_and_gradients_have_the_values_of_the_cpu(name: str) -> None:
    operator_sweep.check(name)
    assert products() > 0


@pytest.mark.usefixtures("by_library")
def test_many_matrices_are_one_product() -> None:
    projections = values(5, 2, 3 * 4 * 6)  # (length, batch, heads * 3 * size)
    a, b, c = values(2, 4, 3, 5), values(2, 5, 3, 6), values(2, 4, 3, 6)

    def results(ctx: mx.Context) -> list[np.ndarray]:
        there = mx.nd.array(projections, ctx=ctx)
        scores = mx.nd.contrib.interleaved_matmul_selfatt_qk(there, heads=4)
        mixed = mx.nd.contrib.interleaved_matmul_selfatt_valatt(there, scores, heads=4)
        left, right, added = (mx.nd.array(x, ctx=ctx) for x in (a, b, c))
        rows = mx.nd.linalg.gemm(left, right, added, alpha=2.0, beta=0.5, axis=1)  # a batch for each of the first axis
        matrices = mx.nd.linalg.gemm2(left.transpose((0, 2, 1, 3)), right.transpose((0, 2, 1, 3)))
        return [x.asnumpy() for x in (scores, mixed, rows, matrices)]

    for found, expected in zip(results(GPU), results(mx.cpu()), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert products() == 1 + 1 + 2 + 1


@pytest.mark.usefixtures("by_library")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(dtype: str) -> None:
    a, b, bias = (mx.nd.array(values(*shape), dtype=dtype) for shape in ((9, 40), (6, 40), (6,)))
    for call in (
        lambda a, b, bias: mx.nd.dot(a, b, transpose_b=True),
        lambda a, b, bias: mx.nd.FullyConnected(a, b, bias, num_hidden=6),
        lambda a, b, bias: mx.nd.batch_dot(a.reshape((3, 3, 40)), b.reshape((3, 2, 40)), transpose_b=True),
    ):
        expected = call(a, b, bias).astype("float32").asnumpy()
        found = call(*(x.as_in_context(GPU) for x in (a, b, bias))).astype("float32").asnumpy()
        half_ulp = 2.0 ** (-11 if dtype == "float16" else -8)
        np.testing.assert_allclose(found, expected, rtol=2 * half_ulp, atol=1e-3)
    assert products() == 3


@pytest.mark.usefixtures("by_library")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_views_at_odd_addresses_are_multiplied(dtype: str) -> None:
    a, b = values(6, 5, dtype=dtype), values(6, 3, dtype=dtype)
    there_a, there_b = (mx.nd.array(x, dtype=dtype, ctx=GPU) for x in (a, b))
    for start in range(1, 5):  # rows of 5 and 3 elements
        found = mx.nd.dot(there_a[start:], there_b[start:], transpose_a=True).asnumpy()
        expected = a[start:].astype("float64").T @ b[start:].astype("float64")
        np.testing.assert_allclose(found, expected, rtol=1e-2 if dtype == "float16" else 1e-5, atol=1e-2)
    assert products() == 4


@pytest.mark.usefixtures("by_library")
def test_empty_products_and_empty_sums_are_not_for_the_library() -> None:
    for rows, depth, columns in ((0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)):
        found = mx.nd.dot(mx.nd.ones((rows, depth), ctx=GPU), mx.nd.ones((depth, columns), ctx=GPU)).asnumpy()
        np.testing.assert_array_equal(found, np.zeros((rows, columns), "float32"))
    batches = mx.nd.batch_dot(mx.nd.ones((0, 2, 3), ctx=GPU), mx.nd.ones((0, 3, 4), ctx=GPU))
    assert batches.shape == (0, 2, 4)
    assert products() == 0


@pytest.mark.usefixtures("by_library")
def test_values_that_only_our_kernel_keeps_stay_with_it() -> None:
    outer = mx.nd.dot(mx.nd.array([[-0.0], [1]], ctx=GPU), mx.nd.array([[1, -0.0]], ctx=GPU)).asnumpy()
    np.testing.assert_array_equal(np.signbit(outer), [[True, False], [False, True]])
    wrong = mx.nd.array([[np.nan, 1], [1, 1]], ctx=GPU)
    assert np.isnan(mx.nd.linalg.gemm2(wrong, wrong, alpha=0.0).asnumpy()[0, 0])
    assert products() == 0


def digits_net() -> nn.HybridSequential:
    net = nn.HybridSequential()
    net.add(nn.Dense(32, in_units=64, activation="relu"), nn.Dense(10, in_units=32))
    return net


def losses(ctx: mx.Context, hybridize: bool, dtype: str = "float32") -> np.ndarray:
    random = np.random.default_rng(4)
    mx.random.seed(1)
    net = digits_net()
    net.initialize(mx.init.Xavier(), ctx=ctx)
    net.cast(dtype)
    if hybridize:
        net.hybridize(static_alloc=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.2, "momentum": 0.9})
    data = mx.nd.array(random.random((24, 64)), ctx=ctx, dtype=dtype)
    label = mx.nd.array(random.integers(0, 10, 24), ctx=ctx)
    found = []
    for _ in range(5):
        with autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(24)
        found.append(float(loss.mean().asscalar()))
    return np.array(found)


@pytest.mark.usefixtures("by_library", "order")
@pytest.mark.parametrize("hybridize", [False, True], ids=["imperative", "hybridized"])
def test_a_net_trains_with_the_losses_of_the_cpu_and_equal_bits_in_each_run(hybridize: bool) -> None:
    first, second = losses(GPU, hybridize), losses(GPU, hybridize)
    assert products() == 2 * 5 * 5  # two forward, three backward: the data needs no gradient
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, losses(mx.cpu(), hybridize), rtol=1e-5)
    assert first[-1] < first[0]


@pytest.mark.usefixtures("by_library")
def test_a_plan_launches_graphs_around_its_products() -> None:
    net = nn.HybridSequential()
    for _ in range(2):
        net.add(nn.Dense(8, in_units=8, activation="tanh"), nn.LayerNorm(in_channels=8), nn.Activation("sigmoid"))
        net.add(nn.LayerNorm(in_channels=8))
    net.initialize(ctx=GPU)
    net.hybridize(static_alloc=True)
    data = [mx.nd.array(values(4, 8), ctx=GPU) for _ in range(6)]
    found = [net(x).asnumpy() for x in data]
    net.hybridize(False)
    for x, value in zip(data, found, strict=True):
        np.testing.assert_allclose(value, net(x).asnumpy(), rtol=1e-5, atol=1e-6)
    assert products() == 2 * 2 * len(data)
    assert stand_in.counters()["graph_launches"] > 0


def test_large_products_go_to_the_library_and_small_ones_do_not() -> None:
    small, large = mx.nd.ones((8, 64), ctx=GPU), mx.nd.ones((8, 512), ctx=GPU)
    assert (mx.nd.dot(small, small, transpose_b=True).asnumpy() == 64).all()
    assert products() == 0
    assert (mx.nd.dot(large, large, transpose_b=True).asnumpy() == 512).all()
    assert products() == 1


@pytest.mark.usefixtures("by_library")
def test_tf32_is_used_only_where_it_is_allowed() -> None:
    a = mx.nd.array(values(5, 30), ctx=GPU)

    def product(x: mx.nd.NDArray) -> np.ndarray:
        return mx.nd.dot(x, x, transpose_b=True).asnumpy()

    exact, wide = product(a), product(a.astype("float64"))
    assert stand_in.counters()["tf32_products"] == 0
    assert mx.cuda.allow_tf32(True) is False
    try:
        rounded = product(a)
        np.testing.assert_array_equal(product(a.astype("float64")), wide)
        assert stand_in.counters()["tf32_products"] == 1
    finally:
        assert mx.cuda.allow_tf32(False) is True
    assert 1e-5 < np.abs(rounded - exact).max() < 0.1
    np.testing.assert_array_equal(product(a), exact)
    with pytest.raises(mx.errors.TypeError, match="allow_tf32"):
        mx.cuda.allow_tf32("yes")


@pytest.mark.usefixtures("by_library", "order")
def test_threads_share_plans() -> None:
    a, b = values(7, 9), values(9, 4)
    expected, wrong = a @ b, []

    def work() -> None:
        for _ in range(20):
            there = mx.nd.dot(mx.nd.array(a, ctx=GPU), mx.nd.array(b, ctx=GPU)).asnumpy()
            if not np.allclose(there, expected, rtol=1e-5, atol=1e-5):
                wrong.append(there)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert products() == 80
    assert stand_in.counters()["product_choices"] <= 1


CALLS = [
    *("cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate"),
    *("cublasLtMatrixLayoutSetAttribute", "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute"),
    *("cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"),
]


@pytest.mark.usefixtures("by_library")
@pytest.mark.parametrize("function", CALLS)
def test_a_call_that_fails_is_an_error_with_the_sizes_and_the_next_product_works(function: str) -> None:
    sizes = (2, 3, 11 + CALLS.index(function), 4)  # that no other test has: the library prepares them anew
    a, b = values(*sizes[:3]), values(2, sizes[2], 4)
    there = [mx.nd.array(x, ctx=GPU) for x in (a, b)]
    mx.nd.waitall()
    objects = stand_in.counters()["live_library_objects"]
    stand_in.fail(f"{function}:1:13")
    with pytest.raises(HybridNetError) as caught:
        mx.nd.batch_dot(*there).asnumpy()
    stand_in.fail("")
    text = str(caught.value)
    assert f"{function} failed: CUBLAS_STATUS_EXECUTION_FAILED (13)" in text
    assert f"float32 product of 2 pairs (3, {sizes[2]}) x ({sizes[2]}, 4)" in text
    assert "batch_dot" in text
    assert "HYBRIDNET_CUDA_LIBRARIES=0" in text
    if function != "cublasLtMatmul":
        assert stand_in.counters()["live_library_objects"] == objects
    np.testing.assert_allclose(mx.nd.batch_dot(*there).asnumpy(), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("by_library")
def test_our_kernel_computes_what_the_library_has_no_algorithm_for() -> None:
    a = values(3, 29)
    there = mx.nd.array(a, ctx=GPU)
    stand_in.fail("cublasLtMatmulAlgoGetHeuristic:1:15")
    for _ in range(2):
        np.testing.assert_allclose(mx.nd.dot(there, there, transpose_b=True).asnumpy(), a @ a.T, rtol=1e-5, atol=1e-5)
    stand_in.fail("")
    assert products() == 0


@pytest.mark.usefixtures("by_library")
def test_an_error_of_the_workspace_is_out_of_memory() -> None:
    there = mx.nd.ones((70, 31), ctx=GPU)
    GPU.empty_cache()
    mx.nd.waitall()
    stand_in.fail("cuMemAllocAsync:2:2,cuMemAllocAsync:3:2")  # the first is that of the result
    with pytest.raises(HybridNetError, match="bytes left"):
        mx.nd.dot(there, there, transpose_b=True).asnumpy()
    stand_in.fail("")
    assert (mx.nd.dot(there, there, transpose_b=True).asnumpy() == 31).all()


def test_the_library_is_listed_and_can_be_turned_off() -> None:
    version, _, file = mx.runtime.gpu_libraries()["cuBLASLt"].partition(", ")
    assert version == "13.1.0"
    assert file == str(stand_in.LIBRARY)
    code = """if True:
        import hybridnet as mx, stand_in
        x = mx.nd.ones((4, 1024), ctx=mx.gpu(0))
        assert (mx.nd.dot(x, x, transpose_b=True).asnumpy() == 1024).all()
        print(stand_in.counters()["products"], mx.runtime.gpu_libraries()["cuBLASLt"])
    """
    done = stand_in.run(code, HYBRIDNET_CUDA_LIBRARIES="0")
    assert done.stdout == "0 turned off by HYBRIDNET_CUDA_LIBRARIES\n", done.stderr
    done = stand_in.run(code, HYBRIDNET_CUDA_LIBRARIES="cublaslt")
    assert done.stdout.startswith("1 13.1.0"), done.stderr
    done = stand_in.run(code, HYBRIDNET_CUDA_LIBRARIES="cublas")
    assert "0, 1, or names with commas between: cublaslt cudnn" in done.stderr


def test_a_product_that_is_waited_for_is_named_by_its_error() -> None:
    code = """if True:
        import hybridnet as mx, stand_in
        x = mx.nd.ones((4, 1024), ctx=mx.gpu(0))
        mx.nd.dot(x, x, transpose_b=True).wait_to_read()  # the next one finds its memory in the pool
        stand_in.fail("cuStreamSynchronize:1:700")
        try:
            mx.nd.dot(x, x, transpose_b=True).wait_to_read()
        except mx.errors.HybridNetError as error:
            print(error)
    """
    done = stand_in.run(code, HYBRIDNET_CUDA_SYNC="1")
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700): float32 product (4, 1024) x (4, 1024) transposed" in done.stdout, (
        done.stderr
    )


@pytest.mark.usefixtures("by_library")
def test_loops_and_branches_with_products_of_the_library_are_the_hosts() -> None:
    class Net(gluon.HybridBlock):
        def forward(self, x: mx.nd.NDArray, weight: mx.nd.NDArray) -> mx.nd.NDArray:
            def body(i: mx.nd.NDArray, x: mx.nd.NDArray) -> tuple:
                x = mx.nd.contrib.cond(
                    i.sum() > 3, lambda: mx.nd.dot(x, weight), lambda: mx.nd.tanh(mx.nd.dot(x, weight))
                )
                return x, (i + 1, x)

            start = (mx.nd.zeros((1,), ctx=x.context), x)
            return mx.nd.contrib.while_loop(lambda i, x: i < 6, body, start, 9)[0]

    given = values(4, 8), values(8, 8) / 4

    def results(ctx: mx.Context) -> list[np.ndarray]:
        net = Net()
        net.hybridize(static_alloc=True, strict=True)
        inputs = [mx.nd.array(x, ctx=ctx) for x in given]
        return [net(*inputs).asnumpy() for _ in range(4)]

    expected = results(mx.cpu())[0]
    before = products()
    for found in results(GPU):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert products() - before == 4 * 6
