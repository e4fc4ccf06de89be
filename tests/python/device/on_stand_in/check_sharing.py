"""Memory shared with other libraries: DLPack with streams, the CUDA array interface, the doors of mx.cuda."""

from __future__ import annotations

import ctypes
import gc
import sys
import types
from collections.abc import Callable
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
import stand_in
from hybridnet.errors import HybridNetError

GPU = mx.gpu(0)
DTYPES = ("float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool")


class OtherLibrary:
    """A library with a stream of its own, which calls the driver: what CuPy and PyTorch do."""

    def __init__(self) -> None:
        self.driver = stand_in.library()
        mx.nd.zeros((1,), ctx=GPU).wait_to_read()
        context = ctypes.c_void_p()
        assert self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.driver.cuCtxSetCurrent(context) == 0
        handle = ctypes.c_void_p()
        assert self.driver.cuStreamCreate(ctypes.byref(handle), 0) == 0
        self.stream = int(handle.value or 0)

    def fill(self, address: int, value: int, count: int, stream: int | None = None) -> None:
        used = self.stream if stream is None else stream
        arguments = (ctypes.c_uint64(address), ctypes.c_uint(value), ctypes.c_size_t(count), ctypes.c_void_p(used))
        assert self.driver.cuMemsetD8Async(*(arguments[0], ctypes.c_ubyte(value), arguments[2], arguments[3])) == 0

    def allocate(self, count: int) -> int:
        address = ctypes.c_uint64()
        assert self.driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(count)) == 0
        return int(address.value)

    def free(self, address: int) -> None:
        self.driver.cuStreamSynchronize(ctypes.c_void_p(self.stream))
        assert self.driver.cuMemFree_v2(ctypes.c_uint64(address)) == 0

    def synchronize(self) -> None:
        assert self.driver.cuStreamSynchronize(ctypes.c_void_p(self.stream)) == 0


@pytest.fixture(scope="module")
def other() -> OtherLibrary:
    return OtherLibrary()


def address_of(array: mx.nd.NDArray) -> int:
    return array.__cuda_array_interface__["data"][0]


class Foreign:
    """An array of the other library: bytes of one value, written on its stream."""

    def __init__(self, other: OtherLibrary, count: int, value: int, stream: int | None = None) -> None:
        self.other, self.count = other, count
        self.stream = other.stream if stream is None else stream
        self.address = other.allocate(count)
        other.fill(self.address, value, count, self.stream)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        found = {"shape": (self.count,), "typestr": "|u1", "data": (self.address, False), "strides": None}
        return {**found, "version": 3, "stream": self.stream}

    def __del__(self) -> None:
        self.other.free(self.address)


@pytest.mark.parametrize("share", [mx.nd.from_dlpack, mx.np.from_dlpack, mx.nd.from_cupy])
@pytest.mark.parametrize("dtype", DTYPES)
def test_two_arrays_share_memory(share: Callable[[Any], Any], dtype: str) -> None:
    x = mx.nd.array(np.arange(12).reshape(3, 4) % 2, ctx=GPU, dtype=dtype)
    shared = share(x)
    assert (shared.context, shared.shape, np.dtype(shared.dtype)) == (GPU, x.shape, np.dtype(dtype))
    x[:] = 1
    mx.cuda.synchronize(GPU)
    assert (shared.asnumpy() == 1).all()
    del x
    gc.collect()
    assert address_of(shared) and (shared.asnumpy() == 1).all()


def test_bfloat16_is_shared_by_dlpack_only() -> None:
    x = mx.nd.ones((2, 3), ctx=GPU, dtype="bfloat16")
    assert (mx.nd.from_dlpack(x).astype("float32").asnumpy() == 1).all()
    assert not hasattr(x, "__cuda_array_interface__")


def test_dlpack_names_the_device() -> None:
    assert mx.nd.ones((2,), ctx=GPU).__dlpack_device__() == (2, 0)
    assert mx.nd.ones((2,)).__dlpack_device__() == (1, 0)


def test_an_array_of_the_cpu_has_no_interface() -> None:
    x = mx.nd.ones((2,))
    assert not hasattr(x, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="as_in_context"):
        _ = x.__cuda_array_interface__
    with pytest.raises(ValueError, match="as_in_context"):
        x.as_cupy()


