"""Values under each rule of `canonicalize`, `stabilize` and `fuse_with_gradient`.

Graphs are compared with a single rule and without rules: results have the same bits if the rule promises them,
including infinities, NaN, -0.0 and denormals; they are within the dtype's tolerance of a float64 result if the rule may
round; and rules that may change results for zeros, infinities and NaN run only with "fast_math".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hybridnet as mx
import ml_dtypes
import numpy as np
import pytest
from hybridnet import rewrite as rw

RTOL = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 1e-2}
SHAPE = (3, 4)
SPECIAL = [np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-40, -1e-310, 1.0, -1.0, 6e4, -3e-5, 7.0]


class Net(mx.gluon.HybridBlock):
    """A block that computes one expression of x and further arrays."""

    def __init__(self, expression: Callable[..., Any]) -> None:
        super().__init__()
        self.expression = expression

    def hybrid_forward(self, F, x, *rest):
        return self.expression(F, x, *rest)


@dataclass
class Case:
    rule: str  # name of the rule
    expression: Callable[..., Any]
    low: float = -3.0
    integers: bool = False  # the rule fires for integers, too


def layer_norm(F, x, power=False):
    centered = F.broadcast_sub(x, F.mean(x, axis=-1, keepdims=True))
    variance = F.mean(centered * centered, axis=-1, keepdims=True) + 1e-5
    return F.broadcast_mul(centered, variance**-0.5) if power else F.broadcast_div(centered, F.sqrt(variance))


def corner(F, x):
    """Returns one element with shape (1, 1, 1)."""
    return F.reshape(F.slice(x, begin=(0, 0), end=(1, 1)), shape=(1, 1, 1))


# Chains of two or three repeats of (1, 1, 1).
REPEATS = [
    lambda F, e, x, z: F.broadcast_to(F.broadcast_to(e, shape=(0, 3, 0)), shape=(2, 0, 4)),
    lambda F, e, x, z: F.broadcast_to(F.broadcast_to(F.broadcast_to(e, (1, 1, 4)), (1, 3, 4)), (2, 3, 4)),
    lambda F, e, x, z: F.broadcast_axis(F.broadcast_axis(e, axis=-1, size=5), axis=(0, 1), size=(2, 3)),
    lambda F, e, x, z: F.broadcast_to(F.broadcast_axis(e, axis=1, size=3), shape=(2, 0, 4)),
    lambda F, e, x, z: F.broadcast_axis(F.broadcast_to(e, shape=(0, 3, 4)), axis=0, size=2),
    lambda F, e, x, z: F.broadcast_like(F.broadcast_to(e, shape=(1, 3, 1)), F.expand_dims(z, axis=0)),
    lambda F, e, x, z: F.broadcast_like(F.broadcast_like(e, F.expand_dims(x, axis=0)), F.stack(x, z, axis=0)),
    lambda F, e, x, z: F.broadcast_to(F.broadcast_like(e, F.expand_dims(x, axis=0)), shape=(2, 3, 4)),
]
SAME = [
    Case("join_reshapes", lambda F, x, y, z: F.reshape(F.reshape(x * 2, shape=(-1, 2)), shape=(12,)), integers=True),
    Case("join_casts", lambda F, x, y, z: F.cast(F.cast(F.cast(x, "float16"), "float64"), "float32")),
    Case("join_casts", lambda F, x, y, z: F.cast(F.cast(F.cast(x, "int8"), "int64"), "uint8")),
    Case("join_slices", lambda F, x, y, z: x.slice_axis(0, 1, None).slice_axis(0, -1, None), integers=True),
    Case("join_slices", lambda F, x, y, z: F.slice(F.slice(x, (0, 1), (-1, None)), (1, 0), (None, -1)), integers=True),
    Case(
        "split_of_join",
        lambda F, x, y, z: sum(
            part * k for k, part in enumerate(F.SliceChannel(F.concat(x, y, z, dim=1), num_outputs=3), 2)
        ),
        integers=True,
    ),
    Case(
        "split_of_join",
        lambda F, x, y, z: F.concat(*F.SliceChannel(F.stack(x, y, axis=1), num_outputs=2, axis=1), dim=0),
        integers=True,
    ),
    Case("part_of_stack", lambda F, x, y, z: F.slice_axis(F.stack(x, y, z, axis=1), axis=1, begin=-1, end=None) + 1),
    *[
        Case("join_repeats", lambda F, x, y, z, chain=chain: chain(F, corner(F, y), x, z), integers=True)
        for chain in REPEATS
    ],
    Case("repeat_in_place", lambda F, x, y, z: F.broadcast_to(F.slice_axis(y, axis=1, begin=0, end=1), SHAPE) - x),
    Case("square_of_self", lambda F, x, y, z: x * x + y, integers=True),
    Case("reciprocal", lambda F, x, y, z: 1 / x),
    Case("opposite", lambda F, x, y, z: -(x * -1)),
    Case("shape_of_source", lambda F, x, y, z: F.shape_array(F.exp(x)), integers=True),
]
ROUNDING = [
    Case("small_power", lambda F, x, y, z: x**2 + x**3 + x**-1, low=0.4),
    Case("reciprocal_root", lambda F, x, y, z: 1 / F.sqrt(x), low=0.1),
    Case("log_of_softmax", lambda F, x, y, z: F.log(F.softmax(x, axis=0))),
    Case("log_of_softmax", lambda F, x, y, z: F.log(F.pick(F.softmax(x), F.slice_axis(y, axis=1, begin=0, end=1)))),
    Case("log_sigmoid", lambda F, x, y, z: F.log(F.sigmoid(x)) + F.log(1 - F.sigmoid(y))),
    Case("softplus", lambda F, x, y, z: F.log(1 + F.exp(x)) + F.log1p(F.exp(y))),
    Case("log_sum_exp", lambda F, x, y, z: F.log(F.sum(F.exp(x), axis=1))),
    Case("log_sum_exp", lambda F, x, y, z: F.log(F.sum(F.exp(x), axis=0, keepdims=True))),
    Case("log_sum_exp", lambda F, x, y, z: F.log(F.sum(F.exp(x)))),
    Case("log1p", lambda F, x, y, z: F.log(x + 1), low=0.1),
    Case("expm1", lambda F, x, y, z: F.exp(x) - 1),
    Case("log_softmax", lambda F, x, y, z: F.broadcast_sub(x, F.log(F.sum(F.exp(x), axis=1, keepdims=True)))),
    Case("softmax", lambda F, x, y, z: F.broadcast_div(F.exp(x), F.sum(F.exp(x), axis=1, keepdims=True))),
    Case("layer_norm", lambda F, x, y, z: layer_norm(F, x) * y),
    Case("layer_norm", lambda F, x, y, z: layer_norm(F, x, power=True) * y),
    Case("layer_norm", lambda F, x, y, z: layer_norm(F, x * 2**-9) * y),
    Case("softmax_pick", lambda F, x, y, z: -F.pick(F.log_softmax(x), F.slice_axis(y, axis=1, begin=0, end=1))),
    Case("softmax_pick", lambda F, x, y, z: F.pick(F.log_softmax(x, axis=1), F.max(y, axis=1), 1, True, "wrap")),
    Case("gelu", lambda F, x, y, z: 0.5 * x * (1 + F.erf(x / 2**0.5))),
    Case("gelu", lambda F, x, y, z: x * ((F.erf(x * 0.5**0.5) + 1) / 2)),
]
UNSAFE = [
    Case("absorb", lambda F, x, y, z: x * 0 + (y - y) + x / x + 0 / y, low=0.1),
    Case("root_power", lambda F, x, y, z: x**0.5 + y**-0.5, low=0.1),
    Case("cancel_factors", lambda F, x, y, z: x * y / y + z, low=0.1),
    Case("cancel_factors", lambda F, x, y, z: (x / y) * (y * z), low=1.0),
    Case("join_factors", lambda F, x, y, z: (x * 3 / y) / z * 7, low=0.1),
]
# Rules whose patterns the results of other rules make.
NEEDS = {
    "layer_norm": ["square_of_self"],
    "reciprocal_root": ["reciprocal"],
    "softmax": ["merge"],
    "log_softmax": ["merge"],
}


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def fired(net: Net, rule: str) -> bool:
    return re.search(rf"^\s*{rule}\s+fired", net.pass_report(), re.MULTILINE) is not None


def run(case: Case, arrays: list[np.ndarray], words: str, gradient: bool = True) -> tuple[list[np.ndarray], bool]:
    """Returns values and gradients of a network compiled with these passes, and whether the rule fired."""
    net = Net(case.expression)
    net.hybridize(passes=words)
    inputs = [mx.nd.array(array, dtype=array.dtype) for array in arrays]
    if not gradient:
        out = net(*inputs)
        return [out.asnumpy()], fired(net, case.rule)
    for array in inputs:
        array.attach_grad()
    with mx.autograd.record():
        out = net(*inputs)
    out.backward(mx.nd.array(np.linspace(0.5, 1.5, out.size).reshape(out.shape), dtype=out.dtype))
    return [out.asnumpy(), *(array.grad.asnumpy() for array in inputs)], fired(net, case.rule)


def with_rule(case: Case, unsafe: bool = False) -> str:
    return ",".join(["none", *NEEDS.get(case.rule, []), case.rule, *(["fast_math"] if unsafe else [])])


def ordinary(rng, case: Case, dtype: str) -> list[np.ndarray]:
    return [rng.uniform(case.low, 3.0, SHAPE).astype(numpy_dtype(dtype)) for _ in range(3)]


def special(dtype: str) -> list[np.ndarray]:
    with np.errstate(over="ignore"):
        values = np.array(SPECIAL).astype(numpy_dtype(dtype))
    return [np.roll(values, shift).reshape(SHAPE) for shift in (0, 3, 7)]


def assert_same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """Checks equal bits; NaN equals NaN with any payload."""
    assert got.dtype == want.dtype
    nan = np.isnan(want.astype("float64"))
    np.testing.assert_array_equal(np.isnan(got.astype("float64")), nan)
    bits = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(got.view(bits)[~nan], want.view(bits)[~nan])


def assert_close_to_float64(got: list[np.ndarray], want: list[np.ndarray], dtype: str) -> None:
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(
            a.astype("float64"), b, rtol=RTOL[dtype], atol=RTOL[dtype] * max(1.0, np.abs(b).max())
        )


def ids(cases: list[Case]) -> list[str]:
    return [f"{case.rule}-{i}" for i, case in enumerate(cases)]


@pytest.mark.parametrize("case", SAME, ids=ids(SAME))
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_rules_that_promise_the_same_bits_keep_them(case: Case, dtype: str, rng) -> None:
    for arrays in (ordinary(rng, case, dtype), special(dtype)):
        got, did_fire = run(case, arrays, with_rule(case), gradient=False)
        assert did_fire
        assert_same_bits(got[0], run(case, arrays, "none", gradient=False)[0][0])


@pytest.mark.parametrize("case", [c for c in SAME if c.integers], ids=ids([c for c in SAME if c.integers]))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integer_results_keep_their_bits(case: Case, dtype: str, rng) -> None:
    arrays = [rng.integers(0, 127, SHAPE).astype(dtype) for _ in range(3)]
    got, did_fire = run(case, arrays, with_rule(case), gradient=False)
    assert did_fire
    np.testing.assert_array_equal(got[0], run(case, arrays, "none", gradient=False)[0][0])


@pytest.mark.parametrize("case", ROUNDING, ids=ids(ROUNDING))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_rules_that_may_round_leave_integers_alone(case: Case, dtype: str) -> None:
    arrays = [mx.nd.array(np.arange(12).reshape(SHAPE) % k, dtype=dtype) for k in (5, 4, 3)]
    net = Net(case.expression)
    try:
        want = net(*arrays).asnumpy()
    except mx.MXNetError:
        return  # an operator does not accept integers
    net.hybridize()
    np.testing.assert_array_equal(net(*arrays).asnumpy(), want)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_are_absorbed_but_their_quotients_are_not(dtype: str, rng) -> None:
    arrays = [rng.integers(-3, 3, SHAPE).astype(dtype) for _ in range(3)]
    absorbed = Case("absorb_integers", lambda F, x, y, z: x * 0 + (y - y) + z)
    got, did_fire = run(absorbed, arrays, with_rule(absorbed), gradient=False)
    assert did_fire
    np.testing.assert_array_equal(got[0], arrays[2])
    quotient = Case("absorb_integers", lambda F, x, y, z: x / x)
    assert not run(quotient, arrays, with_rule(quotient), gradient=False)[1]
    assert not run(quotient, arrays, "fast_run,fast_math", gradient=False)[1]


@pytest.mark.parametrize("case", SAME + ROUNDING, ids=ids(SAME + ROUNDING))
@pytest.mark.parametrize("dtype", list(RTOL))
def test_values_and_gradients_stay_within_the_tolerance_of_float64(case: Case, dtype: str, rng) -> None:
    if case.rule in ("join_casts", "shape_of_source") and dtype != "float32":
        return  # casts have fixed dtypes; shapes have no gradient
    arrays = ordinary(rng, case, dtype)
    got, did_fire = run(case, arrays, with_rule(case), gradient=case.rule != "shape_of_source")
    assert did_fire
    wide = arrays if case.rule == "join_casts" else [array.astype("float64") for array in arrays]
    want, _ = run(case, wide, "none", gradient=case.rule != "shape_of_source")
    assert_close_to_float64(got, want, dtype)


MARKED_LOSSES = {
    "sum": lambda F, x, y, dtype: -F.sum(F.one_hot(y, 4, dtype=dtype) * F.log_softmax(x), axis=1),
    "kept axis": lambda F, x, y, dtype: F.sum(
        F.broadcast_mul(F.log_softmax(x, axis=1), F.one_hot(y, 4, dtype=dtype)), axis=-1, keepdims=True
    ),
}


@pytest.mark.parametrize("form", MARKED_LOSSES)
@pytest.mark.parametrize("labels", ["float32", "float64", "int32", "int64", "uint8", "int8"])
@pytest.mark.parametrize("dtype", list(RTOL))
def test_labels_out_of_range_pick_nothing_as_rows_of_one_hot(dtype: str, labels: str, form: str, rng) -> None:
    values = np.array([-3, -1, -0.75, 0, 1.9, 3, 3.5, 4, 100])
    index = values[values >= 0].astype(labels) if labels == "uint8" else values.astype(labels)
    found = []
    for words in ("none", "none,one_hot_pick", "fast_run"):
        net = Net(lambda F, x, y: MARKED_LOSSES[form](F, x, y, dtype))
        net.hybridize(passes=words)
        x = mx.nd.array(rng.uniform(-2, 2, (len(index), 4)) if not found else found[0][0], dtype=dtype)
        x.attach_grad()
        with mx.autograd.record():
            out = net(x, mx.nd.array(index, dtype=labels))
        out.backward()
        assert fired(net, "one_hot_pick") == (words != "none")
        found.append([x.asnumpy(), out.asnumpy(), x.grad.asnumpy()])
    for other in found[1:]:
        assert_close_to_float64(other, [part.astype("float64") for part in found[0]], dtype)
    outside = (index <= -1) | (index >= 4)
    assert (found[2][1][outside] == 0).all()
    assert (found[2][2][outside] == 0).all()


@pytest.mark.parametrize("case", UNSAFE, ids=ids(UNSAFE))
@pytest.mark.parametrize("dtype", list(RTOL))
def test_unsafe_rules_run_with_fast_math_only(case: Case, dtype: str, rng) -> None:
    arrays = special(dtype)
    plain, did_fire = run(case, arrays, "fast_run", gradient=False)
    assert not did_fire
    assert not run(case, arrays, with_rule(case), gradient=False)[1]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(plain[0].astype("float64")).any(), True)
    arrays = ordinary(rng, case, dtype)
    assert run(case, arrays, with_rule(case, unsafe=True), gradient=False)[1]
    # Backward nodes may read values that the rule would cancel, which half precision rounds by more than their size.
    gradient = dtype in ("float32", "float64")
    got, _ = run(case, arrays, with_rule(case, unsafe=True), gradient)
    want, _ = run(case, [array.astype("float64") for array in arrays], "none", gradient)
    assert_close_to_float64(got, want, dtype)


def test_fast_math_by_itself_adds_to_the_default_passes() -> None:
    net = Net(lambda F, x, y, z: F.tanh(x * y / y) + F.identity(z))
    x = mx.nd.ones(SHAPE)
    for options in ({"include": ["fast_math"]}, {"passes": "fast_run,fast_math"}, {"passes": "fast_math"}):
        net.hybridize(**options)
        net(x, x, x)
        assert fired(net, "cancel_factors")
        assert fired(net, "drop_identity")
    with rw.scope(include=["fast_math"]):
        net.hybridize()
        net(x, x, x)
        assert fired(net, "cancel_factors")
        assert fired(net, "drop_identity")


def test_a_negative_number_that_a_float_carries_to_bytes_wraps_as_integers_do() -> None:
    case = Case("join_casts", lambda F, x, y, z: F.cast(F.cast(F.cast(x, "int8"), "bfloat16"), "uint8"))
    for query in (with_rule(case), "none"):
        got, did_fire = run(case, [np.full(SHAPE, -1.0)] * 3, query, gradient=False)
        assert did_fire == (query != "none")
        np.testing.assert_array_equal(got[0], 255)


STABLE = [
    (lambda F, x: F.log(F.softmax(x)), lambda x: x - np.logaddexp.reduce(x, axis=1, keepdims=True)),
    (lambda F, x: F.log(F.sum(F.exp(x), axis=1)), lambda x: np.logaddexp.reduce(x, axis=1)),
    (lambda F, x: F.log(1 + F.exp(x)), lambda x: np.logaddexp(0, x)),
    (lambda F, x: F.log(F.sigmoid(x)), lambda x: -np.logaddexp(0, -x)),
    (lambda F, x: F.log(1 - F.sigmoid(x)), lambda x: -np.logaddexp(0, x)),
    (lambda F, x: F.log(1 + x * 1e-12), lambda x: np.log1p(x * 1e-12)),
    (lambda F, x: F.exp(x * 1e-12) - 1, lambda x: np.expm1(x * 1e-12)),
    (
        lambda F, x: F.broadcast_div(F.exp(x), F.sum(F.exp(x), axis=1, keepdims=True)),
        lambda x: np.exp(x - np.logaddexp.reduce(x, axis=1, keepdims=True)),
    ),
]


@pytest.mark.parametrize(("expression", "reference"), STABLE)
def test_chains_that_overflow_or_lose_all_digits_do_not_any_more(expression, reference) -> None:
    data = np.array([[200.0, -300.0, 5.0, 0.5], [-150.0, 90.0, 150.0, 1.0], [-1e3, -2e3, -5e2, -7e2]], "float32")
    net = Net(lambda F, x, y, z: expression(F, x))
    net.hybridize()
    x = mx.nd.array(data)
    x.attach_grad()
    with mx.autograd.record():
        out = net(x, x, x)
    out.backward()
    np.testing.assert_allclose(out.asnumpy(), reference(data.astype("float64")), rtol=2e-6, atol=1e-30)
    assert np.isfinite(x.grad.asnumpy()).all()


def test_sums_of_exponentials_of_infinities_are_kept() -> None:
    inf = np.inf
    data = np.array([[-inf, -inf], [inf, 1.0], [-inf, 1.0], [np.nan, 1.0], [-inf, inf]], "float32")
    net = Net(lambda F, x, y, z: F.log(F.sum(F.exp(x), axis=1)))
    net.hybridize()
    x = mx.nd.array(data)
    np.testing.assert_allclose(net(x, x, x).asnumpy(), [-inf, inf, 1.0, np.nan, inf], rtol=1e-6)


def test_gelu_by_tanh_is_not_rewritten() -> None:
    net = Net(lambda F, x, y, z: 0.5 * x * (1 + F.tanh(0.7978845608028654 * (x + 0.044715 * x**3))))
    net.hybridize()
    x = mx.nd.array(np.linspace(-3, 3, 12).reshape(SHAPE))
    net(x, x, x)
    assert not fired(net, "gelu")


def test_layer_norm_stays_apart_where_its_statistics_are_read() -> None:
    def expression(F, x, y, z):
        mean = F.mean(x, axis=-1, keepdims=True)
        centered = F.broadcast_sub(x, mean)
        variance = F.mean(F.square(centered), axis=-1, keepdims=True)
        return F.broadcast_add(F.broadcast_div(centered, F.sqrt(variance + 1e-5)), mean)

    net = Net(expression)
    net.hybridize()
    x = mx.nd.array(np.linspace(-3, 3, 12).reshape(SHAPE))
    net(x, x, x)
    assert not fired(net, "layer_norm")


def test_scale_and_shift_become_those_of_the_layer_norm(rng) -> None:
    class Norm(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.gamma = self.params.get("gamma", shape=(1, 4))
            self.beta = self.params.get("beta", shape=(1, 4))

        def hybrid_forward(self, F, x, gamma, beta):
            return F.broadcast_add(F.broadcast_mul(gamma, layer_norm(F, x)), beta)

    net = Norm()
    net.initialize(mx.init.Uniform(1))
    data = mx.nd.array(rng.normal(size=SHAPE))
    results = []
    for words in ("none", "fast_run"):
        net.hybridize(passes=words)
        data.attach_grad()
        with mx.autograd.record():
            out = net(data)
        out.backward()
        results.append([out, data.grad.copy(), net.gamma.grad().copy(), net.beta.grad().copy()])
    for want, got in zip(*results, strict=True):
        np.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-4, atol=1e-5)
    plan = net.plan_text()
    assert "forward: 1 instruction," in plan
    assert "[0] LayerNorm" in plan


@pytest.mark.parametrize(
    "expression",
    [
        lambda F, x, y, z: F.SliceChannel(F.concat(x, y, dim=1), num_outputs=2)[0] * z,
        lambda F, x, y, z: F.slice_axis(F.stack(x, y), axis=0, begin=0, end=1) * 2 + F.expand_dims(z, axis=0),
        lambda F, x, y, z: F.tanh(x + y * 0) + z,
        lambda F, x, y, z: x + (y - y) + z,
        lambda F, x, y, z: F.contrib.cond(F.ones((1,)), lambda: x * z, lambda: y.exp()),
        lambda F, x, y, z: (
            F.contrib.foreach(lambda row, s: (row, s * y), F.slice_axis(x, axis=0, begin=3, end=None), z)[1] + x
        ),
    ],
)
def test_values_that_no_longer_count_still_get_zero_gradients(expression) -> None:
    """An unwritten gradient would keep the values of an earlier call."""
    net = Net(expression)
    net.hybridize(passes="fast_run,fast_math")
    x, y, z = (mx.nd.array(np.full(SHAPE, 1.5)) for _ in range(3))
    for array in (x, y, z):
        array.attach_grad()
        array.grad[:] = 7
    with mx.autograd.record():
        out = net(x, y, z)
    out.backward()
    np.testing.assert_array_equal(y.grad.asnumpy(), 0)
    assert (x.grad.asnumpy() != 7).all()
    assert (z.grad.asnumpy() != 7).all()
