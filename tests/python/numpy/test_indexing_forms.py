"""x[key] equals NumPy's imperatively, recorded and traced, for mx.nd and mx.np."""

import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon

SHAPE = (3, 4, 2)
DATA = np.arange(24, dtype="float32").reshape(SHAPE) - 7
MASK3 = np.arange(24).reshape(SHAPE) % 3 == 0
MASK2 = np.arange(12).reshape(3, 4) % 5 == 1
MASK1 = np.array([True, False, True])
MASK4 = np.array([False, True, True, False])
IDX = np.array([2, 0, -1, 1])
J = np.array([[0], [3]])
K = np.array([1, -2])

s = np.s_
KEYS = [
    s[1], s[-1], s[1, 2], s[-1, -2, 1], s[2, ..., 0], s[...], s[..., 1], s[:], s[:, 1:3], s[::-1], s[:, ::2],
    s[::2, ::-1, 1], s[-2:], s[5:], s[:, 3:1], s[:, -10:10], s[None], s[:, None], s[..., None], s[None, 1, None, ::2],
    s[1, ..., None], s[2:0:-1], s[np.int64(1)], s[np.int32(-1), 1:], s[np.uint8(2), np.int64(1)],
    s[[0, 2]], s[[2, -1, 0], 1], s[:, [1, 1, 3]], s[:, :, [1, 0, 1]], s[[0, 1], [2, 3]], s[[0, 1], :, [1, 0]],
    s[1, :, [1, 0]], s[[[0, 1], [2, 0]]], s[..., [0, 1]], s[[0, 1], ..., [1, 0]], s[[1], None, 2], s[None, [1, 2]],
    s[::2, [1, 2]], s[[0, 1], ::-1], s[1:, [0], [1]], s[[0, 2], 1:3, 0], s[[]], s[:, []],
    s[IDX], s[-1, IDX], s[:, IDX % 4], s[IDX % 3, IDX], s[J % 3], s[:, J], s[J % 3, IDX],
    s[IDX % 3, :, K.repeat(2)], s[K, ..., K],
    s[IDX[:0]], s[::-1, J, None], s[0, J, K], s[J % 3, 0, K % 2], s[K, 1:, 0],
    s[MASK3], s[MASK2], s[MASK1], s[:, MASK4], s[MASK1, 1], s[MASK1, :, 0], s[0, MASK4], s[MASK2, 1], s[MASK2, ::-1],
    s[..., MASK1[:2]], s[MASK1, ..., 1], s[None, MASK1], s[MASK1, None], s[MASK1[:, None] & MASK4], s[MASK1, [0, 1]],
    s[[0, 2], MASK4], s[[[0], [2]], MASK4], s[1:, MASK4], s[MASK1 & False], s[MASK3 & False], s[True], s[False],
    s[True, 1],
    s[np.array(1)], s[np.array(-1), 2], s[:, np.array(1)], s[np.array(2), ..., np.array(0)], s[np.array(1), :, K],
    s[np.array(1), 1:3], s[np.array(True)], s[np.array(False)], s[None, np.array(1)], s[np.array(1), None],
    s[(np.array(0), np.array(3), np.array(1))], s[range(2)], s[(1,)], s[()],
]  # fmt: skip
BAD = [
    s[3],
    s[-4],
    s[0, 0, 0, 0],
    s[[3]],
    s[:, [0, -5]],
    s[np.array([0, 3])],
    s[MASK4],
    s[:, MASK1],
    s[[0, 1], [0, 1, 2]],
]
IDS = [f"{number}: {str(key)[:40]}" for number, key in enumerate(KEYS)]


def with_arrays(key, made):
    """Replaces NumPy arrays in a key by arrays that `made` makes."""
    if isinstance(key, np.ndarray):
        return made(key)
    return tuple(with_arrays(item, made) for item in key) if isinstance(key, tuple) else key


def parts_of(key):
    return [item for item in (key if isinstance(key, tuple) else (key,)) if isinstance(item, np.ndarray)]


class Item(gluon.HybridBlock):
    """Returns x[key]; arrays of the key are constants or, if given, arguments."""

    def __init__(self, key, **kwargs):
        super().__init__(**kwargs)
        self.key = key

    def forward(self, x, *given):
        waiting = list(given)
        return x[with_arrays(self.key, lambda array: waiting.pop(0) if given else array)]


def classic_array(array):
    return mx.nd.array(array, dtype=array.dtype)


def np_array(array):
    return mx.np.array(array, dtype=array.dtype)


def is_same(found, expected, interface):
    shape = expected.shape or ((1,) if interface is mx.nd else ())
    return found.shape == shape and np.array_equal(found.asnumpy(), expected.reshape(shape))


def usable(key, interface):
    """Returns whether the interface has the arrays of the key: mx.nd has no arrays without axes."""
    return interface is mx.np or not any(part.ndim == 0 for part in parts_of(key))


@pytest.mark.parametrize("interface", [mx.np, mx.nd], ids=["np", "nd"])
@pytest.mark.parametrize("key", KEYS, ids=IDS)
def test_imperative_and_recorded_reads_are_numpys(key, interface):
    made = np_array if interface is mx.np else classic_array
    x = made(DATA)
    expected = DATA[key]
    assert is_same(x[key], expected, interface)
    if usable(key, interface):
        assert is_same(x[with_arrays(key, made)], expected, interface)
    x.attach_grad()
    with autograd.record():
        y = x[with_arrays(key, made) if usable(key, interface) else key]
        assert is_same(y, expected, interface)
        total = (y * y).sum()
    if expected.size:
        total.backward()
        gradient = np.zeros_like(DATA)
        np.add.at(gradient, key, 2 * expected)
        np.testing.assert_array_equal(x.grad.asnumpy(), gradient)