def test_views_and_arrays_without_elements_are_shared() -> None:
    x = mx.nd.arange(12, ctx=GPU).reshape((3, 4))
    assert address_of(x[1]) == address_of(x) + 16
    np.testing.assert_array_equal(mx.nd.from_dlpack(x[1:]).asnumpy(), [[4, 5, 6, 7], [8, 9, 10, 11]])
    with mx.util.np_shape(True):
        assert mx.nd.from_cupy(mx.np.zeros((0, 3), ctx=GPU)).shape == (0, 3)
        assert mx.nd.from_dlpack(mx.np.zeros((), ctx=GPU)).shape == ()


def test_a_copy_for_the_cpu_can_be_asked_for() -> None:
    x = mx.nd.arange(5, ctx=GPU)
    np.testing.assert_array_equal(mx.nd.from_dlpack(x.__dlpack__(dl_device=(1, 0))).asnumpy(), np.arange(5))
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 1))
    copied = mx.nd.from_dlpack(x.__dlpack__(stream=1, copy=True))
    x[:] = 0
    np.testing.assert_array_equal(copied.asnumpy(), np.arange(5))


@pytest.mark.parametrize("stream", [0, -2, "1", True])
def test_streams_that_mean_nothing_are_refused(stream: Any) -> None:
    with pytest.raises(ValueError, match="stream"):
        mx.nd.ones((2,), ctx=GPU).__dlpack__(stream=stream)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("stream", [None, 1, 2, "own"])
def test_the_consumers_stream_follows_our_work(other: OtherLibrary, stream: int | str | None, seed: int) -> None:
    stand_in.seed(seed)
    handle = other.stream if stream == "own" else stream
    x = mx.nd.ones((1000,), ctx=GPU, dtype="uint8")
    for _ in range(3):
        x = x + 1
    capsule = x.__dlpack__(stream=handle)
    shared = mx.nd.from_dlpack(capsule)
    other.fill(address_of(x), 7, 1000, 0 if handle in (None, 1, 2) else other.stream)
    other.synchronize()
    other.driver.cuStreamSynchronize(None)
    assert (shared.asnumpy() == 7).all()


def test_with_stream_minus_one_nothing_is_ordered(other: OtherLibrary) -> None:
    x = mx.nd.ones((1000,), ctx=GPU, dtype="uint8") + 1
    capsule = x.__dlpack__(stream=-1)
    address = mx._core.gpu_memory(x)[0]
    other.fill(address, 7, 1000)
    other.synchronize()
    mx.cuda.synchronize(GPU)
    assert any(report.startswith("race") for report in stand_in.reports())
    stand_in.reset()
    del capsule


@pytest.mark.parametrize("seed", range(12))
def test_our_streams_follow_the_work_of_an_interface(other: OtherLibrary, seed: int) -> None:
    stand_in.seed(seed)
    foreign = Foreign(other, 1000, 5)
    copied = mx.nd.from_cupy(foreign)
    assert (copied.asnumpy() == 5).all()  # the stream for copies follows, too
    doubled = mx.nd.from_cupy(Foreign(other, 1000, 6)) * 2
    assert (doubled.asnumpy() == 12).all()


@pytest.mark.parametrize("seed", range(12))
def test_foreign_memory_lives_until_our_work_on_it_is_done(other: OtherLibrary, seed: int) -> None:
    stand_in.seed(seed)
    total = mx.nd.zeros((1000,), ctx=GPU, dtype="uint8")
    for value in range(4):
        total = total + mx.nd.from_cupy(Foreign(other, 1000, value))
    gc.collect()
    assert (total.asnumpy() == 6).all()


@pytest.mark.parametrize("seed", range(12))
def test_memory_that_others_know_is_used_again_after_their_work(other: OtherLibrary, seed: int) -> None:
    stand_in.seed(seed)
    x = mx.nd.ones((5000,), ctx=GPU, dtype="uint8")
    address = address_of(x)
    capsule = x.__dlpack__(stream=1)
    other.fill(address, 9, 5000, 0)  # still runs when both are gone
    del x, capsule
    gc.collect()
    again = mx.nd.ones((5000,), ctx=GPU, dtype="uint8")
    assert address_of(again) == address  # the pool gave the same block
    assert (again.asnumpy() == 1).all()
    other.driver.cuStreamSynchronize(None)


def test_work_on_our_stream_needs_no_waiting(other: OtherLibrary) -> None:
    x = mx.nd.zeros((100,), ctx=GPU, dtype="uint8")
    address = address_of(x)
    for _ in range(3):
        other.fill(address, 2, 100, mx.cuda.stream(GPU))
        x += 1
    assert (x.asnumpy() == 3).all()


