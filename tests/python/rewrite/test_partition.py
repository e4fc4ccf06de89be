"""partition(): the sets of nodes that a backend gets, its compiled functions, and unchanged results."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, ops, run, variables
from rewrite.numpy_backend import FUNCTIONS, NumPyBackend
from rewrite.random_rules import random_graph


class Block(mx.gluon.HybridBlock):
    """A block that calls a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, *inputs):
        return self.function(F, *inputs)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def array(value: np.ndarray) -> Any:
    return mx.nd.array(value, dtype=value.dtype)


# ---------------------------------------------------------------------------------------------------------------- sets
def names(sets: list[list[Any]]) -> list[list[str]]:
    return [[node.name for node in nodes] for nodes in sets]


def chain(*steps: str) -> Any:
    value = mx.sym.var("x")
    for number, step in enumerate(steps):
        value = getattr(mx.sym, step)(value, name=f"{step}{number}")
    return value


def test_a_chain_is_one_set() -> None:
    graph = graph_of(chain("tanh", "relu", "abs"))
    assert names(rw.convex_sets(graph, ["tanh", "relu", "abs"])) == [["tanh0", "relu1", "abs2"]]


def test_paths_that_leave_and_reenter_cut_a_set() -> None:
    x = mx.sym.var("x")
    a = mx.sym.tanh(x, name="a")
    outside = mx.sym.sort(a, name="outside")
    b = mx.sym.elemwise_add(a, outside, name="b")
    graph = graph_of(b)
    assert names(rw.convex_sets(graph, ["tanh", "elemwise_add"])) == [["a"], ["b"]]


def test_outside_work_on_graph_inputs_cuts_no_set() -> None:
    x = mx.sym.var("x")
    mask = mx.sym.sort(x, name="mask")
    a = mx.sym.tanh(x, name="a")
    b = mx.sym.elemwise_mul(a, mask, name="b")
    graph = graph_of(b)
    assert names(rw.convex_sets(graph, ["tanh", "elemwise_mul"])) == [["a", "b"]]


def test_two_convex_sets_that_would_read_each_other_are_not_made() -> None:
    x, y = variables("x", "y")
    a1, b2 = mx.sym.tanh(x, name="a1"), mx.sym.relu(y, name="b2")
    b1 = mx.sym.relu(mx.sym.sort(a1), name="b1")
    a2 = mx.sym.tanh(mx.sym.sort(b2), name="a2")
    joined_a, joined_b = mx.sym.elemwise_add(a1, a2, name="ja"), mx.sym.elemwise_sub(b1, b2, name="jb")
    graph = graph_of(mx.sym.Group([joined_a, joined_b]))
    supported = ["tanh", "relu", "elemwise_add", "elemwise_sub"]
    check_sets(graph, rw.convex_sets(graph, supported), lambda node: node.op in supported)


def test_a_set_that_levels_would_cut_is_joined_again() -> None:
    x, y = variables("x", "y")
    far = mx.sym.tanh(mx.sym.sort(mx.sym.tanh(mx.sym.sort(mx.sym.tanh(y, name="c1")), name="c2")), name="c3")
    near = mx.sym.tanh(mx.sym.tanh(x, name="n1"), name="n2")
    graph = graph_of(mx.sym.elemwise_add(near, mx.sym.sort(far), name="n3"))
    assert ["n1", "n2", "n3"] in names(rw.convex_sets(graph, ["tanh", "elemwise_add"]))


def test_draws_operators_of_users_and_updates_of_statistics_are_never_in_a_set() -> None:
    x, gamma, beta, mean, var = variables("x", "gamma", "beta", "mean", "var")
    drawn = mx.sym.Dropout(x, p=0.5, name="drop")
    normed = mx.sym.BatchNorm(drawn, gamma, beta, mean, var, name="norm")
    graph = rw.graph(mx.sym.tanh(normed, name="tanh"), {"x": (2, 3)}, train=True)
    assert names(rw.convex_sets(graph, lambda node: True)) == [["tanh"]]
    predicting = rw.graph(mx.sym.tanh(normed, name="tanh"), {"x": (2, 3)})
    assert names(rw.convex_sets(predicting, lambda node: True))[0][-2:] == ["norm", "tanh"]


