"""Checks of mx.test_utils: correct cases pass, wrong ones fail and name the place."""

from __future__ import annotations

import os

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import test_utils as tu


def test_equal_arrays_agree_and_a_difference_is_located() -> None:
    a = mx.nd.array([[1, 2], [3, 4]])
    tu.assert_almost_equal(a, a.asnumpy())
    with pytest.raises(AssertionError, match=r"(?s)x and y differ in 1 of 4 elements.*at \(1, 0\)"):
        tu.assert_almost_equal(a, np.array([[1, 2], [3.5, 4]]), names=("x", "y"))


def test_tolerances_follow_the_less_precise_dtype() -> None:
    tu.assert_almost_equal(np.float16([1.0]), np.float64([1.005]), atol=0)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(np.float64([1.0]), np.float64([1.005]))
    assert tu.get_tols(np.float32([1]), np.float32([1]), {np.float32: 0.5}, None) == (0.5, 1e-3)


def test_nan_agrees_only_on_request() -> None:
    a = np.array([np.nan, 1])
    tu.assert_almost_equal(a, a, equal_nan=True)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(a, a)
    with pytest.raises(AssertionError):
        tu.assert_almost_equal(a, np.array([0.0, 1]), equal_nan=True)


def test_shapes_must_agree_when_broadcasting_is_off() -> None:
    tu.assert_almost_equal(np.ones((2, 1)), np.ones((2, 3)))
    with pytest.raises(AssertionError, match="shapes differ"):
        tu.assert_almost_equal(np.ones((2, 1)), np.ones((2, 3)), use_broadcast=False)


def test_numeric_gradient_accepts_right_and_rejects_wrong_gradients() -> None:
    x = mx.sym.Variable("x")
    point = {"x": np.array([[0.5, -0.3], [0.2, 0.9]])}
    tu.check_numeric_gradient(mx.sym.tanh(x), point, dtype=np.float64)
    wrong = mx.sym.BlockGrad(x) * x  # its gradient is x, finite differences give 2 x
    with pytest.raises(AssertionError, match="BACKWARD_x"):
        tu.check_numeric_gradient(wrong, point, dtype=np.float64)


def test_symbolic_checks_compare_outputs_and_every_kind_of_request() -> None:
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    x, y, head = np.float32([1, 2]), np.float32([3, 5]), np.float32([2, 1])
    tu.check_symbolic_forward(a * b, [x, y], [x * y])
    with pytest.raises(AssertionError, match="EXPECTED"):
        tu.check_symbolic_forward(a * b, [x, y], [x + y])
    for request in ("write", "add", {"a": "add", "b": "null"}):
        expected = {"a": head * y, "b": head * x}
        tu.check_symbolic_backward(a * b, [x, y], [head], expected, grad_req=request)
    with pytest.raises(AssertionError, match="BACKWARD_a"):
        tu.check_symbolic_backward(a * b, [x, y], [head], [head * x, head * x])
    with pytest.raises(ValueError, match="do not match"):
        tu.check_symbolic_forward(a * b, {"a": x}, [x])


def test_settings_are_compared_with_the_most_precise_one() -> None:
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    settings = [{"ctx": mx.cpu(), "data": (2, 4), "type_dict": {"data": dtype}} for dtype in ("float64", "float32")]
    truth = tu.check_consistency(net, settings)
    assert truth["fc_output"].dtype == np.float64
    assert truth["fc_weight"].shape == (3, 4)


def test_generators_are_judged() -> None:
    rng = np.random.default_rng(3)
    buckets, probs = tu.gen_buckets_probs_with_ppf(lambda q: q, 5)
    assert min(tu.verify_generator(lambda n: rng.uniform(size=n), buckets, probs, nsamples=5000)) >= 0
    with pytest.raises(AssertionError, match="another distribution"):
        tu.verify_generator(lambda n: rng.beta(2, 2, size=n), buckets, probs, nsamples=5000)
    assert tu.mean_check(lambda n: rng.normal(1, 2, n), 1, 2, 10000)
    assert not tu.mean_check(lambda n: rng.normal(1.5, 2, n), 1, 2, 10000)


