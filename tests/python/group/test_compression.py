"""Compression of gradients: the values of MXNet 1.9.1, fewer bytes, the same bits in every process."""

from __future__ import annotations

import pathlib
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core
from launched import launch, lines_of, needs_gloo


def reference(bits: int, threshold: float, gradient: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coded values and the new residual, written as their definition, value by value."""
    values, left = np.empty_like(gradient), np.empty_like(residual)
    t, one = np.float32(threshold), np.float32(1)
    for i, (g, r) in enumerate(zip(gradient.ravel(), residual.ravel(), strict=True)):
        total = np.float32(r + g)
        if bits == 1:
            value = one if total > t else -one
        elif total >= t:
            value = t
        elif total <= -t:
            value = -t
        else:
            value = np.float32(0)
        values.ravel()[i], left.ravel()[i] = value, np.float32(total - value)
    return values, left


def coded(bits: int, threshold: float, gradient: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept, out = mx.nd.array(residual), mx.nd.zeros(gradient.shape)
    _core.code_values(mx.nd.array(gradient), kept, out, bits, threshold)
    return out.asnumpy(), kept.asnumpy()


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (4,), (7,), (8,), (9,), (16,), (31,), (33,), (5, 7), (1000,)])
def test_values_and_residuals_follow_their_definition(bits: int, shape: tuple[int, ...], rng: Any) -> None:
    for threshold in (0.5, 0.1, 3e-7):
        residual = np.zeros(shape, "float32")
        for step in range(4):
            gradient = (rng.standard_normal(shape) * 2 * threshold).astype("float32")
            if step == 2:  # values that meet the threshold
                gradient = np.where(rng.random(shape) < 0.5, threshold, -threshold).astype("float32")
                residual = np.zeros(shape, "float32")
            expected = reference(bits, threshold, gradient, residual)
            found = coded(bits, threshold, gradient, residual)
            assert [a.tobytes() for a in found] == [a.tobytes() for a in expected]
            residual = expected[1]


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_reach_the_sum_and_are_not_kept(bits: int, wrong: float) -> None:
    residual, gradient = np.full(5, 0.25, "float32"), np.full(5, 0.5, "float32")
    gradient[3] = wrong
    values, left = coded(bits, 0.5, gradient, residual)
    assert np.isnan(values).all()
    assert (left == 0.25).all()


def test_a_sum_that_overflows_is_not_kept() -> None:
    largest = np.full(3, np.finfo("float32").max, "float32")
    values, left = coded(2, 0.5, largest, largest)
    assert np.isnan(values).all() and (left == largest).all()


def test_the_store_device_codes_each_context() -> None:
    store = mx.kv.create("device")
    store.set_gradient_compression({"type": "2bit", "threshold": 0.3})
    store.init(0, mx.nd.zeros((19,)))
    rng = np.random.default_rng(4)
    residuals = [np.zeros(19, "float32")] * 2
    for _ in range(6):
        gradients = [(rng.standard_normal(19) * 0.3).astype("float32") for _ in range(2)]
        store.push(0, [mx.nd.array(gradient) for gradient in gradients])
        parts = [reference(2, 0.3, g, r) for g, r in zip(gradients, residuals, strict=True)]
        residuals = [left for _, left in parts]
        out = mx.nd.zeros((19,))
        store.pull(0, out=out)
        assert (out.asnumpy() == parts[0][0] + parts[1][0]).all()


PARAMS = {
    "type": ({"type": "3bit"}, ValueError, "expected '1bit', '2bit' or 'none', got '3bit'"),
    "threshold": ({"type": "2bit", "threshold": 0}, ValueError, "expected a positive number, got 0"),
    "text": ({"type": "2bit", "threshold": "much"}, ValueError, "got 'much'"),
    "nan": ({"type": "1bit", "threshold": float("nan")}, ValueError, "expected a number"),
    "name": ({"type": "2bit", "treshold": 0.1}, ValueError, "expected type and threshold, got 'treshold'"),
    "no dict": ("2bit", TypeError, "expected a dict"),
}


@pytest.mark.parametrize("name", PARAMS)
def test_wrong_parameters_are_named(name: str) -> None:
    params, error, text = PARAMS[name]
    with pytest.raises(error, match=text):
        mx.kv.create("device").set_gradient_compression(params)


def test_other_dtypes_and_storages_are_errors() -> None:
    store = mx.kv.create("dist_sync")
    store.set_gradient_compression({"type": "2bit"})
    store.init("a", mx.nd.zeros((4, 2), dtype="float16"))
    store.init("b", mx.nd.zeros((4, 2)))
    with pytest.raises(mx.errors.DTypeError, match="expected float32, got float16"):
        store.push("a", mx.nd.ones((4, 2), dtype="float16"))
    with pytest.raises(mx.errors.UnsupportedError, match="compression of 'b'"):
        store.push("b", mx.nd.sparse.zeros("row_sparse", (4, 2)))
    store.set_gradient_compression({"type": "none"})
    store.push("a", mx.nd.ones((4, 2), dtype="float16"))
    mx.kv.create("local").set_gradient_compression({"type": "none"})
    with pytest.raises(mx.errors.UnsupportedError, match="not supported for this type"):
        mx.kv.create("local").set_gradient_compression({"type": "2bit"})


# The pushes of a program whose pulled values were recorded with MXNet 1.9.1, one server, and this number of workers.
RECORDED = """
import hashlib
threshold = float(sys.argv[1])
store = mx.kv.create("dist_sync")
store.set_gradient_compression({"type": "2bit", "threshold": threshold})
shapes = [(3, 5), (17,), (64,), (1,), (33, 7)]
rng = np.random.default_rng(100 + rank)
for key, shape in enumerate(shapes):
    store.init(key, mx.nd.zeros(shape))
digest = hashlib.sha256()
for step in range(8):
    for key, shape in enumerate(shapes):
        gradient = (rng.standard_normal(shape) * 0.4).astype("float32")
        if step == 3:
            t = np.float32(threshold)
            gradient = np.where(rng.random(shape) < 0.5, t, -t).astype("float32")
        store.push(key, mx.nd.array(gradient))
        out = mx.nd.zeros(shape)
        store.pull(key, out=out)
        digest.update(out.asnumpy().tobytes())
print("digest", digest.hexdigest())
"""


@needs_gloo
@pytest.mark.parametrize(
    ("processes", "threshold", "digest"),
    [
        (2, "0.5", "e00bd150aa0de88c3d4e1fa7df70cca99f4f43d6d3e9b419a96669c0f7ef03d0"),
        pytest.param(
            3, "0.1", "b773aba33fc2748a59ffd8e089690f003fb9daa8c93ed36038a3f1757b5ba3a9", marks=pytest.mark.slow
        ),
    ],
)
def test_pulled_values_are_those_of_mxnet(processes: int, threshold: str, digest: str, tmp_path: pathlib.Path) -> None:
    done = launch(processes, RECORDED, tmp_path, arguments=(threshold,))
    assert done.returncode == 0, done.stderr
    assert [lines_of(done, rank) for rank in range(processes)] == [[f"digest {digest}"]] * processes


# A step of a trainer and of a module with each kind; prints the bytes that a step sends for each value.
TRAINING = """
def sent(work):
    mx.nd.waitall()
    before = group.counters()["bytes_sent"]
    work()
    mx.nd.waitall()
    return group.counters()["bytes_sent"] - before

count = 1000 * 333
for kind, divisor in (("none", 1), ("2bit", 16), ("1bit", 32)):
    net = gluon.nn.Dense(1000, in_units=333, use_bias=False)
    net.initialize(mx.init.Zero())
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore="dist_sync",
        compression_params={"type": kind, "threshold": 0.5},
    )
    def step():
        with autograd.record():
            loss = (net(mx.nd.ones((1, 333))) * (0.3 + rank)).sum()
        loss.backward()
        trainer.step(1)
    bytes_sent = sent(step)
    # Rank 0 has gradients of 0.3, rank 1 of 1.3.
    expected = {"none": 1.6, "2bit": 0.5, "1bit": 0.0 if kind == "1bit" else None}[kind]
    np.testing.assert_allclose(net.weight.data().asnumpy(), -expected, rtol=1e-6)
    assert abs(bytes_sent - count * 4 / divisor) < 16, (kind, bytes_sent)
    step()
    first = {"none": 3.2, "2bit": 0.5 + 1.0, "1bit": 2.0}[kind]
    np.testing.assert_allclose(net.weight.data().asnumpy(), -first, rtol=1e-6)

