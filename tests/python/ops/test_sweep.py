"""Runs the samples of every operator of the registry in every mode that users can call it in.

Forward agrees with the NumPy reference in every declared dtype; gradients agree with central differences, first and
second order; imperative, compiled and saved-and-loaded graphs agree; zero sizes give empty results or an error, never a
crash; every name is documented.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core
from sweep import FLOATS, OPS, REFERENCES, Use, assert_agrees, in_dtype, numpy_dtype, reference_outputs, uses, wide

# Operators without a reference, with the reason.
WITHOUT_REFERENCE = {
    "_linalg_syevd": "eigenvectors have no sign of their own: test_linalg.py",
    "_npi_eigh": "eigenvectors have no sign of their own: numpy/linalg_cases.py",
    "_npi_svd": "singular vectors have no sign of their own: numpy/linalg_cases.py",
}
# Outputs of these are random: test_random.py and numpy/test_np_random.py compare distributions.
RANDOM_PREFIXES = ("_random_", "_sample_", "_shuffle", "_image_random_", "_npi_")
# Their results depend on the shape only and have no gradient.
INTEGER_OPERATORS = {"shape_array", "size_array"}
# Their samples use 0 in a shape for an unchanged size, which classic shapes allow.
CLASSIC_SHAPES = {"broadcast_to"}


@cache
def function(op: str, symbolic: bool = False) -> Any:
    return _core.op_function(op, op, "hybridnet.ndarray", symbolic=symbolic)


def call(use: Use, arrays: list[Any], *, symbolic: bool = False, **kwargs: Any) -> list[Any]:
    """Calls the operator with attributes as text, like files, and returns all visible outputs."""
    run = function(use.op, symbolic)
    if use.described["variadic"]:
        out = run(*arrays, **use.attrs, **kwargs)
    else:
        out = run(**dict(zip(use.use["inputs"], arrays, strict=True)), **use.attrs, **kwargs)
    if symbolic:
        return [out]
    return list(out) if isinstance(out, (list, tuple)) else [out]


def arrays_of(values: list[np.ndarray]) -> list[Any]:
    return [mx.nd.array(value, dtype=value.dtype) for value in values]


@pytest.fixture(autouse=True)
def numpy_shapes(request: pytest.FixtureRequest):
    """Samples may be scalars, so () means a scalar (NumPy shape semantics)."""
    given = getattr(request.node, "callspec", None)
    names = {value.op if isinstance(value, Use) else value for value in given.params.values()} if given else set()
    with mx.util.np_shape(not names & CLASSIC_SHAPES):
        yield


def is_random(op: dict[str, Any]) -> bool:
    return op["random"] and op["name"].startswith(RANDOM_PREFIXES)


def test_every_public_operator_has_a_reference():
    without = [n for n, op in OPS.items() if not op["internal"] and n not in REFERENCES and not is_random(op)]
    assert sorted(set(without) - set(WITHOUT_REFERENCE)) == []


SWEPT = {(name, dtype): in_dtype(name, dtype) for name in OPS if name in REFERENCES for dtype in OPS[name]["dtypes"]}


def test_every_declared_dtype_is_swept():
    assert {key for key, found in SWEPT.items() if not found} == set()


@pytest.mark.parametrize("name, dtype", [key for key, found in SWEPT.items() if found])
def test_forward_agrees_with_the_reference(name: str, dtype: str):
    for use in SWEPT[name, dtype]:
        values = use.inputs(dtype)
        for train in train_modes(use) if "train" in inspect.signature(REFERENCES[name]).parameters else [False]:
            compare_with_reference(use, values, dtype, train)


def compare_with_reference(use: Use, values: list[np.ndarray], dtype: str, train: bool) -> None:
    """Compares visible outputs, and the inputs that the operator overwrites."""
    with np.errstate(all="ignore"):
        expected = reference_outputs(use, values, train)
    arrays = arrays_of(values)
    with mx.autograd.train_mode() if train else mx.autograd.predict_mode():
        outputs = call(use, arrays)
    named = use.use
    assert len(outputs) == named["num_visible"]
    for i, want in enumerate(expected):
        source = named["writebacks"][i] if i < len(named["writebacks"]) else -1
        got = outputs[i] if i < len(outputs) else arrays[source] if source >= 0 else None
        if got is not None and want is not None:
            assert_agrees(got.asnumpy(), want, loosest(use, dtype), f"{use} {dtype} train={train} output {i}")


def loosest(use: Use, dtype: str) -> str:
    """The least precise dtype among the inputs, which limits the precision of the results."""
    order = ("bfloat16", "float16", "float32", "float64")
    return min((d for d in use.dtypes(dtype) if d in FLOATS), key=order.index, default=dtype)


# ----------------------------------------------------------------------------------------------------------- gradients
def projected(
    use: Use, values: list[np.ndarray], weights: list[np.ndarray], wanted: list[int], train: bool, order: int
):
    """Returns the sum of weighted outputs (order 0) or of weighted first gradients (order 1), and its gradients."""
    mx.random.seed(11)
    arrays = arrays_of(values)
    for i in wanted:
        arrays[i].attach_grad()
    with mx.autograd.record(train_mode=train):
        outputs = [out for out in call(use, arrays) if np.dtype(out.dtype).name in FLOATS]
        heads = [mx.nd.array(w, dtype=w.dtype) for w in weights[: len(outputs)]]
        if order == 0:
            total = sum((out * head).sum().astype("float64") for out, head in zip(outputs, heads, strict=True))
        else:
            grads = mx.autograd.grad(outputs, [arrays[i] for i in wanted], heads, create_graph=True, train_mode=train)
            pairs = zip(grads, weights[len(outputs) :], strict=True)
            total = sum((g * mx.nd.array(w, dtype=w.dtype)).sum().astype("float64") for g, w in pairs)
    if _core.needs_gradient(total):  # otherwise it does not depend on the inputs, whose gradients stay zero
        total.backward(train_mode=train)
    return float(total.asscalar()), [arrays[i].grad.asnumpy() for i in wanted]


def check_gradient(use: Use, train: bool, order: int) -> None:
    """Compares gradients with central differences along random directions and single coordinates, per input."""
    dtype = use.gradient_dtype()
    values, wanted = use.inputs(dtype), use.differentiated()
    rng = np.random.default_rng(7)
    outputs = [out for out in call(use, arrays_of(values)) if np.dtype(out.dtype).name in FLOATS]
    assert wanted and outputs
    weights = [rng.normal(size=out.shape).astype(out.dtype) for out in outputs]
    if order == 1:
        weights += [rng.normal(size=values[i].shape).astype(values[i].dtype) for i in wanted]
    _, grads = projected(use, values, weights, wanted, train, order)
    exact_digits = dtype == "float64" and all(np.dtype(out.dtype).name == "float64" for out in outputs)
    step, tolerance = (1e-5, 2e-5) if exact_digits else (1e-2, 3e-2)
    scale = max((float(np.abs(g).max(initial=0)) for g in grads), default=0.0)
    for i, grad in zip(wanted, grads, strict=True):
        if not values[i].size:
            continue
        directions = [rng.normal(size=grad.shape)]
        for place in rng.choice(grad.size, min(grad.size, 3), replace=False):
            directions.append(np.eye(1, grad.size, place).reshape(grad.shape))
        for direction in directions:
            ends = []
            for sign in (1, -1):
                moved = list(values)
                moved[i] = (values[i] + sign * step * direction).astype(values[i].dtype)
                ends.append(projected(use, moved, weights, wanted, train, order)[0])
            numeric = (ends[0] - ends[1]) / (2 * step)
            exact = float((grad * direction).sum())
            allowed = tolerance * max(abs(numeric), scale * float(np.abs(direction).max()), 1.0)
            assert abs(numeric - exact) <= allowed, (
                f"{use}, input {use.use['inputs'][i]!r}, order {order + 1}, train={train}: "
                f"gradient along a direction is {exact:.8g}, central differences say {numeric:.8g}"
            )


def differentiable(op: dict[str, Any]) -> bool:
    if not op["differentiable"] or op["stops_gradient"] or op["name"].startswith(RANDOM_PREFIXES):
        return False
    return op["name"] not in INTEGER_OPERATORS


def loadable(op: dict[str, Any]) -> bool:
    """True if graph files may use the operator; gradients and passes make the others, which trust their makers."""
    return not op["subgraphs"] and (not op["internal"] or op["name"].startswith("_advanced_index"))


CHECKED = [use for use in uses(differentiable) if use.sample["check_gradient"]]


def train_modes(use: Use) -> list[bool]:
    return [False, True] if use.described["train_sensitive"] else [False]


@pytest.mark.parametrize("use", CHECKED, ids=str)
def test_gradient_agrees_with_central_differences(use: Use):
    for train in train_modes(use):
        check_gradient(use, train, 0)


@pytest.mark.parametrize("use", CHECKED, ids=str)
def test_gradient_of_gradient_agrees_with_central_differences(use: Use):
    for train in train_modes(use):
        check_gradient(use, train, 1)


def test_a_sample_without_gradient_check_says_why():
    silent = [str(use) for use in uses(differentiable) if not use.sample["check_gradient"] and not use.sample["note"]]
    assert silent == []


# --------------------------------------------------------------------------------- graphs: compiled, saved and loaded
def graph_of(use: Use) -> Any:
    names = use.use["inputs"]
    return call(use, [mx.sym.var(f"in{i}_{name}") for i, name in enumerate(names)], symbolic=True)[0]


def in_graph_order(graph: Any, arrays: list[Any]) -> list[Any]:
    """Orders arrays by the numbers in the names of graph_of()."""
    return [arrays[int(name[2 : name.index("_")])] for name in graph.list_inputs()]


@pytest.mark.parametrize("use", uses(loadable), ids=str)
def test_imperative_compiled_and_loaded_agree(use: Use):
    values = use.inputs("float32" if "float32" in use.described["dtypes"] else use.described["dtypes"][0])
    graph = graph_of(use)
    text = graph.tojson(remove_amp_cast=False)
    loaded = mx.sym.load_json(text)
    assert loaded.tojson(remove_amp_cast=False) == text
    assert loaded.list_arguments() == graph.list_arguments()

    mx.random.seed(3)
    plain = [out.asnumpy() for out in call(use, arrays_of(values))]
    for which in (graph, loaded):
        mx.random.seed(3)
        results = _core.CachedOp(which)(*in_graph_order(which, arrays_of(values)))
        results = results if isinstance(results, list) else [results]
        assert len(results) == len(plain)
        for i, (got, want) in enumerate(zip(results, plain, strict=True)):
            assert np.dtype(got.dtype) == want.dtype
            if use.described["random"]:
                assert got.shape == want.shape  # draws differ: a graph has its own random stream
                continue
            assert_agrees(got.asnumpy(), want, loosest(use, "float32"), f"{use} compiled, output {i}")


@pytest.mark.parametrize(
    "use", [use for use in CHECKED if not use.described["internal"] and not use.described["random"]], ids=str
)
def test_compiled_gradients_agree_with_imperative_ones(use: Use):
    dtype = "float32" if "float32" in use.described["dtypes"] else use.gradient_dtype()
    values, wanted = use.inputs(dtype), use.differentiated()
    graph = graph_of(use)
    compiled = _core.CachedOp(graph)

    def gradients(run: Any) -> list[np.ndarray]:
        mx.random.seed(3)
        arrays = arrays_of(values)
        for i in wanted:
            arrays[i].attach_grad()
        with mx.autograd.record(train_mode=use.described["train_sensitive"]):
            outputs = run(arrays)
            outputs = outputs if isinstance(outputs, list) else [outputs]
            heads = [out for out in outputs if np.dtype(out.dtype).name in FLOATS]
            total = sum((out * out.detach()).sum() for out in heads)
        total.backward()
        return [arrays[i].grad.asnumpy() for i in wanted]

    for i, (got, want) in enumerate(
        zip(
            gradients(lambda arrays: compiled(*in_graph_order(graph, arrays))),
            gradients(lambda a: call(use, a)),
            strict=True,
        )
    ):
        assert_agrees(got, want, loosest(use, dtype), f"{use} compiled, gradient {i}")


@pytest.mark.parametrize(
    "use",
    [
        use
        for use in uses(lambda op: not op["random"] and not op["data_dependent_shape"])
        if max(use.use["writebacks"], default=-1) < 0  # others write into their inputs
    ],
    ids=str,
)
def test_out_receives_the_results(use: Use):
    dtype = "float32" if "float32" in use.described["dtypes"] else use.described["dtypes"][0]
    values = use.inputs(dtype)
    expected = call(use, arrays_of(values))
    targets = [mx.nd.full(out.shape, 1, dtype=out.dtype) for out in expected]
    returned = call(use, arrays_of(values), out=targets if len(targets) > 1 else targets[0])
    for got, target, want in zip(returned, targets, expected, strict=True):
        assert got is target
        np.testing.assert_array_equal(wide(target.asnumpy()), wide(want.asnumpy()))


# ------------------------------------------------------------------------------------------------------------ inference
@pytest.mark.parametrize("use", uses(lambda op: not op["data_dependent_shape"] and not op["subgraphs"]), ids=str)
def test_inference_agrees_with_the_results(use: Use):
    dtype = "float32" if "float32" in use.described["dtypes"] else use.described["dtypes"][0]
    values = use.inputs(dtype)
    graph = graph_of(use)
    outputs = call(use, arrays_of(values))
    names = [f"in{i}_{name}" for i, name in enumerate(use.use["inputs"])]
    _, shapes, _ = graph.infer_shape(**{n: v.shape for n, v in zip(names, values, strict=True)})
    assert shapes == [out.shape for out in outputs]
    _, kinds, _ = graph.infer_type(**{n: v.dtype for n, v in zip(names, values, strict=True)})
    assert [np.dtype(kind) for kind in kinds] == [np.dtype(out.dtype) for out in outputs]


@pytest.mark.parametrize("use", uses(lambda op: bool(op["inputs"]) and loadable(op)), ids=str)
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")  # warnings of the references
def test_zero_sizes_give_empty_results_or_an_error(use: Use):
    dtype = "float32" if "float32" in use.described["dtypes"] else use.described["dtypes"][0]
    shapes = use.sample["shapes"]
    for size in sorted({size for shape in shapes for size in shape}):
        emptied = [tuple(0 if s == size else s for s in shape) for shape in shapes]
        values = use.inputs(dtype, emptied)
        try:
            outputs = [out.asnumpy() for out in call(use, arrays_of(values))]
        except mx.MXNetError:
            continue
        if use.op not in REFERENCES or use.described["random"]:
            continue
        try:
            with np.errstate(all="ignore"):
                expected = reference_outputs(use, values)
        except (ValueError, IndexError, ZeroDivisionError, TypeError):
            continue  # NumPy has no answer
        for got, want in zip(outputs, expected, strict=False):
            if want is not None:
                assert_agrees(got, want, loosest(use, dtype), f"{use} with {size} -> 0")


# ----------------------------------------------------------------------------------------------------------------- docs
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if not op["internal"]])
def test_everything_is_documented(name: str):
    op = OPS[name]
    assert len(op["doc"].strip()) >= 3, "the operator says what it does"
    assert op["samples"] or is_random(op)
    assert all(item["doc"].strip() for item in op["inputs"]), "every input says what it is"
    assert all(doc.strip() for _, doc in op["outputs"]), "every output says what it is"
    assert [f["name"] for f in op["fields"] if not f["hidden"] and not f["doc"].strip()] == []
    made = function(name)
    assert op["doc"].split("\n")[0][:40] in made.__doc__
    arguments = list(inspect.signature(made).parameters)
    for field in op["fields"]:
        assert field["name"] in arguments
    assert numpy_dtype(op["dtypes"][0]) is not None
