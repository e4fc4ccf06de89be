"""mx.npx: files, checks, control flow, images, and its names of operators."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as onp
import pytest
from hybridnet import np, npx


@pytest.fixture(params=[False, True], ids=["classic", "set_np"])
def switched(request: pytest.FixtureRequest):
    """Runs each test with and without npx.set_np(), on which NumPy's interface does not depend."""
    if request.param:
        npx.set_np()
    yield
    npx.reset_np()


def test_saved_arrays_are_loaded_with_their_shapes_and_dtypes(tmp_path, switched):
    arrays = {
        "scalar": np.array(1.5),
        "empty": np.zeros((0, 3)),
        "whole": np.array([[1, 2]], dtype="int64"),
        "bools": np.array([True, False]),
    }
    file = tmp_path / "arrays"
    npx.save(file, arrays)
    loaded = npx.load(file)
    assert list(loaded) == list(arrays)
    for name, array in arrays.items():
        assert type(loaded[name]) is np.ndarray
        assert loaded[name].shape == array.shape and loaded[name].dtype == array.dtype
        onp.testing.assert_array_equal(loaded[name].asnumpy(), array.asnumpy())
    npx.save(file, arrays["scalar"])
    assert [a.shape for a in npx.load(file)] == [()]
    npx.save(file, [arrays["empty"], arrays["whole"]])
    assert [a.shape for a in npx.load(file)] == [(0, 3), (1, 2)]
    with pytest.raises(mx.errors.TypeError, match="save"):
        npx.save(file, [1.5])


def test_numpy_reads_files_of_savez(tmp_path):
    file = tmp_path / "arrays.npz"
    npx.savez(file, np.array([1.0, 2.0]), scale=np.array(3.0))
    with onp.load(file) as loaded:
        onp.testing.assert_array_equal(loaded["arr_0"], [1, 2])
        assert loaded["scale"].shape == () and loaded["scale"] == 3
    with pytest.raises(mx.errors.TypeError, match="savez"):
        npx.savez(file, [1.0])


class Checked(mx.gluon.HybridBlock):
    """Multiplies by the result of a check that x is positive."""

    def forward(self, x: Any) -> Any:
        return x * npx.constraint_check(np.greater(x, 0), "x must be positive")


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_violated_constraint_stops_the_computation_with_its_message(hybrid, switched):
    block = Checked()
    if hybrid:
        block.hybridize()
    onp.testing.assert_array_equal(block(np.array([1.0, 2.0])).asnumpy(), [1, 2])
    with pytest.raises(mx.errors.ValueError, match=r"1 of 2 elements False(.|\n)*x must be positive"):
        block(np.array([1.0, -2.0])).asnumpy()
    assert npx.constraint_check(np.array([True]), "m").shape == ()


class Looping(mx.gluon.HybridBlock):
    """A block with a loop and a branch of mx.npx."""

    def forward(self, x: Any) -> Any:
        out, state = npx.foreach(lambda row, s: (row * 2 + s, s + row), x, np.zeros_like(x[0]))
        branch = npx.cond(state.sum() > 0, lambda: state, lambda: -state)
        return out, branch


@pytest.mark.parametrize("hybrid", [False, True])
def test_loops_and_branches_take_arrays_of_np(hybrid):
    npx.set_np()
    try:
        block = Looping()
        if hybrid:
            block.hybridize()
        out, branch = block(np.array([[1.0, -2.0], [3.0, -4.0]]))
        assert type(out) is np.ndarray and type(branch) is np.ndarray
        onp.testing.assert_array_equal(out.asnumpy(), [[2, -4], [7, -10]])
        onp.testing.assert_array_equal(branch.asnumpy(), [-4, 6])
    finally:
        npx.reset_np()


def test_images_are_arrays_of_np():
    image = np.array(onp.arange(24).reshape(2, 4, 3), dtype="uint8")
    tensor = npx.image.to_tensor(image)
    assert type(tensor) is np.ndarray and tensor.shape == (3, 2, 4) and tensor.dtype == onp.float32
    assert npx.image.flip_left_right(image)[0, 0].asnumpy().tolist() == [9, 10, 11]
    assert npx.image.crop(image, x=1, y=0, width=2, height=2).shape == (2, 2, 3)
    assert npx.image.fixed_crop is mx.image.fixed_crop and npx.image.ResizeAug is mx.image.ResizeAug
    with pytest.raises(AttributeError, match="no_such"):
        _ = npx.image.no_such


