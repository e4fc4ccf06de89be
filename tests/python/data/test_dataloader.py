"""DataLoader in the calling thread, with worker threads and with processes; dead, failing and slow workers."""

from __future__ import annotations

import collections
import gc
import multiprocessing
import os
import signal
import threading
import time

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.gluon import data
from hybridnet.gluon.data import DataLoader
from hybridnet.gluon.data._shared_buffers import BufferPool, BufferReader

WORKERS = [
    pytest.param({}, id="here"),
    pytest.param({"num_workers": 2, "thread_pool": True}, id="threads"),
    pytest.param({"num_workers": 2}, id="processes"),
]


def _values(batches):
    return [batch.asnumpy().tolist() for batch in batches]


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_come_in_order_every_round(workers):
    loader = DataLoader(data.SimpleDataset(list(range(10))), 4, **workers)
    assert len(loader) == 3
    for _ in range(3):
        assert _values(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(("last_batch", "count"), [("keep", 3), ("discard", 2), ("rollover", 2)])
def test_last_batches(workers, last_batch, count):
    loader = DataLoader(data.SimpleDataset(list(range(10))), 4, last_batch=last_batch, **workers)
    assert len(list(loader)) == count
    if last_batch == "rollover":
        assert _values(loader)[0] == [8, 9, 0, 1]


@pytest.mark.parametrize("workers", WORKERS)
def test_shuffling_gives_every_sample_once_in_a_new_order(workers, rng):
    loader = DataLoader(data.SimpleDataset(list(range(50))), 8, shuffle=True, **workers)
    rounds = [[v for batch in _values(loader) for v in batch] for _ in range(2)]
    assert sorted(rounds[0]) == sorted(rounds[1]) == list(range(50))
    assert rounds[0] != rounds[1]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int32", "float16"])
def test_arrays_keep_type_and_values(workers, dtype, rng):
    images = rng.uniform(0, 100, size=(9, 2, 3)).astype(dtype)
    labels = rng.integers(0, 5, size=9).astype("int32")
    for i, (image, label) in enumerate(DataLoader(data.ArrayDataset(images, labels), 4, **workers)):
        assert image.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(image.asnumpy(), images[4 * i : 4 * i + 4])
        np.testing.assert_array_equal(label.asnumpy(), labels[4 * i : 4 * i + 4])


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_may_be_kept_while_others_are_made(workers):
    images = np.arange(40.0, dtype="float32").reshape(20, 2)
    loader = DataLoader(data.ArrayDataset(images), 2, **workers)
    kept = [batch for _ in range(3) for batch in loader]
    np.testing.assert_array_equal(np.concatenate([b.asnumpy() for b in kept]), np.tile(images, (3, 1)))


Point = collections.namedtuple("Point", ["x", "name"])


def _points(samples):
    return Point(mx.nd.array(samples), {"count": len(samples), "raw": np.array(samples)})


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_of_any_structure(workers):
    loader = DataLoader(data.SimpleDataset([1, 2, 3]), 2, batchify_fn=_points, **workers)
    first, second = list(loader)
    assert isinstance(first, Point)
    assert first.x.asnumpy().tolist() == [1, 2]
    assert first.name["count"] == 2
    assert isinstance(first.name["raw"], np.ndarray)
    assert second.name["raw"].tolist() == [3]


@pytest.mark.parametrize("workers", WORKERS)
def test_samplers_and_batch_samplers(workers):
    dataset = data.SimpleDataset(list(range(6)))
    loader = DataLoader(dataset, 2, sampler=data.IntervalSampler(6, 3), **workers)
    assert _values(loader) == [[0, 3], [1, 4], [2, 5]]
    loader = DataLoader(dataset, batch_sampler=[[5], [0, 1, 2]], **workers)
    assert _values(loader) == [[5], [0, 1, 2]]


class Failing:
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5:
            raise LookupError(f"no sample {i}")
        return float(i)


@pytest.mark.parametrize("workers", WORKERS)
def test_errors_of_the_dataset_arrive_with_their_traceback(workers):
    batches = iter(DataLoader(Failing(), 2, **workers))
    assert next(batches).asnumpy().tolist() == [0, 1]
    assert next(batches).asnumpy().tolist() == [2, 3]
    with pytest.raises(LookupError, match="no sample 5") as caught:
        next(batches)
    if workers == {"num_workers": 2}:
        assert "__getitem__" in str(caught.value.__cause__)
        assert "test_dataloader.py" in str(caught.value.__cause__)


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__(a)


class FailingOddly(Failing):
    def __getitem__(self, i):
        raise Unpicklable(1, 2)


def test_errors_that_cannot_be_pickled_are_reported_as_text():
    with pytest.raises(RuntimeError, match="worker failed") as caught:
        next(iter(DataLoader(FailingOddly(), 2, num_workers=1)))
    assert "Unpicklable" in str(caught.value.__cause__)


def test_a_pool_goes_on_after_an_error():
    loader = DataLoader(Failing(), 2, num_workers=2)
    for _ in range(2):
        with pytest.raises(LookupError):
            list(loader)


def test_dropping_a_round_does_not_wait():
    # A finalizer may run at any allocation, even one of the thread that holds the pool's lock.
    loader = DataLoader(Failing(), 2, num_workers=1)
    rounds = [iter(loader)]
    next(rounds[0])
    with loader._pool._lock:
        finalizer = threading.Thread(target=rounds.clear, daemon=True)
        finalizer.start()
        finalizer.join(30)
        assert not finalizer.is_alive()
    batches = iter(loader)
    assert [next(batches).asnumpy().tolist() for _ in range(2)] == [[0, 1], [2, 3]]


def test_an_error_of_a_worker_leaves_its_round_to_the_reference_count():
    loader = DataLoader(Failing(), 2, num_workers=1)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(LookupError):
            list(loader)
        assert not [held for held in gc.get_objects() if type(held).__name__ == "_Prefetched"]
    finally:
        gc.enable()


def test_buffers_of_a_worker_never_share_a_handle():
    buffers = BufferPool()
    first, _ = buffers.allocate((10,), np.dtype("float32"))
    buffers.release([first])
    second, array = buffers.allocate((1 << 20,), np.dtype("float32"))  # too large for the first, which is dropped
    assert buffers.dropped == [first]
    assert second != first
    reader = BufferReader(os.getpid())
    array[:] = 3
    assert (reader.array(buffers.describe(second, array, True)) == 3).all()


class Slow:
    """Samples so slow that a worker can be killed while it makes one."""

    def __len__(self):
        return 1000

    def __getitem__(self, i):
        time.sleep(0.05)
        return float(os.getpid())


def test_a_killed_worker_is_reported_within_five_seconds():
    batches = iter(DataLoader(Slow(), 2, num_workers=2))
    victim = int(next(batches).asnumpy()[0])
    os.kill(victim, signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(mx.MXNetError, match=rf"(?s)pid {victim}.*died.*SIGKILL.*num_workers=0"):
        for _ in batches:
            pass
    assert time.monotonic() - start < 5


class Exiting(Slow):
    def __getitem__(self, i):
        os._exit(3)


def test_a_worker_that_exits_is_reported():
    loader = DataLoader(Exiting(), 2, num_workers=1)
    for _ in range(2):
        with pytest.raises(mx.MXNetError, match="exit code 3"):
            next(iter(loader))


class Late(Slow):
    def __getitem__(self, i):
        time.sleep(2)
        return 1.0


@pytest.mark.parametrize("thread_pool", [False, True])
def test_a_batch_that_takes_too_long_is_given_up(thread_pool):
    loader = DataLoader(Late(), 1, num_workers=1, timeout=0.2, prefetch=1, thread_pool=thread_pool)
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"0\.2 seconds"):
        next(iter(loader))
    assert time.monotonic() - start < 2


def test_workers_end_with_their_loader():
    before = len(multiprocessing.active_children())
    loader = DataLoader(data.SimpleDataset(list(range(100))), 2, num_workers=3)
    batches = iter(loader)
    next(batches)
    assert len(multiprocessing.active_children()) == before + 3
    del loader, batches
    limit = time.monotonic() + 5
    while len(multiprocessing.active_children()) > before:
        assert time.monotonic() < limit


def test_a_round_may_be_left_early():
    loader = DataLoader(data.SimpleDataset(list(range(1000))), 2, num_workers=2)
    for _ in range(5):
        for i, batch in enumerate(loader):
            assert batch.asnumpy().tolist() == [2 * i, 2 * i + 1]
            if i == 3:
                break


class Noise(Slow):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return mx.nd.random.uniform(shape=(2,)).asnumpy() + np.random.rand()


def test_random_transforms_do_not_depend_on_the_number_of_workers():
    rounds = []
    for workers in (1, 3):
        np.random.seed(7)
        loader = DataLoader(Noise(), 2, num_workers=workers)
        rounds.append(np.concatenate([batch.asnumpy() for batch in loader]))
    np.testing.assert_array_equal(*rounds)
    assert len(np.unique(rounds[0])) == rounds[0].size


def test_auto_reload_prefetches_the_next_round():
    loader = DataLoader(data.SimpleDataset(list(range(4))), 2, num_workers=1, auto_reload=True)
    assert _values(loader) == [[0, 1], [2, 3]]
    assert _values(loader) == [[0, 1], [2, 3]]
    loader.clean()
    assert _values(loader) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "batch_size must be specified"),
        ({"batch_size": 2, "shuffle": True, "sampler": data.SequentialSampler(3)}, "shuffle must not"),
        ({"batch_size": 2, "batch_sampler": [[1]]}, "must not be specified if batch_sampler"),
        ({"batch_size": 2, "timeout": 0}, "timeout"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2, "last_batch": "other"}, "last_batch"),
    ],
)
def test_contradicting_arguments_are_named(arguments, text):
    with pytest.raises(ValueError, match=text):
        DataLoader(data.SimpleDataset([1, 2, 3]), **arguments)


def _shift(x):
    return mx.nd.relu(mx.nd.array(x) - 3).asnumpy()


def test_workers_may_use_operators():
    dataset = data.ArrayDataset(np.arange(8.0, dtype="float32").reshape(8, 1)).transform(_shift)
    mx.nd.dot(mx.nd.ones((200, 200)), mx.nd.ones((200, 200)))
    out = np.concatenate([batch.asnumpy() for batch in DataLoader(dataset, 3, num_workers=2)])
    np.testing.assert_array_equal(out.ravel(), np.maximum(np.arange(8) - 3, 0))


def test_pinned_batches():
    dataset = data.ArrayDataset(np.arange(4.0, dtype="float32"), np.arange(4.0, dtype="float32"))
    for image, label in DataLoader(dataset, 2, pin_memory=True, pin_device_id=1):
        assert image.context == label.context == mx.cpu_pinned(1)
    assert next(iter(DataLoader(np.arange(4.0), 2))).context == mx.cpu()
