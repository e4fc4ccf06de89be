"""Default values of inputs, mx.In(default): f["x"] reads and sets them, and calls may omit the input."""

from __future__ import annotations

import hybridnet as mx
import numpy as np
import pytest
from hybridnet.errors import DTypeError
from hybridnet.errors import KeyError as HybridNetKeyError
from hybridnet.errors import TypeError as HybridNetTypeError


def make():
    x, y = mx.sym.var("x"), mx.sym.var("y", dtype="int32")
    return x, mx.function([x, mx.In(y, default=[1, 2, 3])], mx.sym.cast(x, "int32") + y, name="add")


def test_a_default_is_read_set_and_removed():
    x, f = make()
    with pytest.raises(HybridNetTypeError, match="'x' is missing"):
        f()
    f["x"] = mx.nd.array([10, 20, 30])
    assert f().asnumpy().tolist() == [11, 22, 33]
    f["y"] = np.array([5, 5, 5], dtype="int32")
    assert f().asnumpy().tolist() == [15, 25, 35]
    assert f(mx.nd.zeros(3)).asnumpy().tolist() == [5, 5, 5]
    assert f(y=mx.nd.array([0, 0, 1], dtype="int32")).asnumpy().tolist() == [10, 20, 31]
    assert f["y"].asnumpy().tolist() == [5, 5, 5]
    assert f[x].asnumpy().tolist() == [10, 20, 30]
    f["x"] = None
    with pytest.raises(HybridNetTypeError, match="'x' is missing"):
        f()


def test_an_array_as_default_is_not_copied():
    _, f = make()
    value = mx.nd.array([1, 1, 1])
    f["x"] = value
    value[:] = 7
    assert f().asnumpy().tolist() == [8, 9, 10]


def test_unknown_names_and_wrong_values():
    _, f = make()
    with pytest.raises(HybridNetKeyError, match=r"add.*'z'"):
        f["z"]
    with pytest.raises(HybridNetKeyError, match=r"add.*'z'"):
        f["z"] = 1
    with pytest.raises(DTypeError, match=r"'y'.*int32, got float64"):
        f["y"] = [0.5]
    with pytest.raises(DTypeError, match=r"'y'.*int32"):
        mx.In(mx.sym.var("y", dtype="int32"), default=0.5)


def test_shared_variables_by_the_same_access():
    w, other = mx.shared([1.0, 2.0], name="w"), mx.shared([1.0], name="other")
    f = mx.function([], w * 2)
    assert f[w].asnumpy().tolist() == [1, 2]
    with pytest.raises(HybridNetKeyError, match="does not read 'other'"):
        f[other]


def test_copies_have_defaults_of_their_own():
    _, f = make()
    f["x"] = mx.nd.zeros(3)
    g = f.copy()
    g["y"] = [7, 7, 7]
    assert f().asnumpy().tolist() == [1, 2, 3]
    assert g().asnumpy().tolist() == [7, 7, 7]
