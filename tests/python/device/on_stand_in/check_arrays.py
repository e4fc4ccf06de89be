"""Arrays on gpu(0): making, reading, writing, views, copies between devices, files, errors."""

from __future__ import annotations

import os
import pathlib
import pickle
import subprocess
import sys

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import HybridNetError

GPU = mx.gpu(0)
VALUES = np.arange(24, dtype="float32").reshape(2, 3, 4)


def on_gpu(values: np.ndarray = VALUES) -> mx.nd.NDArray:
    return mx.nd.array(values, ctx=GPU, dtype=values.dtype)


def test_the_process_has_one_gpu() -> None:
    assert mx.num_gpus() == 1
    free, total = mx.context.gpu_memory_info(0)
    assert 0 < free <= total
    with pytest.raises(HybridNetError, match=r"gpu\(1\)"):
        mx.nd.zeros((2,), ctx=mx.gpu(1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 3), (1,), (70000,)])
def test_values_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    with mx.util.np_shape(True):
        array = mx.np.array(values, ctx=GPU, dtype=dtype)
        assert array.ctx == GPU
        np.testing.assert_array_equal(array.asnumpy(), values)


def test_special_values_come_back() -> None:
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], "float32")
    back = mx.nd.array(values, ctx=GPU).asnumpy()
    assert back.tobytes() == values.tobytes()


def test_a_new_array_is_on_the_device_of_its_context() -> None:
    with GPU:
        for made in (mx.nd.zeros((2,)), mx.nd.ones((2,)), mx.nd.full((2,), 3), mx.nd.arange(4), mx.nd.array([1.0])):
            assert made.context == GPU
            assert (made + made).context == GPU
    assert mx.nd.zeros((2,)).context == mx.cpu()


def test_views_share_memory() -> None:
    array = on_gpu()
    array[1][:] = 7
    array.reshape((6, 4))[0] = -1
    expected = VALUES.copy()
    expected[1] = 7
    expected.reshape(6, 4)[0] = -1
    np.testing.assert_array_equal(array.asnumpy(), expected)


def test_assignments_write_in_place() -> None:
    array, expected = on_gpu(), VALUES.copy()
    array[:, 1:3] = 5
    expected[:, 1:3] = 5
    array[0, 0] = mx.nd.array([9, 8, 7, 6])
    expected[0, 0] = [9, 8, 7, 6]
    array += 1
    expected += 1
    array[:] = array * 2
    expected = expected * 2
    np.testing.assert_array_equal(array.asnumpy(), expected)


def test_out_writes_into_an_array() -> None:
    target = mx.nd.zeros(VALUES.shape, ctx=GPU)
    assert mx.nd.square(on_gpu(), out=target) is target
    np.testing.assert_array_equal(target.asnumpy(), VALUES**2)


def test_copies_between_devices_in_every_direction() -> None:
    there = mx.nd.array(VALUES).as_in_context(GPU)
    assert there.context == GPU
    assert there.as_in_context(GPU) is there
    again = there.copyto(GPU)
    back = again.as_in_context(mx.cpu())
    again[:] = 0
    np.testing.assert_array_equal(back.asnumpy(), VALUES)
    target = mx.nd.zeros(VALUES.shape)
    there.copyto(target)
    np.testing.assert_array_equal(target.asnumpy(), VALUES)
    target[:] = 3
    target.copyto(there)
    assert (there.asnumpy() == 3).all()


def test_arrays_of_two_devices_are_an_error_with_the_fix() -> None:
    with pytest.raises(HybridNetError, match=r"as_in_context\(mx.gpu\(0\)\)"):
        on_gpu() + mx.nd.array(VALUES)
    with pytest.raises(HybridNetError, match=r"gpu\(0\)"):
        mx.nd.concat(mx.nd.array(VALUES), on_gpu())


def test_gradients_cross_devices() -> None:
    x = mx.nd.array(VALUES)
    x.attach_grad()
    with mx.autograd.record():
        y = (x.as_in_context(GPU) * 3).as_in_context(mx.cpu()) * x
    y.backward()
    assert x.grad.context == mx.cpu()
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * VALUES)


def test_gradients_of_gradients_cross_devices() -> None:
    x = mx.nd.array(VALUES)
    x.attach_grad()
    with mx.autograd.record():
        y = (x.as_in_context(GPU) ** 3).as_in_context(mx.cpu())
        first = mx.autograd.grad(y, x, create_graph=True, retain_graph=True)[0]
    first.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * VALUES, rtol=1e-6)


def test_files_hold_values_of_any_device(tmp_path: pathlib.Path) -> None:
    mx.nd.save(str(tmp_path / "a.params"), {"a": on_gpu()})
    np.testing.assert_array_equal(mx.nd.load(str(tmp_path / "a.params"))["a"].asnumpy(), VALUES)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(on_gpu())).asnumpy(), VALUES)