def check_sets(graph: Any, sets: list[list[Any]], supports: Any) -> None:
    """Checks that sets are disjoint, supported and connected, and that merging each set makes no cycle."""
    set_of: dict[Any, int] = {}
    for number, nodes in enumerate(sets):
        for node in nodes:
            assert node not in set_of
            assert supports(node)
            set_of[node] = number
    for number, nodes in enumerate(sets):
        reached, pending = {nodes[0]}, [nodes[0]]
        while pending:
            node = pending.pop()
            near = [entry.node for entry in node.inputs]
            near += [
                client for entry in node.outputs for client, _ in graph.clients(entry) if isinstance(client, rw.Node)
            ]
            for other in near:
                if set_of.get(other) == number and other not in reached:
                    reached.add(other)
                    pending.append(other)
        assert reached == set(nodes)
    point = {node: ("set", set_of[node]) if node in set_of else ("node", i) for i, node in enumerate(graph.nodes)}
    reads: dict[Any, set[Any]] = {key: set() for key in point.values()}
    for node in graph.nodes:
        reads[point[node]] |= {point[entry.node] for entry in node.inputs} - {point[node]}
    while reads:  # removes the points that read no remaining point
        free = [key for key, sources in reads.items() if not sources & reads.keys()]
        assert free, "the sets read each other in a circle"
        for key in free:
            del reads[key]


@pytest.mark.parametrize("seed", range(60))
def test_sets_of_random_graphs_are_convex_and_results_stay(seed) -> None:
    draw = random.Random(seed)
    graph = random_graph(draw, draw.randint(1, 40))
    chosen = {name for name in FUNCTIONS if draw.random() < 0.7}
    doomed = {node.name for node in graph.nodes if draw.random() < 0.1}

    def supports(node: Any) -> bool:
        return node.op in chosen and node.name not in doomed

    check_sets(graph, rw.convex_sets(graph, supports), supports)
    rng = np.random.default_rng(seed)
    inputs = {entry.node.name: rng.uniform(-1, 1, (2, 3)).astype("float32") for entry in graph.inputs}
    before = run(graph, **inputs)
    backend = NumPyBackend(views=seed % 2 == 0)
    rewriter = rw.Partition(supports, draw.randint(1, 3), backend, name="numpy")
    report = rewriter.apply(graph)
    assert not report.warnings
    graph.check()
    assert ops(graph).count("_subgraph") == len(backend.seen)
    for old, new in zip(before, run(graph, **inputs), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-5)
    assert backend.runs >= len(backend.seen)


def test_a_long_chain_is_partitioned_quickly() -> None:
    value = mx.sym.var("x")
    for _ in range(3000):
        value = mx.sym.tanh(value)
    graph = graph_of(value)
    (nodes,) = rw.convex_sets(graph, ["tanh"])
    assert len(nodes) == 3000


# -------------------------------------------------------------------------------------------------------- whole blocks
def test_a_block_runs_by_the_backend_and_says_so() -> None:
    backend = NumPyBackend()
    rw.partition(backend.supports, 2, backend, name="numpy")
    net = Block(lambda F, x: F.tanh(F.negative(x)) * 2 + 1)
    net.hybridize()
    x = normal(2, 3)
    np.testing.assert_allclose(net(array(x)).asnumpy(), np.tanh(-x) * 2 + 1, rtol=1e-6)
    assert backend.seen == [["negative", "tanh", "_mul_scalar", "_plus_scalar"]]
    assert "numpy" in net.pass_report()
    assert "numpy[negative tanh _mul_scalar _plus_scalar]" in net.plan_text()


def test_sets_that_are_too_small_stay() -> None:
    backend = NumPyBackend()
    rw.partition(backend.supports, 3, backend, name="numpy")
    net = Block(lambda F, x: F.tanh(F.negative(x)))
    net.hybridize()
    net(array(normal(2, 3)))
    assert backend.seen == []


def test_a_backend_that_declines_leaves_the_set() -> None:
    rw.partition(["tanh"], 1, lambda graph: None, name="declines")
    net = Block(lambda F, x: F.tanh(x))
    net.hybridize()
    np.testing.assert_allclose(net(array(normal(2))).asnumpy(), np.tanh(normal(2)), rtol=1e-6)
    assert "_subgraph" not in net.plan_text()