def interface(**changes: Any) -> Any:
    described = {**mx.nd.zeros((2, 3), ctx=GPU).__cuda_array_interface__, **changes}
    return types.SimpleNamespace(__cuda_array_interface__=described)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strides": (4, 8)}, "ascontiguousarray"),
        ({"strides": (24, 4)}, "ascontiguousarray"),
        ({"typestr": ">f4"}, "byte order"),
        ({"typestr": "<c8"}, "complex64"),
        ({"mask": object()}, "mask"),
        ({"data": (256, True)}, "read-only"),
        ({"stream": 0}, "stream"),
    ],
)
def test_arrays_that_cannot_be_shared_are_errors(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(HybridNetError, match=said):
        mx.nd.from_cupy(interface(**changes))


def test_contiguous_strides_are_accepted() -> None:
    assert mx.nd.from_cupy(interface(strides=(12, 4))).shape == (2, 3)


def test_other_objects_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="__cuda_array_interface__"):
        mx.nd.from_cupy(np.ones(3))
    with pytest.raises(HybridNetError, match=r"gpu\(7\)|gpu\(0\)"):
        mx.nd.from_cupy(types.SimpleNamespace(**vars(interface()), device=types.SimpleNamespace(id=7)))


def test_a_capsule_is_used_once() -> None:
    capsule = mx.nd.ones((2,), ctx=GPU).to_dlpack_for_write()
    mx.nd.from_dlpack(capsule)
    with pytest.raises(ValueError, match="not used before"):
        mx.nd.from_dlpack(capsule)


def test_as_cupy_hands_the_array_to_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    fake = types.ModuleType("cupy")
    fake.from_dlpack = lambda array: given.append(array) or "theirs"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", fake)
    x = mx.nd.ones((2,), ctx=GPU)
    assert x.as_cupy() == "theirs"
    assert given == [x]
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match="pip install cupy"):
        x.as_cupy()


def test_the_doors_of_the_device() -> None:
    assert mx.cuda.is_available()
    assert mx.cuda.stream() == mx.cuda.stream(GPU) == mx.cuda.stream("gpu(0)") > 2
    assert mx.cuda.stream().__cuda_stream__() == (0, mx.cuda.stream())
    with GPU:
        assert mx.cuda.stream() == mx.cuda.stream(GPU)
    with pytest.raises(ValueError, match=r"mx.gpu\(0\)"):
        mx.cuda.stream(mx.cpu())
    with pytest.raises(HybridNetError, match=r"gpu\(1\)|gpu\(0\)"):
        mx.cuda.stream(mx.gpu(1))
    before = mx.cuda.memory_statistics()
    kept = mx.nd.ones((1 << 16,), ctx=GPU)
    after = mx.cuda.memory_statistics(GPU)
    assert after["in_use"] - before["in_use"] >= 1 << 18
    assert after["total"] >= after["free"] > 0
    assert after["peak_in_use"] >= after["in_use"]
    assert kept.context == GPU


def test_results_do_not_reuse_shared_memory() -> None:
    net = mx.gluon.nn.Dense(4, in_units=4)
    net.initialize(ctx=GPU)
    net.hybridize(static_alloc=True)
    x = mx.nd.ones((4, 4), ctx=GPU)
    first = net(x)
    shared = mx.nd.from_dlpack(first)
    values = first.asnumpy()
    for step in range(3):
        net(x * step)
    np.testing.assert_array_equal(shared.asnumpy(), values)


@pytest.mark.parametrize(("pools", "function"), [("1", "cuMemAllocAsync"), ("0", "cuMemAlloc_v2")])
def test_memory_comes_from_the_pool_that_other_libraries_use_where_there_is_one(pools: str, function: str) -> None:
    code = f"""if True:
        import hybridnet as mx, stand_in
        gpu = mx.gpu(0)
        mx.nd.ones((4,), ctx=gpu).wait_to_read()
        stand_in.fail("{function}:1:2,{function}:2:2")
        try:
            mx.nd.ones((1 << 20,), ctx=gpu).wait_to_read()
        except mx.errors.OutOfMemoryError:
            print("refused", end=" ")
        stand_in.fail("")
        large = mx.nd.ones((1 << 20,), ctx=gpu)
        print(large.sum().asscalar(), end=" ")
        del large
        mx.nd.waitall()
        free = mx.context.gpu_memory_info(0)[0]
        gpu.empty_cache()
        print(mx.context.gpu_memory_info(0)[0] - free >= 4 << 20, stand_in.reports())
    """
    done = stand_in.run(code, HNSTANDIN_POOLS=pools)
    assert done.stdout == "refused 1.048576e+06 True []\n", done.stdout + done.stderr
