"""What Python decides while a block is traced is never frozen in silence: it is refused, traced again, or warned of."""

import contextlib
import json
import random
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
    net.hybridize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert results(net) == expected


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("swallow", [*SWALLOWERS, swallow_and_translate])
def test_swallowed_refusals_are_errors_when_strict(swallow, question):
    net = make_swallowing(swallow, question)
    net.hybridize(strict=True)
    for _ in range(2):
        with pytest.raises(TraceError, match="test_trace_decisions"):
            net(nd.array(POSITIVE))


def test_swallowed_refusals_in_hybrid_forward_are_errors():
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x * 2 if swallow_exception(lambda: x.sum() > 0) else -x

    net = Net()
    net.hybridize()
    with pytest.raises(TraceError):
        net(nd.array(POSITIVE))


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
    net.hybridize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert results(net) == expected
    net.hybridize(strict=True)
    with pytest.raises(TraceError):
        net(nd.array(POSITIVE))


@pytest.mark.parametrize("construct", ["foreach", "while_loop", "cond"])
def test_swallowed_refusals_in_bodies_are_errors(construct):
    def body(x):
        return x * 2 if swallow_exception(lambda: x.sum() > 0) else -x

    class Net(gluon.HybridBlock):
        def forward(self, x):
            if construct == "foreach":
                return nd.contrib.foreach(lambda d, s: (body(d), s), x, [x.sum()])[0]
            if construct == "while_loop":
                return nd.contrib.while_loop(lambda i: i.sum() < 3, lambda i: (body(i), i + 1), x, 4)[0]
            return nd.contrib.cond(x.sum() > 0, lambda: body(x), lambda: x)

    net = Net()
    net.hybridize(strict=True)
    with pytest.raises(TraceError):
        net(nd.array(POSITIVE))


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
def test_what_was_computed_of_other_arrays_is_computed_again_when_these_are_written_to(use, write, place):
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
    net.flag = True  # the same value
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
def test_a_traced_array_is_an_instance_of_what_it_stands_for(interface, cls):
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
def test_export_lists_what_was_baked_in(tmp_path):
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


def test_what_forward_itself_sets_does_not_trace_again():
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