@pytest.mark.parametrize("gradient", [False, True])
def test_gradients_stay(gradient) -> None:
    backend = NumPyBackend(gradient=gradient)
    rw.partition(backend.supports, 1, backend, name="numpy", gradient=gradient)
    net = Block(lambda F, x, w: F.sum(F.tanh(F.square(x) * w) * w + x))
    net.hybridize()
    x, w = array(normal(2, 3)), array(normal(2, 3, seed=1))
    for value in (x, w):
        value.attach_grad()
    with mx.autograd.record():
        y = net(x, w)
    y.backward()
    xs, ws = x.asnumpy().astype("float64"), w.asnumpy().astype("float64")
    t = np.tanh(xs**2 * ws)
    np.testing.assert_allclose(y.asnumpy(), np.sum(t * ws + xs), rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), (1 - t**2) * ws * ws * 2 * xs + 1, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(w.grad.asnumpy(), t + (1 - t**2) * ws * xs**2, rtol=1e-4, atol=1e-5)
    assert len(backend.seen) >= 1


def test_no_set_holds_forward_and_backward_nodes() -> None:
    backend = NumPyBackend()
    rw.partition(backend.supports, 1, backend, name="numpy")
    net = Block(lambda F, x: F.square(F.square(x)))
    net.hybridize()
    x = array(normal(2, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 4 * normal(2, 3) ** 3, rtol=1e-4, atol=1e-6)
    assert ["square", "square"] in backend.seen


@pytest.mark.parametrize("gradient", [False, True])
def test_bodies_of_loops_and_branches_are_partitioned(gradient) -> None:
    backend = NumPyBackend(gradient=gradient)
    rw.partition(backend.supports, 2, backend, name="numpy", gradient=gradient)

    def function(F, x):
        rows, last = F.contrib.foreach(
            lambda row, s: (F.tanh(F.square(row) + s), F.tanh(s * row)), x, F.zeros((3,)) + 0.5
        )
        return F.contrib.cond(F.sum(x) > 0, lambda: F.tanh(F.square(rows)), lambda: F.square(F.tanh(rows))) + last

    net = Block(function)
    data = normal(4, 3)
    x = array(data)
    x.attach_grad()
    results = []
    for hybrid in (False, True):
        net.hybridize(hybrid)
        with mx.autograd.record():
            y = net(x)
        y.backward()
        results.append((y.asnumpy(), x.grad.asnumpy().copy()))
    for plain, other in zip(*results, strict=True):
        np.testing.assert_allclose(other, plain, rtol=1e-4, atol=1e-5)
    assert any("square" in part and "tanh" in part for part in backend.seen)
    net(x).wait_to_read()


def test_a_new_size_is_compiled_again_unless_the_backend_serves_all() -> None:
    for all_sizes, parts in ((False, 3), (True, 1)):
        backend = NumPyBackend(all_sizes=all_sizes)
        rewriter = rw.partition(backend.supports, 1, backend, name="numpy")
        net = Block(lambda F, x: F.tanh(F.square(x)))
        net.hybridize()
        for rows in (2, 5, 7, 5):
            x = normal(rows, 3)
            np.testing.assert_allclose(net(array(x)).asnumpy(), np.tanh(x**2), rtol=1e-5)
        assert len(backend.seen) == parts
        rw.unregister(rewriter)


def test_scalars_and_empty_arrays() -> None:
    backend = NumPyBackend()
    rw.partition(backend.supports, 1, backend, name="numpy")
    for shape in ((), (0, 3), (1,)):
        with mx.util.np_shape(True):
            net = Block(lambda F, x: F.tanh(F.square(x)))
            net.hybridize()
            x = normal(*shape) if shape else np.float32(0.5).reshape(())
            got = net(array(np.asarray(x))).asnumpy()
        assert got.shape == shape
        np.testing.assert_allclose(got, np.tanh(np.square(x)), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "bfloat16"])
def test_element_types(dtype) -> None:
    backend = NumPyBackend()
    rw.partition(backend.supports, 1, backend, name="numpy")
    net = Block(lambda F, x: F.negative(F.square(x)))
    net.hybridize()
    x = mx.nd.array([1, 2, -3]).astype(dtype)
    got = net(x)
    assert str(got.dtype) == str(x.dtype)
    np.testing.assert_array_equal(got.astype("float32").asnumpy(), [-1, -4, -9])
    assert backend.runs == 1


def test_constants_are_part_of_compiled_sets() -> None:
    backend = NumPyBackend()
    graph = graph_of(mx.sym.var("x") + 0.0)
    factor = graph.constant(array(np.arange(6, dtype="float32").reshape(2, 3)))
    graph.set_output(0, graph.add("elemwise_mul", graph.inputs[0], factor)[0])
    rw.Partition(["elemwise_mul"], 1, backend, name="numpy").apply(graph)
    assert backend.shapes == [[(2, 3)]]
    x = normal(2, 3)
    np.testing.assert_allclose(run(graph, x=x)[0], x * np.arange(6).reshape(2, 3), rtol=1e-6)


