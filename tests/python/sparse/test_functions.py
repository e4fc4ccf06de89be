"""Every elementwise operator of one array in the registry: sparse arrays keep their storage if f(0) = 0."""

from __future__ import annotations

import warnings

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core, autograd

STYPES = ["csr", "row_sparse"]
OPERATORS = {name: _core.describe_op(name) for name, _, _ in _core.op_names()}
USES = [
    pytest.param(name, sample, id=f"{name}-{number}")
    for name, described in OPERATORS.items()
    if described["pointwise"] and len(described["inputs"]) == 1 and not described["variadic"]
    for number, sample in enumerate(described["samples"])
]


def run(name, sample, array):
    return _core.op_function(name, name, "hybridnet.ndarray")(array, **sample["attrs"])


def dtype_of(name):
    return "float32" if "float32" in OPERATORS[name]["dtypes"] else "int32"


def values_of(name, sample, rng):
    """Draws values for a sample; about a third are zeros, and so is the whole middle row."""
    low, high = sample["low"], sample["high"]
    values = rng.uniform(low, high, (5, 4)) * (rng.random((5, 4)) < 0.7)
    values[2] = 0
    return values.astype(dtype_of(name))


def has_gradient(described):
    return described["differentiable"] and not described["stops_gradient"] and "float32" in described["dtypes"]


def test_the_sweep_reads_the_registry():
    names = {param.values[0] for param in USES}
    assert {"sin", "negative", "_mul_scalar", "clip", "Activation", "_contrib_quadratic", "exp"} <= names
    assert len(names) >= 80


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stype", STYPES)
@pytest.mark.parametrize(("name", "sample"), USES)
def test_storage_stays_where_the_value_at_zero_is_zero(name, sample, stype, rng):
    values = values_of(name, sample, rng)
    at_zero = run(name, sample, mx.nd.zeros((1,), dtype=values.dtype)).asnumpy()[0]
    dense = mx.nd.array(values, dtype=values.dtype)
    result = run(name, sample, dense.tostype(stype))
    assert result.stype == (stype if at_zero == 0 else "default")
    np.testing.assert_allclose(result.asnumpy(), run(name, sample, dense).asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("stype", STYPES)
@pytest.mark.parametrize(("name", "sample"), [use for use in USES if has_gradient(OPERATORS[use.values[0]])])
def test_gradients_are_those_of_dense_arrays(name, sample, stype, rng):
    values = values_of(name, sample, rng)
    head = rng.standard_normal(values.shape) * (rng.random((5, 1)) < 0.6)
    gradients = []
    for storage, head_storage in (("default", "default"), (stype, "default"), (stype, stype)):
        x = mx.nd.array(values).tostype(storage)
        x.attach_grad()
        with warnings.catch_warnings(), autograd.record():
            warnings.simplefilter("ignore")
            out = run(name, sample, x)
            out.backward(mx.nd.array(head, dtype=out.dtype).tostype(head_storage))
        gradients.append(x.grad.asnumpy())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradients[2], gradients[0], rtol=1e-5, atol=1e-6)
