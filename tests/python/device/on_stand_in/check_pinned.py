"""Arrays of cpu_pinned lie in page-locked memory, from which a GPU copies while the program goes on."""

from __future__ import annotations

import os
import subprocess
import sys

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from hybridnet import gluon
from hybridnet.errors import HybridNetError

GPU, PINNED = mx.gpu(0), mx.cpu_pinned()
VALUES = np.arange(1000, dtype="float32")


def pinned(values: np.ndarray = VALUES) -> mx.nd.NDArray:
    array = mx.nd.array(values, ctx=PINNED)
    array.wait_to_read()
    return array


def test_arrays_are_page_locked_and_pooled() -> None:
    PINNED.empty_cache()
    stand_in.calls()
    first = pinned()
    assert first.context == PINNED
    assert stand_in.calls()["cuMemHostAlloc"] == 1
    del first
    second = pinned()
    assert "cuMemHostAlloc" not in stand_in.calls()
    np.testing.assert_array_equal((second + 1).asnumpy(), VALUES + 1)
    assert (second + 1).context == PINNED
    del second
    mx.nd.waitall()
    PINNED.empty_cache()
    assert stand_in.calls()["cuMemFreeHost"] >= 1


@pytest.mark.parametrize("seed", range(20))
def test_copies_go_there_and_back_without_staging(seed: int) -> None:
    stand_in.seed(seed)
    host = pinned()
    mx.nd.waitall()
    stand_in.calls()
    there = host.as_in_context(GPU) * 2
    back = there.as_in_context(PINNED)
    assert back.context == PINNED
    np.testing.assert_array_equal(back.asnumpy(), VALUES * 2)
    calls = stand_in.calls()
    assert calls["cuMemcpyHtoDAsync_v2"] == calls["cuMemcpyDtoHAsync_v2"] == 1
    assert "cuMemHostAlloc" not in calls or calls["cuMemHostAlloc"] == 1  # for `back`
    assert stand_in.reports() == []


@pytest.mark.parametrize("seed", range(20))
def test_a_write_waits_for_the_copy_that_reads_its_memory(seed: int) -> None:
    stand_in.seed(seed)
    host = pinned()
    copies = []
    for number in range(4):
        host[:] = number
        copies.append(host.as_in_context(GPU))
    host[:] = -1
    for number, copy in enumerate(copies):
        np.testing.assert_array_equal(copy.asnumpy(), number)
    assert stand_in.reports() == []


def test_freed_memory_is_used_again_after_its_copy() -> None:
    for seed in range(10):
        stand_in.seed(seed)
        on_gpu = [pinned(VALUES + number).as_in_context(GPU) for number in range(6)]
        for number, array in enumerate(on_gpu):
            np.testing.assert_array_equal(array.asnumpy(), VALUES + number)
    target = pinned()
    mx.nd.array(VALUES + 5, ctx=GPU).copyto(target)
    target += 1
    np.testing.assert_array_equal(target.asnumpy(), VALUES + 6)
    assert stand_in.reports() == []


def test_parameters_and_gradients_on_it_train() -> None:
    net = gluon.nn.Dense(3, in_units=4)
    net.initialize(ctx=PINNED)
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x = mx.nd.ones((2, 4), ctx=PINNED)
    for _ in range(3):
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(1)
    assert net.weight.data().context == PINNED
    assert np.isfinite(float(loss.asscalar()))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_pins_its_batches(workers: int) -> None:
    PINNED.empty_cache()
    stand_in.calls()
    data = gluon.data.ArrayDataset(np.arange(64.0, dtype="float32").reshape(16, 4), np.arange(16.0, dtype="float32"))
    loader = gluon.data.DataLoader(data, 4, pin_memory=True, num_workers=workers)
    sums = 0.0
    for images, labels in loader:
        assert images.context == labels.context == PINNED
        sums += float((images.as_in_context(GPU).sum() + labels.as_in_context(GPU).sum()).asscalar())
    assert "cuMemHostAlloc" in stand_in.calls()
    assert sums == np.arange(64).sum() + np.arange(16).sum()


def test_without_page_locked_memory_arrays_lie_in_ordinary_memory() -> None:
    PINNED.empty_cache()
    stand_in.fail("cuMemHostAlloc:1")
    host = pinned()
    stand_in.fail("")
    assert host.context == PINNED
    np.testing.assert_array_equal(host.as_in_context(GPU).asnumpy(), VALUES)


@pytest.mark.parametrize("function", ["cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventSynchronize", "cuEventQuery"])
def test_a_failing_copy_leaves_memory_in_order(function: str) -> None:
    for seed in range(5):
        stand_in.seed(seed)
        host = pinned()
        stand_in.fail(f"{function}:1")
        try:
            np.testing.assert_array_equal((host.as_in_context(GPU) + 1).asnumpy(), VALUES + 1)
        except HybridNetError as error:
            assert function in str(error)
        stand_in.fail("")
        host[:] = 7
        np.testing.assert_array_equal((host.as_in_context(GPU) + 1).asnumpy(), 8)
        assert stand_in.reports() == []


def test_a_forked_child_makes_arrays_of_ordinary_memory() -> None:
    kept = pinned()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            array = mx.nd.array(VALUES, ctx=PINNED) + 1
            text = str(float(array.sum().asscalar()) == float(VALUES.sum() + len(VALUES)))
            del array, kept
        except HybridNetError as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1 << 16) == b"True"
    np.testing.assert_array_equal(kept.asnumpy(), VALUES)


def test_a_process_ends_with_copies_on_their_way() -> None:
    code = "import hybridnet as mx; x = mx.nd.ones((1000,), ctx=mx.cpu_pinned()); y = x.as_in_context(mx.gpu(0)); del x"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
