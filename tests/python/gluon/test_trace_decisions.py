"""Decisions of Python code in a trace are never frozen silently: they are refused, traced again, or warned of."""

import collections
import contextlib
import ctypes
import dataclasses
import functools
import itertools
import json
import math
import random
import types
import warnings
from types import SimpleNamespace

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon, nd
from hybridnet.errors import TraceError

POSITIVE, NEGATIVE = [1.0, 2.0], [-1.0, -2.0]


def swallow_exception(question):
    try:
        return bool(question())
    except Exception:
        return False


def swallow_base_exception(question):
    try:
        return bool(question())
    except BaseException:
        return False


def swallow_bare(question):
    try:
        return bool(question())
    except:  # noqa: E722
        return False


def swallow_type_error(question):
    try:
        return bool(question())
    except TypeError:
        return False


def suppress(question):
    with contextlib.suppress(Exception):
        return bool(question())
    return False


def swallow_and_translate(question):
    try:
        return bool(question())
    except Exception as error:
        raise KeyError("no value") from error


SWALLOWERS = [swallow_exception, swallow_base_exception, swallow_bare, swallow_type_error, suppress]
QUESTIONS = {
    "bool": lambda x: x.sum() > 0,
    "float": lambda x: float(x.sum()) > 0,
    "int": lambda x: int(x.sum()) > 0,
    "asscalar": lambda x: x.sum().asscalar() > 0,
    "item": lambda x: x.sum().item() > 0,
    "asnumpy": lambda x: x.asnumpy().sum() > 0,
    "tolist": lambda x: sum(x.tolist()) > 0,
    "array": lambda x: np.asarray(x).sum() > 0,
    "in": lambda x: 1.0 in x,
    "index": lambda x: [0, 1][(x.sum() > 0).astype("int32")],
    "iter": lambda x: next(float(v) for v in x) > 0,
    "format": lambda x: f"{x.sum():.1f}"[0] != "-",
    "numpy function": lambda x: np.add(x, np.ones(2)).sum() > 0,
}


def make_swallowing(swallow, question):
    class Net(gluon.HybridBlock):
        def forward(self, x):
            if swallow(lambda: question(x)):
                return x * 2
            return -x

    return Net()


def results(net):
    return [net(nd.array(values)).asnumpy().tolist() for values in (POSITIVE, NEGATIVE, POSITIVE)]


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("swallow", [*SWALLOWERS, swallow_and_translate])
def test_swallowed_refusals_run_imperatively(swallow, question):
    net = make_swallowing(swallow, question)
    expected = results(net)
    for autograph in (False, True):
        net.hybridize(autograph=autograph)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert results(net) == expected


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("swallow", [*SWALLOWERS, swallow_and_translate])
def test_swallowed_refusals_are_errors_when_strict(swallow, question):
    net = make_swallowing(swallow, question)
    net.hybridize(strict=True, autograph=False)
    for _ in range(2):
        with pytest.raises(TraceError, match="test_trace_decisions"):
            net(nd.array(POSITIVE))


# With the source converted, these ask for no value: the decision becomes a branch of the graph.
CONVERTED = ["bool", "float", "asscalar", "item", "in", "iter"]


@pytest.mark.parametrize("swallow", [*SWALLOWERS, swallow_and_translate])
def test_by_default_questions_that_can_be_converted_become_a_graph(swallow):
    for name in CONVERTED:
        net = make_swallowing(swallow, QUESTIONS[name])
        expected = results(net)
        net.hybridize(strict=True)
        assert results(net) == expected, name
        graph = net._last_graph
        assert results(net) == expected and net._last_graph is graph, name


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name not in CONVERTED])
def test_by_default_other_swallowed_refusals_are_errors_when_strict(name):
    for swallow in (*SWALLOWERS, swallow_and_translate):
        net = make_swallowing(swallow, QUESTIONS[name])
        net.hybridize(strict=True)
        for _ in range(2):
            with pytest.raises(TraceError, match=r"(?s)^\[HN10[08]\] .*test_trace_decisions"):
                net(nd.array(POSITIVE))