def test_buckets_include_their_low_end_and_exclude_their_high_end() -> None:
    samples = np.array([0.0, 0.5, 1.0, 1.5, 3.0, 3.5, -1.0])
    found = tu.chi_square_check(lambda n: samples, [(0, 1), (1, 2), (3, 3.5)], [0.4, 0.4, 0.2])[1]
    np.testing.assert_array_equal(found, [2, 2, 1])


def test_optimizers_are_compared_with_one_on_dense_arrays() -> None:
    class BySlices(mx.optimizer.Optimizer):
        def update(self, index: int, weight: mx.nd.NDArray, grad: mx.nd.NDArray, state: None) -> None:
            for row in range(weight.shape[0]):
                weight[row] -= self._get_lr(index) * grad[row]

    rate = {"learning_rate": 0.25}
    for stype in ("default", "row_sparse"):
        tu.compare_optimizer(BySlices(**rate), mx.optimizer.SGD(**rate), (6, 3), "float32", stype, stype)
    with pytest.raises(AssertionError):
        tu.compare_optimizer(
            BySlices(learning_rate=0.5), mx.optimizer.SGD(**rate), (6, 3), "float32", "row_sparse", "row_sparse"
        )


def test_environment_is_restored() -> None:
    name = "A_VARIABLE_OF_THIS_TEST"
    with tu.environment(name, "1"):
        assert os.environ[name] == "1"
        with tu.environment({name: None}):
            assert name not in os.environ
        assert os.environ[name] == "1"
    assert name not in os.environ


def test_retry_gives_up_with_the_last_failure() -> None:
    calls = []

    @tu.retry(3)
    def sometimes() -> None:
        calls.append(1)
        assert len(calls) >= 3, "too early"

    sometimes()
    assert len(calls) == 3
    calls.clear()

    @tu.retry(2)
    def never() -> None:
        calls.append(1)
        raise AssertionError(f"attempt {len(calls)}")

    with pytest.raises(AssertionError, match="attempt 2"):
        never()


def test_shared_memory_is_recognized() -> None:
    a = mx.nd.arange(6).reshape((2, 3))
    assert tu.same_array(a, a.reshape((3, 2)).reshape((2, 3)))
    assert not tu.same_array(a, a.copy())


def test_sums_undo_broadcasting() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(tu.collapse_sum_like(a, (3, 1)), a.sum((0, 2)).reshape(3, 1))
    np.testing.assert_array_equal(tu.np_reduce(a, (0, -1), True, np.max), a.max((0, 2), keepdims=True))
    with pytest.raises(AssertionError, match="does not broadcast"):
        tu.collapse_sum_like(a, (2, 1))


def test_hybridized_blocks_are_compared_with_plain_ones() -> None:
    tu.check_gluon_hybridize_consistency(
        lambda prefix: mx.gluon.nn.Dense(3, in_units=4, prefix=prefix), [mx.nd.ones((2, 4))]
    )


def test_sparse_arrays_keep_the_chosen_parts() -> None:
    rows, (values, indices) = tu.rand_sparse_ndarray((6, 2), "row_sparse", rsp_indices=[1, 4], data_init=3)
    assert rows.stype == "row_sparse"
    np.testing.assert_array_equal(indices, [1, 4])
    np.testing.assert_array_equal(values, np.full((2, 2), 3))
    assert not tu.rand_ndarray((5, 5), "csr", density=0).asnumpy().any()
    full = tu.rand_ndarray((5, 5), "csr", density=1, modifier_func=lambda v: v + 1)
    assert full.asnumpy().min() >= 1
    with pytest.raises(ValueError, match="row_sparse"):
        tu.rand_sparse_ndarray((2, 2), "other")