def test_a_tape_notices_an_overwritten_value() -> None:
    x = on_gpu()
    x.attach_grad()
    with mx.autograd.record():
        y = x * 2
        z = y * y
    y[:] = 0
    with pytest.raises(HybridNetError, match="overwritten"):
        z.backward()


def test_random_draws_do_not_depend_on_the_device() -> None:
    drawn = []
    for ctx in (mx.cpu(), GPU):
        mx.random.seed(5)
        drawn.append(mx.nd.random.normal(shape=(100,), ctx=ctx).asnumpy())
    np.testing.assert_array_equal(*drawn)


def test_shapes_that_depend_on_values() -> None:
    data = mx.nd.array([[1, 2], [3, 4], [5, 6]], ctx=GPU)
    kept = mx.nd.contrib.boolean_mask(data, mx.nd.array([1, 0, 1], ctx=GPU))
    assert kept.context == GPU
    np.testing.assert_array_equal(kept.asnumpy(), [[1, 2], [5, 6]])


def test_an_operator_without_a_form_for_gpus_is_said_once_with_the_line() -> None:
    program = """
import warnings
import hybridnet as mx
x = mx.nd.array([[1.0, 0.2], [0.1, 2.0]], ctx=mx.gpu(0))
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    mx.nd.linalg.potrf(x).wait_to_read()
    mx.nd.linalg.potrf(x).wait_to_read()
[warning] = said
assert warning.category is mx.context.GpuFallbackWarning
assert "_linalg_potrf has no form for GPUs" in str(warning.message)
print("said once")
"""
    for choice, expected in (("warn", "said once"), ("error", "HYBRIDNET_GPU_FALLBACK is 'error'")):
        environment = {**os.environ, "HYBRIDNET_GPU_FALLBACK": choice}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        assert expected in done.stdout + done.stderr


def test_released_memory_can_be_used_again() -> None:
    for _ in range(50):
        array = mx.nd.ones((1 << 18,), ctx=GPU)
        array = array + 1
    array.wait_to_read()
    del array
    GPU.empty_cache()
    assert mx.context.gpu_memory_info(0)[0] > 0


def test_too_large_an_array_is_an_error_with_sizes() -> None:
    with pytest.raises(HybridNetError, match=r"gpu\(0\) has no \d+ bytes left"):
        mx.nd.zeros((1 << 40,), ctx=GPU)
    assert (mx.nd.ones((3,), ctx=GPU).asnumpy() == 1).all()


def test_reductions_of_numpy_need_no_copies() -> None:
    program = """
import hybridnet as mx
import numpy as np
values = np.random.default_rng(0).standard_normal((3, 4, 5))
for name in ("sum", "mean", "max", "min", "prod", "nansum", "nanprod"):
    for axis in (None, 1, (0, 2)):
        for dtype in ("float32", "float64"):
            found = []
            for ctx in (mx.cpu(), mx.gpu(0)):
                x = mx.np.array(values, dtype=dtype, ctx=ctx)
                x.attach_grad()
                with mx.autograd.record():
                    y = getattr(mx.np, name)(x, axis=axis)
                y.backward()
                found.append((y.asnumpy(), x.grad.asnumpy()))
            for ours, theirs in zip(*found):
                np.testing.assert_allclose(ours, theirs, rtol=2e-6 if dtype == "float32" else 1e-13)
print("equal")
"""
    environment = {**os.environ, "HYBRIDNET_GPU_FALLBACK": "error"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "equal\n", done.stdout + done.stderr


def test_a_second_process_compiles_nothing(tmp_path: pathlib.Path) -> None:
    program = """
import hybridnet as mx
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Dense(4, activation="relu"), mx.gluon.nn.Dense(2))
net.initialize(mx.init.Constant(0.5), ctx=mx.gpu(0))
net.hybridize()
trainer = mx.gluon.Trainer(net.collect_params(), "adam")
with mx.autograd.record():
    loss = mx.nd.log_softmax(net(mx.nd.ones((2, 3), ctx=mx.gpu(0)))).sum()
loss.backward()
trainer.step(2)
print(net[0].weight.data().asnumpy().tolist())
"""
    environment = {**os.environ, "HYBRIDNET_CACHE": str(tmp_path)}
    printed = []
    for path in (os.environ["PATH"], "/nowhere"):  # the stand-in compiles by g++, which the second process cannot find
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**environment, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    assert len(list((tmp_path / "cuda").iterdir())) > 5


def test_the_compute_capability_is_that_of_the_device() -> None:
    assert mx.util.get_cuda_compute_capability(GPU) == 90
    with pytest.raises(ValueError, match="expected a GPU, got cpu"):
        mx.util.get_cuda_compute_capability(mx.cpu())
    with pytest.raises(HybridNetError, match="expected a device from"):
        mx.util.get_cuda_compute_capability(mx.gpu(63))