def test_exported_files_hold_the_operators(tmp_path) -> None:
    backend = NumPyBackend()
    rewriter = rw.partition(backend.supports, 1, backend, name="numpy")
    net = Block(lambda F, x: F.tanh(F.square(x)))
    net.hybridize()
    x = normal(2, 3)
    net(array(x))
    net.export(str(tmp_path / "net"))
    rw.unregister(rewriter)
    text = (tmp_path / "net-symbol.json").read_text()
    assert "_subgraph" not in text
    loaded = mx.gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"])
    np.testing.assert_allclose(loaded(array(x)).asnumpy(), np.tanh(x**2), rtol=1e-5)


def test_a_rewritten_graph_is_not_read_from_a_file() -> None:
    graph = graph_of(chain("tanh"))
    rw.Partition(["tanh"], 1, lambda part: np.tanh, name="numpy").apply(graph)
    with pytest.raises(mx.base.MXNetError, match="'_subgraph' is internal"):
        mx.sym.load_json(graph.symbol().tojson())


def test_a_backend_for_blocks_that_ask_for_it() -> None:
    backend = NumPyBackend()
    rw.partition(backend.supports, 1, backend, name="numpy_on_demand", tags=())
    x = array(normal(2, 3))
    net = Block(lambda F, x: F.tanh(F.square(x)))
    net.hybridize()
    net(x)
    assert backend.seen == []
    net.optimize_for(x, backend="numpy_on_demand")
    net(x)
    assert backend.seen == [["square", "tanh"]]
    with pytest.raises(ValueError, match="numpy_on_demand"):
        net.hybridize(backend="nowhere")


def test_queries_leave_a_backend_out() -> None:
    backend = NumPyBackend()
    rw.partition(backend.supports, 1, backend, name="numpy")
    net = Block(lambda F, x: F.tanh(F.square(x)))
    net.hybridize(exclude=["numpy"])
    net(array(normal(2)))
    assert backend.seen == []


# ------------------------------------------------------------------------------------------------------- native code
class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int),
        ("dtype", ctypes.c_int),
    )


class Call(ctypes.Structure):
    _fields_ = (
        ("parameters", ctypes.c_void_p),
        ("num_inputs", ctypes.c_size_t),
        ("inputs", ctypes.POINTER(Tensor)),
        ("num_outputs", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(Tensor)),
        ("train", ctypes.c_int),
    )


FUNCTION = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Call))


def doubled(call: Any) -> None:
    """Writes twice the input through pointers, like compiled code."""
    source, target = call.contents.inputs[0], call.contents.outputs[0]
    size = int(np.prod([source.shape[i] for i in range(source.ndim)]))
    floats = ctypes.POINTER(ctypes.c_float)
    from_array = np.ctypeslib.as_array(ctypes.cast(source.data, floats), (size,))
    np.ctypeslib.as_array(ctypes.cast(target.data, floats), (size,))[:] = 2 * from_array


def test_native_functions_run_and_report_errors() -> None:
    functions = {"good": FUNCTION(doubled), "bad": FUNCTION(lambda call: b"no more beans")}
    for name, function in functions.items():
        rw.partition(["tanh"], 1, lambda graph, f=function: rw.NativeCode(f), name=name)
        net = Block(lambda F, x: F.tanh(x))
        net.hybridize()
        x = normal(4, 5)
        if name == "good":
            np.testing.assert_allclose(net(array(x)).asnumpy(), 2 * x)
            assert "_native_subgraph" in net.plan_text()
        else:
            with pytest.raises(mx.base.MXNetError, match="backend 'bad': no more beans"):
                net(array(x)).asnumpy()
        rw.unregister(name)


def test_native_gradients() -> None:
    functions = [FUNCTION(doubled), FUNCTION(doubled)]
    rw.partition(["tanh"], 1, lambda graph: rw.NativeCode(*functions), name="double", gradient=True)
    net = Block(lambda F, x: F.sum(F.tanh(x) * 3))
    net.hybridize()
    x = array(normal(4))
    x.attach_grad()
    with mx.autograd.record():
        y = net(x)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), 6 * normal(4).sum(), rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), np.full(4, 6.0))