TRACED = [
    pytest.param(key, form, interface, id=f"{name}-{form}-{interface.__name__[10:]}")
    for name, key in zip(IDS, KEYS, strict=True)
    for form in (["constant", "captured", "argument"] if parts_of(key) else ["constant"])
    for interface in (mx.np, mx.nd)
    if usable(key, interface)
]


@pytest.mark.parametrize(("key", "form", "interface"), TRACED)
def test_traced_reads_are_numpys(key, form, interface):
    made = np_array if interface is mx.np else classic_array
    parts = parts_of(key)
    net = Item(with_arrays(key, made) if form == "captured" else key)
    net.hybridize(strict=True)
    x = made(DATA)
    given = [made(part) for part in parts] if form == "argument" else []
    expected = DATA[key]
    assert is_same(net(x, *given), expected, interface)
    if not expected.size:
        return
    x.attach_grad()
    with autograd.record():
        y = net(x, *given)
        total = (y * y).sum()
    total.backward()
    gradient = np.zeros_like(DATA)
    np.add.at(gradient, key, 2 * expected)
    np.testing.assert_array_equal(x.grad.asnumpy(), gradient)


@pytest.mark.parametrize("interface", [mx.np, mx.nd], ids=["np", "nd"])
@pytest.mark.parametrize("key", BAD, ids=[str(key)[:30] for key in BAD])
def test_keys_outside_of_the_array_are_errors(key, interface):
    made = np_array if interface is mx.np else classic_array
    with pytest.raises((IndexError, ValueError)):
        made(DATA)[key]
    with pytest.raises((IndexError, ValueError)):
        made(DATA)[with_arrays(key, made)]
    for net, given in (
        (Item(key), []),
        (Item(with_arrays(key, made)), []),
        (Item(key), [made(part) for part in parts_of(key)]),
    ):
        net.hybridize(strict=True)
        with pytest.raises((IndexError, ValueError)):
            net(made(DATA), *given).asnumpy()


@pytest.mark.parametrize("interface", [mx.np, mx.nd], ids=["np", "nd"])
def test_a_traced_mask_selects_the_elements_that_it_marks(interface):
    class Net(gluon.HybridBlock):
        def forward(self, x):
            return x[(x > 0).astype("bool")].sum()

    net = Net()
    net.hybridize(strict=True)
    assert float(net(interface.array([2.0, 1.0, -3.0]))) == 3.0
    assert float(net(interface.array([-2.0, 1.0, -3.0]))) == 1.0


def test_a_traced_comparison_of_np_is_a_mask():
    class Net(gluon.HybridBlock):
        def forward(self, x):
            return x[x > 0].sum()

    net = Net()
    net.hybridize(strict=True)
    assert float(net(mx.np.array([2.0, 1.0, -3.0]))) == 3.0


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_comparison_of_nd_is_read_as_positions_with_a_warning(hybridize):
    class Net(gluon.HybridBlock):
        def forward(self, x):
            return x[x > 0]

    def by_other_line(x):
        return x[x > 0]

    x = mx.nd.array([2.0, 1.0, -3.0])
    net = Net()
    if hybridize:
        net.hybridize()
    with pytest.warns(UserWarning, match="read as positions") as seen:
        found = net(x) if hybridize else by_other_line(x)
    assert seen[0].filename == __file__
    assert found.asnumpy().tolist() == [1.0, 1.0, 2.0]  # elements 1, 1 and 0, as in MXNet
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(x) if hybridize else by_other_line(x)


def test_positions_that_are_no_mask_do_not_warn():
    x = mx.nd.array(DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[mx.nd.array([0, 2, 1])]
        x[mx.nd.array([1, 0])]
        mx.nd.array([5.0, 6.0])[mx.nd.array([1, 0])]


ZERO_D = [
    s[np.array(1)], s[np.array(-1), 2], s[:, np.array(1)], s[np.array(1), :, np.array(0)], s[np.array(True)],
    s[np.array(False)], s[np.array(1), [0, 2]], s[np.int64(1), 1:], s[np.bool_(True), 1],
]  # fmt: skip


@pytest.mark.parametrize("key", ZERO_D, ids=map(str, ZERO_D))
@pytest.mark.parametrize("value", [5.0, "array"])
def test_arrays_without_axes_write_as_in_numpy(key, value):
    expected, x = DATA.copy(), mx.np.array(DATA)
    value = 5.0 if value == 5.0 else np.full(DATA[key].shape[-1:], 3.0, "float32")
    expected[key] = value
    x[with_arrays(key, np_array)] = value if isinstance(value, float) else mx.np.array(value)
    np.testing.assert_array_equal(x.asnumpy(), expected)


class Compared(gluon.HybridBlock):
    """Returns x[key] >= 0, which is bool only if x[key] is an array of mx.np."""

    def __init__(self, key):
        super().__init__()
        self.key = key

    def forward(self, x):
        return x[self.key] >= 0


@pytest.mark.parametrize("key", [key for key in KEYS if not parts_of(key)], ids=str)
def test_indexing_an_array_of_mx_np_gives_an_array_of_mx_np(key):
    with mx.util.np_shape(True), mx.util.np_array(True):
        net = Compared(key)
        net.hybridize(strict=True)
        out = net(mx.np.array(DATA))
    assert np.dtype(out.dtype) == np.bool_
    np.testing.assert_array_equal(out.asnumpy(), DATA[key] >= 0)