def test_swallowed_refusals_in_hybrid_forward_are_errors():
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x * 2 if swallow_exception(lambda: x.sum() > 0) else -x

    net = Net()
    expected = results(net)
    net.hybridize(autograph=False)
    with pytest.raises(TraceError):
        net(nd.array(POSITIVE))
    net.hybridize()
    assert results(net) == expected


def test_swallowed_refusals_of_children_and_around_children():
    class Child(gluon.HybridBlock):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else -x

    class Parent(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.child = Child()

        def forward(self, x):
            try:
                return self.child(x)
            except Exception:
                return x * 0

    net = Parent()
    expected = results(net)
    net.hybridize(autograph=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert results(net) == expected
    net.hybridize(strict=True, autograph=False)
    with pytest.raises(TraceError):
        net(nd.array(POSITIVE))
    net.hybridize(strict=True)
    assert results(net) == expected


@pytest.mark.parametrize("construct", ["foreach", "while_loop", "cond"])
def test_swallowed_refusals_in_bodies_are_errors(construct):
    def body(x):
        return x * 2 if swallow_exception(lambda: x.sum() > 0) else -x

    class Net(gluon.HybridBlock):
        def forward(self, x):
            if construct == "foreach":
                return nd.contrib.foreach(lambda d, s: (body(d), s), x, [x.sum()])[0]
            if construct == "while_loop":
                return nd.contrib.while_loop(lambda i: i.sum() < 8, lambda i: (body(i), i + 1), x, 4)[0]
            return nd.contrib.cond(x.sum() > 0, lambda: body(x), lambda: x)

    net = Net()
    plain = net(nd.array(POSITIVE)), net(nd.array(NEGATIVE))
    net.hybridize(strict=True, autograph=False)
    with pytest.raises(TraceError):
        net(nd.array(POSITIVE))
    net.hybridize(strict=True)
    for values, wanted in zip((POSITIVE, NEGATIVE), plain, strict=True):
        np.testing.assert_array_equal(net(nd.array(values)).asnumpy(), wanted.asnumpy())


def test_refusals_in_bodies_of_symbols_are_errors():
    data, state = mx.sym.var("data"), mx.sym.var("state")
    with pytest.raises(TraceError):
        mx.sym.contrib.foreach(lambda d, s: (d * 2 if swallow_exception(lambda: d.sum() > 0) else -d, s), data, state)


# ------------------------------------------------------------------------------------------------- arrays from outside
READS = {
    "truth": lambda a: bool(a.sum() > 0),
    "asscalar": lambda a: (a.sum().asscalar if type(a) is nd.NDArray else a.sum().item)() > 0,
    "asnumpy": lambda a: a.asnumpy().sum() > 0,
    "float": lambda a: float(a.sum()) > 0,
    "item": lambda a: a.sum().item() > 0,
    "numpy": lambda a: np.asarray(a).sum() > 0,
    "tolist": lambda a: sum(a.tolist()) > 0,
}


@pytest.mark.parametrize("interface", [mx.nd, mx.np], ids=["nd", "np"])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_values_of_other_arrays_are_warned_of_with_the_line(read, interface):
    outside = interface.array([1.0, 2.0])

    class Net(gluon.HybridBlock):
        def forward(self, x):
            return x * 2 if read(outside) else -x

    net = Net()
    net.hybridize()
    with pytest.warns(UserWarning, match="values of an array are read in Python") as seen:
        net(interface.array(POSITIVE))
    assert seen[0].filename == __file__
    assert any("values of an array" in line and __file__ in line for line in net.traced_decisions())


def test_an_array_of_the_block_that_is_replaced_is_read_again():
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.array = nd.array([1.0])

        def forward(self, x):
            return x * 2 if self.array > 0 else -x

    net = Net()
    net.hybridize()
    x = nd.array(POSITIVE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert net(x).asnumpy().tolist() == [2, 4]
        net.array = nd.array([-1.0])
        assert net(x).asnumpy().tolist() == [-1, -2]


USES = {
    "read": lambda a, x: x * 2 if a > 0 else -x,
    "operator": lambda a, x: x * (a + 1),
    "method": lambda a, x: x * a.sum(),
    "function": lambda a, x: x + mx.nd.exp(a) if isinstance(a, mx.nd.NDArray) else x,
    "view": lambda a, x: x * a[0:1],
    "itself": lambda a, x: x * a,
}
WRITES = {
    "setitem": lambda a: a.__setitem__(slice(None), -3.0),
    "in place": lambda a: a.__isub__(4.0),
    "out": lambda a: mx.nd.negative(a, out=a),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("place", ["attribute", "closure"])
def test_values_computed_from_captured_arrays_are_computed_again_after_writes(use, write, place):
    array = nd.array([1.0])

    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.array = array

        def forward(self, x):
            return use(self.array if place == "attribute" else array, x)

    net, plain = Net(), Net()
    net.hybridize()
    x = nd.array(POSITIVE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            np.testing.assert_array_equal(net(x).asnumpy(), plain(x).asnumpy())
            write(array)


def test_parameters_do_not_trace_again_when_they_are_trained():
    traces = []

    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.dense = gluon.nn.Dense(1)
            self.scale = nd.array([2.0])

        def forward(self, x):
            traces.append(1)
            return self.dense(x) * self.scale.sqrt()

    net = Net()
    net.initialize()
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        with autograd.record():
            loss = net(nd.ones((2, 3))).sum()
        loss.backward()
        trainer.step(2)
    assert len(traces) == 1


# ---------------------------------------------------------------------------------------------------------- attributes
class Flagged(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.flag = True
        self.factors = {"on": 2.0, "off": [3.0]}
        self.config = SimpleNamespace(shift=0.0)
        self.act = nd.relu

    def hybrid_forward(self, F, x):
        x = x * self.factors["on"] if self.flag else x * self.factors["off"][0]
        return self.helper(x) + self.config.shift

    def helper(self, x):
        return x if getattr(self, "sign", 1) > 0 else -x


def set_flag(net):
    net.flag = False


def set_by_setattr(net):
    setattr(net, "flag", 0)  # noqa: B010


def change_dict(net):
    net.factors["on"] = 5.0


def change_inner_list(net):
    net.flag = False
    net.factors["off"][0] = 7.0


def change_object(net):
    net.config.shift = 4.0


def delete_and_set(net):
    del net.flag
    net.flag = False


CHANGES = [set_flag, set_by_setattr, change_dict, change_inner_list, change_object, delete_and_set]


class Around(gluon.HybridBlock):
    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def forward(self, x):
        return self.inner(x) * 1


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("static_alloc", [False, True])
def test_attributes_that_forward_read_are_read_again_when_they_change(change, nested, static_alloc):
    inner = Flagged()
    net = Around(inner) if nested else inner
    x = nd.array(POSITIVE)
    net.hybridize(static_alloc=static_alloc)
    before = net(x).asnumpy()
    change(inner)
    after = net(x).asnumpy()
    net.hybridize(False)
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after, net(x).asnumpy())


def test_attributes_that_forward_did_not_read_keep_the_graph():
    net = Flagged()
    net.hybridize()
    x = nd.array(POSITIVE)
    net(x)
    graph = net._last_graph
    net.steps = 1
    net.flag = True  # same value as before
    net.act = nd.tanh
    net(x)
    assert net._last_graph is graph


FLAG, FACTOR = True, 2.0


def by_global_helper(x):
    return x * FACTOR if FLAG else -x


def test_variables_of_modules_and_closures_are_read_again_when_they_change(monkeypatch):
    shift = 0.0

    class Net(gluon.HybridBlock):
        def forward(self, x):
            return self.method(by_global_helper(x))

        def method(self, x):
            return x + shift

    net = Around(Net())
    net.hybridize()
    x = nd.array(POSITIVE)
    assert net(x).asnumpy().tolist() == [2, 4]
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert net(x).asnumpy().tolist() == [3, 6]
    monkeypatch.setitem(globals(), "FLAG", False)
    assert net(x).asnumpy().tolist() == [-1, -2]
    shift = 10.0
    assert net(x).asnumpy().tolist() == [9, 8]
    graph = net._last_graph
    net(x)
    assert net._last_graph is graph


def test_train_step_reads_changed_attributes():
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.flag = True
            self.dense = gluon.nn.Dense(1)

        def forward(self, x):
            assert autograd.is_recording()
            return self.dense(x) if self.flag else self.dense(x) * 0

    net = Net()
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.0})
    step = mx.jit.train_step(net, gluon.loss.L2Loss(), trainer)
    x, y = nd.ones((2, 3)), nd.zeros((2, 1))
    assert step(x, y).asnumpy().tolist() == [4.5, 4.5]
    net.flag = False
    assert step(x, y).asnumpy().tolist() == [0, 0]


def test_a_count_of_calls_is_warned_of():
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    net = Net()
    net.hybridize()
    with pytest.warns(UserWarning, match=r"forward sets .*calls") as seen:
        net(nd.array(POSITIVE))
    assert seen[0].filename == __file__


# ------------------------------------------------------------------------------------------------------------ the mode
def test_is_recording_is_part_of_the_choice_of_the_graph():
    class Net(gluon.HybridBlock):
        def forward(self, x):
            return x * 2 if autograd.is_recording() else -x

    net = Net()
    net.hybridize()
    x = nd.array(POSITIVE)
    for _ in range(2):
        assert net(x).asnumpy().tolist() == [-1, -2]
        with autograd.record():
            assert net(x).asnumpy().tolist() == [2, 4]
        with autograd.record(train_mode=False):
            assert net(x).asnumpy().tolist() == [2, 4]


def test_is_recording_inside_of_pause_and_record():
    seen = []

    class Net(gluon.HybridBlock):
        def forward(self, x):
            with autograd.pause():
                seen.append(autograd.is_recording())
            with autograd.record():
                seen.append(autograd.is_recording())
            seen.append(autograd.is_recording())
            return x + 1

    net = Net()
    net.hybridize()
    with autograd.record():
        net(nd.array(POSITIVE))
    assert seen == [False, True, True]


# ------------------------------------------------------------------------------------------------------------ the class
@pytest.mark.parametrize(("interface", "cls"), [(mx.nd, mx.nd.NDArray), (mx.np, mx.np.ndarray)], ids=["nd", "np"])
def test_a_traced_array_is_an_instance_of_the_array_class(interface, cls):
    class Net(gluon.HybridBlock):
        def forward(self, x):
            y = x + 1
            return x * 2 if isinstance(x, cls) and isinstance(y, mx.nd.NDArray) else -x

    net = Net()
    net.hybridize()
    x = interface.array(POSITIVE)
    assert net(x).asnumpy().tolist() == [2, 4]
    assert not isinstance(mx.sym.var("x"), cls)


# ----------------------------------------------------------------------------------------------------------- generators
MODULE_GENERATOR = random.Random(3)
MODULE_RNG = np.random.default_rng(3)
MODULE_STATE = np.random.RandomState(3)


def draw_by_helper():
    return MODULE_GENERATOR.random()


def in_attribute(block):
    return block.rng.random()


def in_container(block):
    return block.tools["rng"].normal()


def in_global(block):
    return MODULE_RNG.random()


def in_global_state(block):
    return MODULE_STATE.rand()


def in_helper(block):
    return draw_by_helper()


def of_module(block):
    return random.random()


def of_numpy(block):
    return np.random.rand()


DRAWS = [in_attribute, in_container, in_global, in_global_state, in_helper, of_module, of_numpy]


@pytest.mark.parametrize("draw", DRAWS)
def test_draws_of_the_programs_generators_run_imperatively(draw):
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.rng = random.Random(1)
            self.tools = {"rng": np.random.default_rng(1)}

        def forward(self, x):
            return x * draw(self)

    net = Net()
    net.hybridize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        values = [net(nd.array(POSITIVE)).asnumpy()[0] for _ in range(4)]
    assert len(set(values)) == 4
    assert any("random numbers" in str(warning.message) for warning in seen)
    net.hybridize(strict=True)
    with pytest.raises(TraceError, match="random numbers"):
        net(nd.array(POSITIVE))


def test_draws_of_generators_in_closures_and_hybrid_forward_are_warned_of():
    rng = np.random.default_rng(5)

    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x * float(rng.random())

    net = Net()
    net.hybridize()
    with pytest.warns(UserWarning, match="random numbers") as seen:
        net(nd.array(POSITIVE))
    assert seen[0].filename == __file__


# --------------------------------------------------------------------------------------------------------------- export
def test_export_lists_the_values_fixed_in_the_trace(tmp_path):
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.scale = 3.0

        def forward(self, x):
            return x.reshape((x.shape[0] * 2, -1)) * self.scale

    net = Net()
    net.hybridize()
    x = nd.array(np.arange(8).reshape(2, 4))
    net(x)
    with pytest.warns(UserWarning, match=r"shape of an array is read in Python \(.*test_trace_decisions.py:\d+\)"):
        files = net.export(str(tmp_path / "net"))
    attribute = json.loads((tmp_path / "net-symbol.json").read_text())["attrs"]["hybridnet_traced_with"][1]
    assert "(2, 4)" in attribute
    assert "scale = 3.0" in attribute
    loaded = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    np.testing.assert_array_equal(loaded(x).asnumpy(), net(x).asnumpy())


def test_export_of_a_net_without_decisions_says_nothing(tmp_path):
    net = gluon.nn.Dense(3)
    net.initialize()
    net.hybridize()
    net(nd.ones((2, 4)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.export(str(tmp_path / "net"))
    assert "hybridnet_traced_with" not in (tmp_path / "net-symbol.json").read_text()
    assert net.traced_decisions() == []


def test_attributes_set_by_forward_do_not_trace_again():
    traces = []

    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.history = []
            self.last = None

        def forward(self, x):
            traces.append(1)
            self.history.append(len(self.history))
            self.last = 1.0
            return x * self.last

    net = Net()
    net.hybridize()
    for _ in range(3):
        net(nd.array(POSITIVE))
        net.last = 5.0
    assert len(traces) == 1


# ------------------------------------------------------------------------------ values that change without assignment
class Holder(gluon.HybridBlock):
    """Computes use(self, x); the keyword arguments become attributes."""

    def __init__(self, use, **attributes):
        super().__init__()
        self.use = use
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x):
        return self.use(self, x)


def assert_seen(net, change, x=None):
    """Checks that a hybridized call after change() equals an imperative one, and that later calls keep the graph."""
    x = nd.array(POSITIVE) if x is None else x
    net.hybridize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*values of an array")
        before = net(x).asnumpy()
        graph = net._last_graph
        np.testing.assert_array_equal(net(x).asnumpy(), before)
        assert net._last_graph is graph
        change()
        after = net(x).asnumpy()
        graph = net._last_graph
        net(x)
        assert net._last_graph is graph
    net.hybridize(False)
    np.testing.assert_array_equal(after, net(x).asnumpy())
    assert not np.array_equal(before, after)


class Writable(np.ndarray):
    """A writable NumPy view of an array's memory; `given_out` keeps the exported memory alive."""

    given_out = None


def writable(array):
    given_out = np.from_dlpack(array)
    pointer = ctypes.cast(given_out.ctypes.data, ctypes.POINTER(ctypes.c_float))
    made = np.ctypeslib.as_array(pointer, given_out.shape).view(Writable)
    made.given_out = given_out
    return made


FOREIGN_USES = {
    "operator": lambda s, x: x + (s.c * 2).sum(),
    "both": lambda s, x: x + s.c[:2] + (s.c * 2).sum(),
    "read": lambda s, x: x + float(s.c[0].asscalar()),
}


@pytest.mark.parametrize("use", FOREIGN_USES.values(), ids=FOREIGN_USES)
@pytest.mark.parametrize("size", [2, 600_000])
@pytest.mark.parametrize("origin", ["from_dlpack", "from_numpy", "given out", "given out later", "given back"])
def test_values_computed_from_foreign_memory_are_computed_again_after_foreign_writes(use, size, origin):
    outside = np.ones(size, "float32")
    if origin.startswith("given"):
        array = nd.array(outside)
        held = [writable(array)] if origin == "given out" else []
    else:
        # from_numpy makes its argument read-only, but not the memory behind it.
        array = nd.from_dlpack(outside) if origin == "from_dlpack" else nd.from_numpy(outside[:], zero_copy=True)
        held = [outside]

    def write():
        target = held[0] if held else writable(array)
        target[:] = 5
        if origin == "given out later":
            held.append(target)  # otherwise the memory is released before the next call

    assert_seen(Holder(use, c=array), write)


@pytest.mark.parametrize("place", ["attribute", "list", "dict", "global", "closure", "object"])
@pytest.mark.parametrize("size", [1, 100_000])
def test_numpy_arrays_that_forward_reads_are_compared(place, size, monkeypatch):
    array = np.ones(size, "float32")
    monkeypatch.setitem(globals(), "GLOBAL_ARRAY", array)
    uses = {
        "attribute": lambda s, x: x * float(s.k[0]),
        "list": lambda s, x: x * nd.array(s.list[0])[0],
        "dict": lambda s, x: x * float(s.dict["k"].sum()),
        "object": lambda s, x: x * float(s.object.k[-1]),
        "global": lambda s, x: x * float(GLOBAL_ARRAY[0]),  # noqa: F821
        "closure": lambda s, x: x * float(array[0]),
    }
    net = Holder(uses[place], k=array, list=[array], dict={"k": array}, object=SimpleNamespace(k=array))
    assert_seen(net, lambda: array.__setitem__(slice(None), 3.0))


class Outer(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.seq = gluon.nn.HybridSequential()
        self.seq.add(gluon.nn.HybridLambda(lambda F, x: x + 1))

    def forward(self, x):
        return self.seq(x) * 1


def add_layer(seq):
    seq.add(gluon.nn.HybridLambda(lambda F, x: x * 3))


STRUCTURES = {
    "add": add_layer,
    "register_child": lambda seq: seq.register_child(gluon.nn.HybridLambda(lambda F, x: x * 3)),
    "setattr": lambda seq: setattr(seq, "further", gluon.nn.HybridLambda(lambda F, x: x * 3)),
}


@pytest.mark.parametrize("change", STRUCTURES.values(), ids=STRUCTURES)
@pytest.mark.parametrize("levels", [1, 2])
def test_a_layer_that_an_inner_block_gets_is_in_the_next_graph(change, levels):
    outer = Outer()
    net = outer if levels == 1 else Around(outer)
    assert_seen(net, lambda: change(outer.seq))


class Slotted:
    __slots__ = ("inner", "k")

    def __init__(self, k, inner=None):
        self.k, self.inner = k, inner

    def scale(self):
        return self.k * SCALE_OF_METHODS


@dataclasses.dataclass
class Config:
    k: float = 2.0
    inner: object = None


class Times(gluon.HybridBlock):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


SCALE_OF_METHODS = 2.0


def apply_all(block, x):
    for inner in block.v:
        x = inner(x)
    return x


CONTAINERS = {
    "blocks appended": (lambda: [Times(2)], apply_all, lambda v: v.append(Times(5))),
    "blocks popped": (lambda: [Times(2), Times(3)], apply_all, lambda v: v.pop()),
    "arrays appended": (lambda: [nd.array([2.0])], lambda s, x: x + sum(s.v), lambda v: v.append(nd.array([3.0]))),
    "arrays replaced": (
        lambda: [nd.array([2.0])],
        lambda s, x: x * s.v[0],
        lambda v: v.__setitem__(0, nd.array([3.0])),
    ),
    "mixed": (
        lambda: {"a": nd.array([2.0]), "k": 2.0},
        lambda s, x: x * s.v["a"] * s.v["k"],
        lambda v: v.update(k=3.0),
    ),
    "long": (lambda: [1.0] * 500, lambda s, x: x * sum(s.v), lambda v: v.__setitem__(499, 9.0)),
    "deque": (lambda: collections.deque([1.0, 2.0]), lambda s, x: x * s.v[0], lambda v: v.rotate(1)),
    "slots": (lambda: Slotted(2.0), lambda s, x: x * s.v.k, lambda v: setattr(v, "k", 3.0)),
    "in slots": (lambda: Slotted(1, Slotted(2.0)), lambda s, x: x * s.v.inner.k, lambda v: setattr(v.inner, "k", 3.0)),
    "dataclass": (lambda: Config(1, Config()), lambda s, x: x * s.v.inner.k, lambda v: setattr(v.inner, "k", 3.0)),
    "in tuple": (lambda: ([2.0], 1), lambda s, x: x * s.v[0][0], lambda v: v[0].append(v[0].__setitem__(0, 4.0))),
    "set": (lambda: {2.0, 3.0}, lambda s, x: x * sum(s.v), lambda v: v.add(7.0)),
    "bytearray": (lambda: bytearray(b"ab"), lambda s, x: x * s.v[0], lambda v: v.__setitem__(0, 3)),
    "partial": (
        lambda: functools.partial(lambda x, k: x * k[0], k=[2.0]),
        lambda s, x: s.v(x),
        lambda v: v.keywords["k"].__setitem__(0, 3.0),
    ),
    "negative zero": (lambda: [0.0], lambda s, x: x * math.copysign(1, s.v[0]), lambda v: v.__setitem__(0, -0.0)),
}


@pytest.mark.parametrize(("make", "use", "change"), CONTAINERS.values(), ids=CONTAINERS)
def test_containers_and_objects_that_forward_reads_are_compared(make, use, change):
    value = make()
    assert_seen(Holder(use, v=value), lambda: change(value))


@pytest.mark.parametrize("place", ["attribute", "global"])
def test_a_value_that_is_too_large_to_be_compared_is_warned_of_with_the_line(place, monkeypatch):
    monkeypatch.setitem(globals(), "LARGE", list(range(5000)))
    uses = {"attribute": lambda s, x: x * s.v[-1], "global": lambda s, x: x * LARGE[-1]}  # noqa: F821
    net = Holder(uses[place], v=list(range(5000)))
    net.hybridize()
    with pytest.warns(UserWarning, match="more than 1024 values") as seen:
        net(nd.array(POSITIVE))
    assert seen[0].filename == __file__


def by_default(x, factors=[2.0]):  # noqa: B006
    return x * factors[0]


def with_attribute(x):
    return x * with_attribute.alpha


with_attribute.alpha = 2.0


class Scaling:
    factor = 2.0

    def __init__(self):
        self.k = 2.0

    def __call__(self, x):
        return x * self.k

    def scale(self):
        return self.helper() * 1

    def helper(self):
        return SCALE_OF_METHODS


SETTINGS = {"a": {"k": 2.0}, "list": [2.0], "object": SimpleNamespace(k=2.0), "callable": Scaling()}
SETTINGS_DICT, SETTINGS_LIST = SETTINGS["a"], SETTINGS["list"]
SETTINGS_OBJECT, SETTINGS_CALLABLE = SETTINGS["object"], SETTINGS["callable"]
SETTINGS_MODULE = types.ModuleType("settings_of_this_program")
SETTINGS_MODULE.alpha, SETTINGS_MODULE.table = 2.0, [2.0]


def in_closure():
    table = {"k": [2.0]}
    return (lambda s, x: x * table["k"][0]), (lambda patch: patch.setitem(table, "k", [3.0]))


VARIABLES = {
    "dict": (lambda s, x: x * SETTINGS_DICT["k"], lambda patch: patch.setitem(SETTINGS_DICT, "k", 3.0)),
    "list": (lambda s, x: x * SETTINGS_LIST[0], lambda patch: patch.setitem(globals(), "SETTINGS_LIST", [3.0])),
    "object": (lambda s, x: x * SETTINGS_OBJECT.k, lambda patch: patch.setattr(SETTINGS_OBJECT, "k", 3.0)),
    "callable": (lambda s, x: SETTINGS_CALLABLE(x), lambda patch: patch.setattr(SETTINGS_CALLABLE, "k", 3.0)),
    "module": (lambda s, x: x * SETTINGS_MODULE.alpha, lambda patch: patch.setattr(SETTINGS_MODULE, "alpha", 3.0)),
    "in module": (lambda s, x: x * SETTINGS_MODULE.table[0], lambda patch: SETTINGS_MODULE.table.insert(0, 3.0)),
    "function": (lambda s, x: with_attribute(x), lambda patch: patch.setattr(with_attribute, "alpha", 3.0)),
    "class": (lambda s, x: x * Scaling.factor, lambda patch: patch.setattr(Scaling, "factor", 3.0)),
    "closure": in_closure(),
    "default": (lambda s, x: by_default(x), lambda patch: by_default.__defaults__[0].insert(0, 3.0)),
    "method of an attribute": (
        lambda s, x: x * s.h.scale(),
        lambda patch: patch.setitem(globals(), "SCALE_OF_METHODS", 3.0),
    ),
    "function in an attribute": (
        lambda s, x: s.function(x),
        lambda patch: patch.setitem(globals(), "SCALE_OF_METHODS", 3.0),
    ),
    "type": (lambda s, x: x * (2 if type(TYPED) is int else 3), lambda patch: patch.setitem(globals(), "TYPED", True)),
}
TYPED = 1


@pytest.mark.parametrize(("use", "change"), VARIABLES.values(), ids=VARIABLES)
def test_variables_that_code_names_are_compared(use, change, monkeypatch):
    net = Holder(use, h=Scaling(), function=lambda x: x * SCALE_OF_METHODS)
    assert_seen(net, lambda: change(monkeypatch))


@pytest.mark.parametrize(("old", "new"), [(0.0, -0.0), (True, 1), (1, 1.0), (np.float32(0), np.float32(-0.0))])
def test_equal_values_of_different_types_are_distinguished(old, new):
    def use(_, x, k):
        return x * {bool: 2, int: 3}.get(type(k), 4) + (1 if str(float(k)).startswith("-") else 0)

    net = Holder(lambda s, x: use(s, x, s.k), k=old)
    assert_seen(net, lambda: setattr(net, "k", new))

    class Net(gluon.HybridBlock):
        def forward(self, x, k):
            return use(self, x, k)

    net = Net()
    net.hybridize()
    x = nd.array(POSITIVE)
    for k in (old, new, old):
        np.testing.assert_array_equal(net(x, k).asnumpy(), use(None, x, k).asnumpy())


def test_nan_equals_itself():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.k, self.list = float("nan"), [float("nan"), np.float32("nan")]

        def forward(self, x, k):
            traces.append(1)
            return x * self.k * self.list[0] * k

    traces = []
    net = Net()
    net.hybridize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            net(nd.array(POSITIVE), float("nan"))
            net.k = float("nan")
            net.list[0] = float("nan")
    assert len(traces) == 1


def test_attributes_of_the_class_and_missing_ones_are_read_again_when_they_are_set():
    class Net(gluon.HybridBlock):
        factor = 2.0

        def forward(self, x):
            return x * self.factor * getattr(self, "sign", 1)

    net = Net()
    assert_seen(net, lambda: setattr(net, "factor", 3.0))
    assert_seen(net, lambda: setattr(net, "sign", -1))
    net = Net()
    assert_seen(net, lambda: setattr(Net, "factor", 5.0))


def count_in_closure():
    state = {"n": 0}

    def use(_, x):
        state["n"] += 1
        return x * state["n"]

    return use


def count_by_nonlocal():
    n = 0

    def use(_, x):
        nonlocal n
        n += 1
        return x * n

    return use


CHANGING = {
    "pop": (lambda s, x: x * s.q.pop(), "forward changes"),
    "closure": (count_in_closure(), "forward changes"),
    "nonlocal": (count_by_nonlocal(), "forward changes"),
    "array": (lambda s, x: x * float(s.a.__iadd__(1)[0]), "forward changes"),
    "generator": (lambda s, x: x * next(s.g), "iterator"),
    "itertools": (lambda s, x: x * next(s.count), "iterator"),
    "global": (lambda s, x: x * next(GLOBAL_COUNT), "iterator"),
    "in a list": (lambda s, x: x * next(s.inside[0]), "iterator"),
}
GLOBAL_COUNT = itertools.count(3)


@pytest.mark.parametrize(("use", "text"), CHANGING.values(), ids=CHANGING)
def test_forward_that_changes_its_own_state_is_warned_of_with_the_line(use, text):
    net = Holder(
        use,
        q=[5, 4, 3],
        a=np.ones(1),
        g=(i for i in range(3, 9)),
        count=itertools.count(3),
        inside=[itertools.count(3)],
    )
    net.hybridize()
    with pytest.warns(UserWarning, match=text) as seen:
        first = net(nd.array(POSITIVE))
    assert seen[0].filename == __file__
    graph = net._last_graph
    np.testing.assert_array_equal(net(nd.array(POSITIVE)).asnumpy(), first.asnumpy())
    assert net._last_graph is graph
