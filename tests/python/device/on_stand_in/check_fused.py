"""Chains of elementwise operators, and sums of arrays, are one kernel on gpu(0), with the bits of the CPU."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from both_devices import difference

RANDOM = np.random.default_rng(5)
LONG = "; ".join(f"_plus_scalar({step}, scalar={step})" for step in range(60)) + " -> 60"


def draw(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_chain_with_repeated_inputs_and_two_outputs_has_the_cpu_s_bits(dtype: str) -> None:
    program = (
        "exp(0); broadcast_mul(4, 1); _plus_scalar(5, scalar=1.5); broadcast_div(6, 2); clip(7, a_min=-1, a_max=3);"
        " tanh(8); broadcast_add(9, 3); _rminus_scalar(10, scalar=2); sigmoid(11) -> 12, 6"
    )
    inputs = [array.astype(dtype) for array in (draw(33, 7, 5), draw(7, 1), draw(1), draw(5))]
    assert difference("_fused_elementwise", inputs, num_args=4, program=program) == 0.0


def test_integers_wrap_around_as_on_the_cpu() -> None:
    program = "_plus_scalar(0, scalar=3); broadcast_mul(2, 1); abs(3); _maximum_scalar(4, scalar=5) -> 5"
    inputs = [(draw(33, 7) * 100).astype("int8"), (draw(7) * 90).astype("int8")]
    assert difference("_fused_elementwise", inputs, num_args=2, program=program) == 0.0


def test_a_long_chain_is_one_launch() -> None:
    assert difference("_fused_elementwise", [draw(2, 3).astype("float32")], num_args=1, program=LONG) == 0.0
    data = mx.nd.array(draw(300, 70), ctx=mx.gpu(0))
    mx.nd.waitall()
    before = stand_in.counters()["launches"]
    mx.nd._internal._fused_elementwise(data, num_args=1, program=LONG).wait_to_read()
    assert stand_in.counters()["launches"] - before == 1


def test_a_chain_with_a_formula_runs_step_by_step() -> None:
    program = "exp(0); broadcast_mul(2, 1); _contrib_hard_swish(3); _plus_scalar(4, scalar=1) -> 5, 3"
    inputs = [array.astype("float32") for array in (draw(33, 7), draw(7))]
    assert difference("_fused_elementwise", inputs, num_args=2, program=program) == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("count", [2, 30, 31, 500])
def test_a_sum_of_any_number_of_arrays_is_one_launch_and_is_rounded_once(count: int, dtype: str) -> None:
    kind = mx.nd.array([0], dtype=dtype).asnumpy().dtype
    inputs = [(draw(4, 5) * 100).astype(kind) for _ in range(count)]
    before = stand_in.counters()["launches"]
    assert difference("add_n", inputs, num_args=count) == 0.0
    assert stand_in.counters()["launches"] - before == 1


class Attention(mx.gluon.HybridBlock):
    def forward(self, q: mx.nd.NDArray, k: mx.nd.NDArray, v: mx.nd.NDArray) -> mx.nd.NDArray:
        return mx.nd.batch_dot(mx.nd.softmax(mx.nd.batch_dot(q, k, transpose_b=True) / 4), v)


class Decoder(Attention):
    def forward(self, q: mx.nd.NDArray, k: mx.nd.NDArray, v: mx.nd.NDArray) -> mx.nd.NDArray:
        attention = super().forward

        def body(i: mx.nd.NDArray, q: mx.nd.NDArray) -> tuple:
            q = attention(q, k, v)
            return q, (i + 1, q)

        start = (mx.nd.zeros((1,), ctx=q.context), q)
        return mx.nd.contrib.while_loop(lambda i, q: i < 3, body, start, 4)[0]


@pytest.mark.parametrize("queries", [1, 50])
@pytest.mark.parametrize("block", [Attention, Decoder])
def test_attention_stays_products_and_softmax_which_run_on_the_gpu(block: type[Attention], queries: int) -> None:
    given = [draw(2, queries, 16), draw(2, 60, 16), draw(2, 60, 16)]
    results, plans = [], []
    for ctx in (mx.cpu(), mx.gpu(0)):
        net = block()
        net.hybridize(strict=True)
        arrays = [mx.nd.array(x, ctx=ctx) for x in given]
        with mx.autograd.predict_mode():
            results.append(net(*arrays).asnumpy())
        plans.append(net.plan_text())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-6)
    assert "_flash_attention" in plans[0]
    assert "_flash_attention" not in plans[1]