try:
    mx.jit.train_step(net, lambda out: out.sum(), trainer)
    sys.exit(5)
except mx.errors.UnsupportedError as error:  # its step would not compress
    assert "changes gradients" in str(error)
data = mx.sym.var("data")
module = mx.mod.Module(mx.sym.FullyConnected(data, num_hidden=64, no_bias=True, name="fc"), label_names=None,
                       compression_params={"type": "2bit", "threshold": 0.5})
module.bind([("data", (1, 64))], for_training=True)
module.init_params(mx.init.Zero())
module.init_optimizer(kvstore="dist_sync", optimizer="sgd", optimizer_params={"learning_rate": 1.0,
                                                                           "rescale_grad": 1.0})
def step():
    module.forward(mx.io.DataBatch([mx.nd.ones((1, 64))]), is_train=True)
    module.backward([mx.nd.ones((1, 64)) * (0.3 + rank)])
    module.update()
assert abs(sent(step) - 64 * 64 / 4) < 16
assert (module.get_params()[0]["fc_weight"].asnumpy() == -0.5).all()
print("fine")
"""


@needs_gloo
def test_trainers_and_modules_send_fewer_bytes(tmp_path: pathlib.Path) -> None:
    done = launch(2, TRAINING, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2


DIFFERENT = """
store = mx.kv.create("dist_sync")
store.set_gradient_compression({"type": "2bit", "threshold": 0.5 + rank})
store.init("w", mx.nd.zeros((3,)))
try:
    store.push("w", mx.nd.ones((3,)))
    mx.nd.waitall()
except mx.errors.GroupError as error:
    print("error", " ".join(str(error).split()))
"""


@needs_gloo
@pytest.mark.slow
def test_different_thresholds_are_named(tmp_path: pathlib.Path) -> None:
    done = launch(2, DIFFERENT, tmp_path)
    for rank in (0, 1):
        (line,) = lines_of(done, rank)
        assert "2bit codes, threshold 0.5, of values 'w'" in line
        assert "2bit codes, threshold 1.5, of values 'w'" in line