# --------------------------------------------------------------------------------------------------------------- errors
def raising(error: Exception) -> Any:
    def function(*arguments: Any) -> Any:
        raise error

    return function


@pytest.mark.parametrize("part", ["supports", "make", "result", "backward"])
def test_an_error_of_the_backend_leaves_the_graph_with_a_warning(part, capfd, monkeypatch) -> None:
    supports, make, gradient = ["tanh"], (lambda graph: np.tanh), False
    if part == "supports":
        supports = raising(RuntimeError("unwell"))
    elif part == "make":
        make = raising(RuntimeError("unwell"))
    elif part == "result":
        make = lambda graph: "unwell"  # noqa: E731
    else:
        gradient = True
    rw.partition(supports, 1, make, name="fragile", gradient=gradient)
    x = normal(3)
    net = Block(lambda F, x: F.tanh(x))
    net.hybridize()
    monkeypatch.setenv("HYBRIDNET_ON_REWRITE", "warn")
    np.testing.assert_allclose(net(array(x)).asnumpy(), np.tanh(x), rtol=1e-6)
    assert "fragile" in net.pass_report()
    assert "_subgraph" not in net.plan_text()


def test_the_warning_names_the_backend_and_the_line() -> None:
    graph = graph_of(chain("tanh", "relu"))
    before = graph.fingerprint()
    report = rw.Partition(["tanh"], 1, raising(RuntimeError("unwell")), name="fragile").apply(graph)
    assert graph.fingerprint() == before
    (warning,) = report.warnings
    assert "fragile" in warning and "unwell" in warning and "test_partition.py" in warning


def test_errors_of_a_run_name_the_backend() -> None:
    wrong: dict[str, Any] = {
        "unwell": raising(RuntimeError("unwell")),
        r"expected 1 outputs, got 2|1 outputs": lambda x: [x, x],
        r"another shape or dtype": lambda x: x[:1],
        r"shape or dtype": lambda x: x.astype("float64"),
    }
    for text, function in wrong.items():
        rw.partition(["tanh"], 1, lambda graph, f=function: f, name="fragile")
        net = Block(lambda F, x: F.tanh(x))
        net.hybridize()
        with pytest.raises(mx.base.MXNetError, match=text) as caught:
            net(array(normal(3))).asnumpy()
        assert "fragile" in str(caught.value)
        rw.unregister("fragile")


def test_a_view_that_is_kept_is_an_error_and_a_copy_is_not() -> None:
    for views in (True, False):
        kept: list[np.ndarray] = []

        def forward(x: np.ndarray, kept: list[np.ndarray] = kept) -> np.ndarray:
            kept.append(x)
            return np.tanh(x)

        rw.partition(["tanh"], 1, lambda graph, f=forward, v=views: rw.Compiled(f, views=v), name="keeper")
        net = Block(lambda F, x: F.tanh(x))
        net.hybridize()
        x = normal(3)
        if views:
            with pytest.raises(mx.base.MXNetError, match="kept beyond the call"):
                net(array(x)).asnumpy()
            with pytest.raises(ValueError, match="read-only"):
                kept[0][0] = 1
            kept.clear()
        else:
            net(array(x)).asnumpy()
            np.testing.assert_array_equal(kept[0], x)
        rw.unregister("keeper")


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="min_nodes"):
        rw.partition(["tanh"], 0, lambda graph: None, name="p")
    with pytest.raises(TypeError, match="make"):
        rw.partition(["tanh"], 1, None, name="p")
    with pytest.raises(TypeError, match="supports"):
        rw.partition("tanh", 1, lambda graph: None, name="p")
    with pytest.raises(mx.base.MXNetError, match="tahn"):
        rw.partition(["tahn"], 1, lambda graph: None, name="p")
    with pytest.raises(TypeError, match="forward"):
        rw.Compiled(3)
    with pytest.raises(TypeError, match="address"):
        rw.NativeCode("main")
    with pytest.raises(ValueError, match="no address"):
        rw.NativeCode(0)
    assert "p" not in rw.backends()


def test_an_input_whose_shape_is_pending() -> None:
    backend = NumPyBackend()
    rw.partition(backend.supports, 1, backend, name="numpy")
    net = Block(lambda F, x: F.tanh(F.square(x)))
    net.hybridize()
    x = normal(6)
    chosen = mx.nd.contrib.boolean_mask(array(x), array((x > 0).astype("float32")))
    np.testing.assert_allclose(net(chosen).asnumpy(), np.tanh(x[x > 0] ** 2), rtol=1e-5)