# A call of each operator that has its own name in mx.npx: shapes of arrays, keywords, shape of the result.
OPERATOR_CALLS: list[tuple[str, list[tuple[int, ...]], dict[str, Any], tuple[int, ...]]] = [
    ("activation", [(2, 3)], {"act_type": "relu"}, (2, 3)),
    ("arange_like", [(2, 3)], {"axis": 1}, (3,)),
    ("batch_dot", [(2, 3, 4), (2, 5, 4)], {"transpose_b": True}, (2, 3, 5)),
    ("batch_flatten", [(2, 3, 4)], {}, (2, 12)),
    ("batch_norm", [(2, 3, 4), (3,), (3,), (3,), (3,)], {}, (2, 3, 4)),
    ("cast", [(2, 3)], {"dtype": "float64"}, (2, 3)),
    ("convolution", [(1, 2, 5, 5), (3, 2, 3, 3), (3,)], {"kernel": (3, 3), "num_filter": 3}, (1, 3, 3, 3)),
    ("deconvolution", [(1, 2, 3, 3), (2, 3, 3, 3)], {"kernel": (3, 3), "num_filter": 3}, (1, 3, 5, 5)),
    ("dropout", [(2, 3)], {"p": 0.5}, (2, 3)),
    ("embedding", [(2, 3), (5, 4)], {"input_dim": 5, "output_dim": 4}, (2, 3, 4)),
    ("erf", [(2, 3)], {}, (2, 3)),
    ("erfinv", [(2, 3)], {}, (2, 3)),
    ("fully_connected", [(2, 3), (4, 3), (4,)], {"num_hidden": 4}, (2, 4)),
    ("gamma", [(2, 3)], {}, (2, 3)),
    ("gammaln", [(2, 3)], {}, (2, 3)),
    ("gather_nd", [(2, 3), (2, 4)], {}, (4,)),
    ("layer_norm", [(2, 3), (3,), (3,)], {}, (2, 3)),
    ("leaky_relu", [(2, 3)], {"act_type": "leaky", "slope": 0.1}, (2, 3)),
    ("log_softmax", [(2, 3)], {"axis": 0}, (2, 3)),
    ("multibox_prior", [(1, 3, 2, 2)], {"sizes": (0.5, 0.25), "ratios": (1.0, 2.0)}, (1, 12, 4)),
    ("one_hot", [(2, 3)], {"depth": 4}, (2, 3, 4)),
    ("pick", [(2, 3), (2,)], {"axis": 1}, (2,)),
    ("pooling", [(1, 2, 4, 4)], {"kernel": (2, 2), "pool_type": "avg", "stride": (2, 2)}, (1, 2, 2, 2)),
    ("relu", [(2, 3)], {}, (2, 3)),
    ("reshape", [(2, 3, 4)], {"newshape": (-5, -4)}, (6, 4)),
    ("reshape_like", [(2, 3), (3, 2)], {}, (3, 2)),
    ("roi_pooling", [(1, 2, 6, 6), (3, 5)], {"pooled_size": (2, 2), "spatial_scale": 1.0}, (3, 2, 2, 2)),
    ("sequence_mask", [(4, 2), (2,)], {"use_sequence_length": True}, (4, 2)),
    ("shape_array", [(2, 3)], {}, (2,)),
    ("sigmoid", [(2, 3)], {}, (2, 3)),
    ("slice", [(2, 3)], {"begin": (0, 1), "end": (2, 3)}, (2, 2)),
    ("smooth_l1", [(2, 3)], {"scalar": 1.0}, (2, 3)),
    ("softmax", [(2, 3)], {"axis": -1}, (2, 3)),
    ("topk", [(2, 3)], {"k": 2, "axis": 1}, (2, 2)),
]


@pytest.mark.parametrize("name, shapes, kwargs, expected", OPERATOR_CALLS, ids=[c[0] for c in OPERATOR_CALLS])
def test_operators_take_and_give_arrays_of_np(name, shapes, kwargs, expected, switched, rng):
    arrays = [np.array(onp.abs(rng.uniform(0, 0.9, shape)), dtype="float32") for shape in shapes]
    result = getattr(npx, name)(*arrays, **kwargs, **({"no_bias": True} if name == "deconvolution" else {}))
    result = result[0] if isinstance(result, (list, tuple)) else result
    assert type(result) is np.ndarray and result.shape == expected
    symbols = [mx.sym.var(f"x{i}").as_np_ndarray() for i in range(len(arrays))]
    assert isinstance(getattr(mx.sym.npx, name)(*symbols, **kwargs), mx.sym.Symbol)
