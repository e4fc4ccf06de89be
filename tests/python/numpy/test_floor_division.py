"""Floor division of integers: NumPy's quotient over the whole range of each dtype."""

import hybridnet as mx
import numpy as onp
import pytest

WAYS = {
    "operator": lambda a, b: a // b,
    "function": lambda a, b: mx.np.floor_divide(a, b),
    "divmod": lambda a, b: divmod(a, b)[0],
}


class FloorDivision(mx.gluon.HybridBlock):
    def forward(self, a, b):
        return a // b, a % b


def expected_of(a, b):
    """Returns quotient and remainder: 0 for a divisor of 0; the smallest number divided by -1 wraps around."""
    with onp.errstate(all="ignore"):
        return onp.where(b == 0, 0, a // b).astype(a.dtype), onp.where(b == 0, 0, a % b).astype(a.dtype)


def pairs_of(dtype):
    if onp.dtype(dtype).itemsize == 1:
        every = onp.arange(onp.iinfo(dtype).min, onp.iinfo(dtype).max + 1).astype(dtype)
        return onp.repeat(every, 256), onp.tile(every, 256)
    least, most = onp.iinfo(dtype).min, onp.iinfo(dtype).max
    edges = onp.array([least, least + 1, least + 2, -100, -3, -2, -1, 0, 1, 2, 3, 127, most - 1, most], dtype)
    return onp.repeat(edges, edges.size), onp.tile(edges, edges.size)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_quotients_and_rests_of_all_pairs_are_numpys(dtype):
    a, b = pairs_of(dtype)
    quotient, rest = expected_of(a, b)
    x, y = mx.np.array(a, dtype=dtype), mx.np.array(b, dtype=dtype)
    for name, way in WAYS.items():
        onp.testing.assert_array_equal(way(x, y).asnumpy(), quotient, err_msg=name)
    for way in (lambda: x % y, lambda: mx.np.mod(x, y), lambda: mx.np.remainder(x, y), lambda: divmod(x, y)[1]):
        onp.testing.assert_array_equal(way().asnumpy(), rest)
    net = FloorDivision()
    net.hybridize()
    for found, right in zip(net(x, y), (quotient, rest), strict=True):
        onp.testing.assert_array_equal(found.asnumpy(), right)
    x //= y
    onp.testing.assert_array_equal(x.asnumpy(), quotient)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_quotients_with_numbers_on_either_side_are_numpys(dtype):
    a, _ = pairs_of(dtype)
    a = onp.unique(a)
    x = mx.np.array(a, dtype=dtype)
    for number in (-128, -127, -5, -1, 0, 1, 3, 127, 128, 300, -300, 2147483647, -2147483648):
        if dtype == "int64" and number == -1:
            a, x = a[1:], x[1:]
        wide, constant = a.astype("int64"), onp.full(a.shape, number)
        onp.testing.assert_array_equal((x // number).asnumpy(), expected_of(wide, constant)[0].astype(dtype))
        onp.testing.assert_array_equal((number // x).asnumpy(), expected_of(constant, wide)[0].astype(dtype))
        onp.testing.assert_array_equal((x % number).asnumpy(), expected_of(wide, constant)[1].astype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_classic_arrays_divide_as_those_of_numpys_interface(dtype):
    a, b = pairs_of(dtype)
    found = mx.nd.array(a, dtype=dtype) // mx.nd.array(b, dtype=dtype)
    onp.testing.assert_array_equal(found.asnumpy(), expected_of(a, b)[0])
    assert (mx.nd.array([-2147483647], dtype="int32") // 3).asnumpy().tolist() == [-715827883]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32"])
def test_symbols_and_traced_classic_arrays_divide_as_arrays(dtype):
    a, b = onp.array([-100, 100, 7, -7, 100], "int8"), onp.array([3, -128, -2, 2, 127], "int8")
    if dtype == "uint8":
        a, b = onp.abs(a.astype("int32")), onp.abs(b.astype("int32"))
    a, b = a.astype(dtype), b.astype(dtype)
    arrays = mx.nd.array(a, dtype=dtype), mx.nd.array(b, dtype=dtype)
    left, right = mx.sym.var("a"), mx.sym.var("b")
    for graph, expected in ((left // right, a // b), (left // 3, a // 3), (100 // right, 100 // b)):
        feeds = {name: x for name, x in zip("ab", arrays, strict=True) if name in graph.list_arguments()}
        onp.testing.assert_array_equal(graph.bind(mx.cpu(), feeds).forward()[0].asnumpy(), expected.astype(dtype))
    net = ClassicDivision()
    net.hybridize()
    onp.testing.assert_array_equal(net(*arrays).asnumpy(), a // b)


class ClassicDivision(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, a, b):
        return a // b
