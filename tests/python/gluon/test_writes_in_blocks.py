"""Writes to traced arrays are functional updates that all aliases and views see, as on arrays."""

from __future__ import annotations

import hybridnet as mx
import numpy as onp
import pytest
from control_flow import c_model
from hybridnet import autograd, nd
from hybridnet import np as mxnp
from hybridnet.errors import GradientError, HybridNetError, TraceError
from hybridnet.gluon import HybridBlock, SymbolBlock
from writing_programs import SHAPE, Program

MODES = ["hybridized", "static_alloc", "exported", "c"]


class Lambda(HybridBlock):
    """A block that calls a function of F and arrays, written with hybrid_forward."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def hybrid_forward(self, F, *inputs):
        out = self.function(F, *inputs)
        return tuple(out) if isinstance(out, list) else out


class PlainLambda(HybridBlock):
    """A block that calls a function of nd and arrays, written with forward."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        out = self.function(nd, *inputs)
        return tuple(out) if isinstance(out, list) else out


def as_list(out):
    return [a.asnumpy() for a in out] if isinstance(out, (list, tuple)) else [out.asnumpy()]


def run(function, mode, inputs, folder=None, kind=Lambda):
    net = kind(function)
    if mode == "imperative":
        return as_list(net(*inputs))
    net.hybridize(static_alloc=mode == "static_alloc", strict=True)
    out = as_list(net(*inputs))
    if mode not in ("exported", "c"):
        return out
    symbol_file, params_file = net.export(str(folder / "model"))
    names = ["data"] if len(inputs) == 1 else [f"data{i}" for i in range(len(inputs))]
    if mode == "exported":
        return as_list(SymbolBlock.imports(symbol_file, names, params_file)(*inputs))
    return c_model.run(symbol_file, params_file, {n: a.asnumpy() for n, a in zip(names, inputs, strict=True)})


def check_everywhere(function, folder, *values, expected=None, kind=Lambda):
    inputs = [nd.array(value, dtype=value.dtype) for value in values]
    if expected is None:
        expected = run(function, "imperative", [a.copy() for a in inputs], kind=kind)
    for mode in MODES:
        for got, want in zip(run(function, mode, inputs, folder, kind), expected, strict=True):
            onp.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7, err_msg=mode)
    return expected


# ---------------------------------------------------------------------------------------------------- random programs
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_programs_with_aliases_agree_with_numpy_in_every_mode(first, tmp_path, rng):
    for seed in range(first, first + 10):
        program = Program(seed)
        x = rng.normal(size=SHAPE)
        expected = program.on_numpy(x.copy())
        for kind in (Lambda, PlainLambda):
            for mode in ["imperative", *(MODES if kind is Lambda else MODES[:1])]:
                for got, want in zip(
                    run(program.on_arrays, mode, [nd.array(x, dtype="float64")], tmp_path, kind), expected, strict=True
                ):
                    onp.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=f"{mode} {seed}\n{program}")


def differences(program, x, weights, step=1e-6):
    def value(at):
        return sum((w * a).sum() for w, a in zip(weights, program.on_numpy(at.copy()), strict=True))

    gradient = onp.zeros_like(x)
    for i in onp.ndindex(*x.shape):
        there = x.copy()
        there[i] += step
        back = x.copy()
        back[i] -= step
        gradient[i] = (value(there) - value(back)) / (2 * step)
    return gradient


@pytest.mark.parametrize("first", range(100, 140, 10))
def test_gradients_of_random_programs_agree_with_differences(first, rng):
    for seed in range(first, first + 10):
        program = Program(seed)
        x = rng.normal(size=SHAPE)
        weights = [rng.normal(size=a.shape) for a in program.on_numpy(x.copy())]
        net = Lambda(program.on_arrays)
        net.hybridize()
        data = nd.array(x, dtype="float64")
        data.attach_grad()
        with autograd.record():
            out = net(data)
            out = out if isinstance(out, (list, tuple)) else [out]
            loss = sum((nd.array(w, dtype="float64") * a).sum() for w, a in zip(weights, out, strict=True))
        loss.backward()
        expected = differences(program, x, weights)
        onp.testing.assert_allclose(data.grad.asnumpy(), expected, rtol=1e-4, atol=1e-6, err_msg=f"{seed}\n{program}")


# ------------------------------------------------------------------------------------------------------- single forms
def alias(F, x):
    s = x * 1
    t = s
    t += 1
    return s * t


def through_rows(F, x):
    s = x * 1
    v = s[1:3]
    v *= 5
    return s * s, v


def base_written_after_view(F, x):
    s = x * 1
    v = s[1:3]
    s *= 3
    return v * 1, s * 1


def view_of_view(F, x):
    s = x * 1
    v = s[1:4].reshape((-1,))[2:5]
    v[:] = 7
    s[0] = v[:3]
    return s * 1, v * 2


def called_function(F, x):
    def fill(t, value):
        t[:] = value

    s = x * 1
    fill(s[0:1], 4)
    return s + 0


def every_operator(F, x):
    s = F.abs(x) + 1
    t = s
    t += 2
    t -= 0.5
    t *= x
    t /= 3
    t **= 2
    t %= 1.75
    t //= 0.5
    return s + 0


def detached(F, x):
    s = x * 1
    d = s.detach()
    d += 1
    return s * 2, d * 1


def steps_and_columns(F, x):
    s = x * 1
    s[::-2] = 3
    s[:, 1] = -1
    s[1:, 0:2] += 5
    s[..., -1] *= 2
    return s + 0


def new_axes_and_broadcasts(F, x):
    s = x * 1
    s[1:3] = x[0]
    s[:, None, 0] = F.slice_axis(x, axis=1, begin=1, end=2)
    s[3, 1:] = x[0, 0]
    return s + 0


def masks(F, x):
    s = x * 1
    s[(x > 0).astype("bool")] = -2
    t = x * 1
    t[(F.sum(x, axis=1) > 0).astype("bool")] = x[0]
    return s * 2, t + 0


def positions(F, x):
    s = x * 1
    s[[0, 2]] = 5
    s[[1, 3], [0, 2]] = 1
    s[F.argmax(x, axis=0)[0:1].astype("int32")] = x[1]
    return s + 0


def outputs(F, x):
    s = x * 1
    t = F.tanh(x, out=s)
    F.broadcast_add(s, x, out=s)
    return s + 0, t + 0


def operator_results_are_no_views(F, x):
    s = x * 1
    r = F.reshape(s, shape=(-1,))
    e = F.expand_dims(s, axis=0)
    f = F.Flatten(s)
    s += 1
    r *= 2
    return s + 0, r + 0, e + 0, f + 0


def flags_for_views(F, x):
    s = x * 1
    e = s.expand_dims(0, inplace=True)
    f = s.flatten(inplace=True)
    e += 1
    f *= 2
    return s + 0, e + 0


def split_results(F, x):
    parts = F.split(x * 1, num_outputs=3, axis=1)
    first = parts[0]
    first += 5
    return parts[0] + 0, parts[1] + 0


def made_inside(F, x):
    table = F.zeros((4, 3))
    for i in range(4):
        table[i] = x[i] * i
    return table + 0


def no_copy(F, x):
    s = x * 1
    t = s.astype("float32", copy=False)
    t += 1
    c = s.copy()
    c += 1
    return s + 0, c + 0


def single_elements(F, x):
    s = x[0] * 1
    s[1] = [9.0]
    for i in range(3):
        s[i] = s[i] * 2 + s[i - 1]
    s[None, 0] = 4
    t = F.zeros((2, 3))
    t[0], t[1] = s, x[1]
    t[1, 2] = x[0, 1]
    t[0, 0] += 5
    return s + 0, t + 0


def copied_to(F, x):
    s, t = x * 1, x * 2
    s.copyto(t)
    v = t[1:2]
    (x * 3)[1:2].copyto(v)
    return s + 0, t + 0


FORMS = [
    alias, through_rows, base_written_after_view, view_of_view, called_function, every_operator, detached,
    steps_and_columns, new_axes_and_broadcasts, masks, positions, outputs, operator_results_are_no_views,
    flags_for_views, split_results, made_inside, no_copy, single_elements, copied_to,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_a_write_is_seen_as_on_arrays(form, tmp_path, rng):
    x = rng.normal(size=SHAPE).astype("float32")
    check_everywhere(form, tmp_path, x)
    onp.testing.assert_allclose(
        run(form, "hybridized", [nd.array(x)], kind=PlainLambda)[0],
        run(form, "imperative", [nd.array(x)], kind=PlainLambda)[0],
        rtol=1e-6,
    )


def test_one_graph_serves_batches_of_other_sizes():
    net = Lambda(through_rows)
    net.hybridize()
    for rows in (4, 6, 3):
        x = onp.arange(rows * 3.0).reshape(rows, 3)
        want = as_list(through_rows(nd, nd.array(x)))
        for got, expected in zip(as_list(net(nd.array(x))), want, strict=True):
            onp.testing.assert_array_equal(got, expected)
    assert len(net._variants[1].table) == 1


@pytest.mark.parametrize("rows", [1, 4])
def test_whether_an_index_is_a_view_depends_on_the_sizes_of_the_call(rows):
    def columns(F, x):
        s = x * 1
        v = s[:, 0:2]  # contiguous, and so a view, only if there is one row
        v += 1
        return s + 0

    net = Lambda(columns)
    net.hybridize()
    for other in (rows, 5 - rows):
        x = nd.array(onp.ones((other, 3)))
        onp.testing.assert_array_equal(net(x).asnumpy(), columns(nd, x).asnumpy())


def test_numpy_arrays_follow_their_own_rules(tmp_path):
    def program(x):
        s = x * 1
        t = s.reshape(-1)
        t[1:3] += 10
        s[0] -= s[1]
        f = s.flatten()
        f += 1
        mxnp.add(s, f.reshape(s.shape), out=s)
        s[s > 20] = 0
        w = s.astype("float64")
        w[0, 0] = 3
        u = mxnp.sort(s, axis=-1)
        s.sort(axis=0)
        return s + 0, f + 0, w + 0, u + 0

    class Net(HybridBlock):
        def forward(self, x):
            return program(x)

    x = mxnp.array(onp.arange(12.0).reshape(4, 3), dtype="float32")
    net = Net()
    want = as_list(net(x))
    net.hybridize(strict=True)
    for got, expected in zip(as_list(net(x)), want, strict=True):
        onp.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype


def test_bits_of_numpy_arrays_are_changed_in_place():
    class Net(HybridBlock):
        def forward(self, x):
            s = x * 1
            t = s
            t &= 6
            t |= 1
            t ^= 3
            t //= 2
            return s + 0

    x = mxnp.array([0, 5, 7, 12], dtype="int32")
    net = Net()
    want = net(x).asnumpy()
    net.hybridize(strict=True)
    onp.testing.assert_array_equal(net(x).asnumpy(), want)


@pytest.mark.parametrize("dtype", ["int32", "int64", "int8"])
def test_floor_division_of_integers_is_exact_in_graphs(dtype):
    def divide(F, x):
        t = x * 1
        t //= 2
        return x // 3, t

    x = nd.array([-7, -6, -1, 0, 5, 7], dtype=dtype)
    for got, want in zip(run(divide, "hybridized", [x]), as_list(divide(nd, x)), strict=True):
        onp.testing.assert_array_equal(got, want)


# ------------------------------------------------------------------------------- writes to inputs and parameters
def scale_input(F, x):
    x *= 2
    return x + 1


@pytest.mark.parametrize("kind", [Lambda, PlainLambda])
@pytest.mark.parametrize("static_alloc", [False, True])
def test_a_write_to_an_input_reaches_the_array_of_the_caller(kind, static_alloc):
    net = kind(scale_input)
    net.hybridize(static_alloc=static_alloc, strict=True)
    for _ in range(2):
        x = nd.array([1.0, 2.0, 3.0])
        view = x[1:3]
        onp.testing.assert_array_equal(net(x).asnumpy(), [3, 5, 7])
        onp.testing.assert_array_equal(x.asnumpy(), [2, 4, 6])
        onp.testing.assert_array_equal(view.asnumpy(), [4, 6])


def test_a_write_through_a_view_of_an_input_reaches_the_caller():
    def write(F, x, y):
        x[1:2] = y[0]
        return x.reshape((-1,)) * 1

    net = Lambda(write)
    net.hybridize()
    x, y = nd.zeros((3, 2)), nd.ones((2, 2))
    net(x, y)
    onp.testing.assert_array_equal(x.asnumpy(), [[0, 0], [1, 1], [0, 0]])


def test_writing_to_a_recorded_input_names_both_lines():
    net = Lambda(scale_input)
    net.hybridize()
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with (
        pytest.raises(GradientError, match=r"test_writes_in_blocks.py:\d+, and gradients.*\n.*\n.*\n.*At: .*:\d+"),
        autograd.record(),
    ):
        net(x)


def test_writing_to_one_of_two_inputs_that_share_memory_is_refused():
    def write(F, x, y):
        x += 1
        return x + y

    net = Lambda(write)
    net.hybridize()
    x = nd.array([1.0, 2.0])
    onp.testing.assert_array_equal(net(x, nd.ones((2,))).asnumpy(), [3, 4])
    with pytest.raises(TraceError, match=r"shares memory"):
        net(x, x)


def test_a_block_that_writes_to_its_input_is_not_exported(tmp_path):
    net = Lambda(scale_input)
    net.hybridize()
    net(nd.ones((2,)))
    with pytest.raises(TraceError, match=r"writes to its input 'data' in place at .*:\d+"):
        net.export(str(tmp_path / "m"))


class Counting(HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.total = self.params.get("total", shape=(2,), init="zeros", grad_req="null")

    def hybrid_forward(self, F, x, total):
        total += F.sum(x, axis=0)
        seen = total * 1
        total[0:1] = 100
        return seen


@pytest.mark.parametrize("record", [False, True])
def test_a_write_to_a_parameter_is_seen_after_the_call(record, tmp_path):
    values = {}
    for mode in ("imperative", "hybridized"):
        net = Counting()
        net.initialize()
        net.hybridize(active=mode == "hybridized")
        x = nd.array([[1.0, 2.0], [3.0, 4.0]])
        x.attach_grad()
        seen = []
        for _ in range(3):
            if record and mode == "hybridized":
                with autograd.record():
                    out = net(x)
            else:
                out = net(x)
            seen.append(out.asnumpy())
        values[mode] = [*seen, net.total.data().asnumpy()]
    onp.testing.assert_array_equal(values["imperative"], values["hybridized"])


def test_a_child_writes_to_the_array_of_its_parent(tmp_path):
    child = Lambda(scale_input)

    class Parent(HybridBlock):
        def __init__(self):
            super().__init__()
            self.child = child

        def hybrid_forward(self, F, x):
            s = x * 1
            out = self.child(s)
            return out + s

    net = Parent()
    x = nd.array([1.0, 2.0])
    want = net(x).asnumpy()
    net.hybridize()
    onp.testing.assert_array_equal(net(x).asnumpy(), want)
    onp.testing.assert_array_equal(x.asnumpy(), [1, 2])


class Outside(HybridBlock):
    def __init__(self, function):
        super().__init__()
        self.array = nd.zeros((2,))
        self.function = function

    def hybrid_forward(self, F, x):
        return self.function(self.array, x)


def _fill(array, x):
    array[:] = 1
    return x + 1


def _add_number(array, x):
    array += 1
    return x + array


def _add_traced(array, x):
    array += x
    return x + 1


def _set_traced(array, x):
    array[:] = x
    return x + 1


def _out(array, x):
    nd.square(x, out=array)
    return x + 1


def _copyto(array, x):
    x.copyto(array)
    return x + 1


@pytest.mark.parametrize("function", [_fill, _add_number, _add_traced, _set_traced, _out, _copyto])
def test_writing_to_an_array_from_outside_names_the_line(function):
    net = Outside(function)
    net.hybridize()
    with pytest.raises(HybridNetError, match=r"test_writes_in_blocks.py:\d+"):
        net(nd.ones((2,)))
    onp.testing.assert_array_equal(net.array.asnumpy(), [0, 0])


def test_a_forward_that_writes_to_an_array_from_outside_runs_on_arrays():
    class Net(HybridBlock):
        def __init__(self):
            super().__init__()
            self.count = nd.zeros((1,))

        def forward(self, x):
            self.count += 1
            return x + self.count

    net = Net()
    net.hybridize()
    with pytest.warns(UserWarning, match=r"written to in place"):
        results = [net(nd.ones((1,))).asscalar() for _ in range(3)]
    assert results == [2, 3, 4]


def test_a_forward_that_writes_traced_values_into_an_array_of_its_own_runs_on_arrays():
    class Net(HybridBlock):
        def forward(self, x):
            made = nd.array([0.0, 0.0, 0.0])
            made[0:2] = x[0:2]
            made += x
            return made * 2

    net = Net()
    net.hybridize()
    with pytest.warns(UserWarning, match=r"traced array"):
        onp.testing.assert_array_equal(net(nd.array([1.0, 2.0, 3.0])).asnumpy(), [4, 8, 6])


@pytest.mark.parametrize("update", ["sgd_mom_update", "adam_update", "rmsprop_update"])
def test_operators_that_write_their_states_do_so_in_graphs(update):
    def step(F, x):
        weight, gradient = x * 1, x * 2
        states = [F.zeros((3,)) for _ in range({"sgd_mom_update": 1, "rmsprop_update": 1}.get(update, 2))]
        for _ in range(2):
            getattr(F, update)(weight, gradient, *states, out=weight, lr=0.1)
        return (weight, *states)

    x = nd.array([1.0, 2.0, 3.0])
    want = as_list(step(nd, x))
    for got, expected in zip(run(step, "hybridized", [x]), want, strict=True):
        onp.testing.assert_allclose(got, expected, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------- other cases
def test_symbols_outside_of_traces_stay_as_they_are():
    import hybridnet as mx

    s = mx.sym.var("s") * 1
    for write in (
        lambda: s.__iadd__(1), lambda: s.__setitem__(slice(None), 0), lambda: s.__imul__(s),
        lambda: s.__ifloordiv__(2),
    ):  # fmt: skip
        with pytest.raises(mx.base.NotImplementedForSymbol, match=r"(?i)writing"):
            write()


def paused_whole(F, x):
    y = x * 2
    with autograd.pause():
        y += 1
    return y


def paused_values(F, x):
    y = x * 2
    with autograd.pause():
        y[:] = x * 3
    return y


def paused_part(F, x):
    y = x * 2
    with autograd.pause():
        y[0:1] = 5
        v = y[2:3]
    return y * F.sum(v.detach())


def detached_whole(F, x):
    y = x * 2
    d = y.detach()
    d += 1
    return y


def detached_part(F, x):
    y = x * 2
    d = y.detach()[0:2]
    d[0:1] = 7
    return y


@pytest.mark.parametrize(
    "program", [paused_whole, paused_values, paused_part, detached_whole, detached_part], ids=lambda p: p.__name__
)
def test_values_written_without_recording_are_constant_as_on_arrays(program):
    found = []
    for active in (False, True):
        net = Lambda(lambda F, x: F.sum(F.square(program(F, x))) + F.sum(x))
        net.hybridize(active=active)
        x = nd.array([1.0, 2.0, 3.0])
        x.attach_grad()
        with autograd.record():
            out = net(x)
        out.backward()
        found.append((out.asscalar(), *x.grad.asnumpy()))
    assert found[0] == found[1]


def test_wrong_shapes_and_types_are_refused_with_the_line():
    def wrong_shape(F, x):
        s = x * 1
        s += F.stack(x, x)
        return s

    def wrong_value(F, x):
        s = x * 1
        s[0:2] = F.zeros((3,))
        return s

    def wrong_type(F, x):
        s = x * 1
        F.square(x.astype("float64"), out=s)
        return s

    for function in (wrong_shape, wrong_value, wrong_type):
        net = Lambda(function)
        net.hybridize()
        with pytest.raises(HybridNetError, match=r"test_writes_in_blocks.py:\d+"):
            net(nd.ones((3,)))


@pytest.mark.parametrize(
    "key", [slice(None, None, -1), slice(None, None, 2), slice(1, None), slice(None), -1], ids=repr
)
def test_a_key_in_a_tuple_is_a_view_where_it_is_one_alone(key, tmp_path):
    def function(F, x):
        y = x * 1
        part, alone = y[key,], y[key]
        y -= 1
        part[:1] = 7
        return part + 0.5, alone + 0.5, y + 0.5

    check_everywhere(function, tmp_path, onp.arange(12.0).reshape(4, 3))


@pytest.mark.parametrize("rows", [0, 2])
def test_a_mask_without_elements_writes_nothing(rows, tmp_path):
    def function(F, x):
        y = x[:rows] * 1
        y[y.astype("bool")] = 5
        return y * 2, x + 1

    x = onp.array([[0.0, 3.0], [2.0, 0.0], [1.0, 1.0]])
    expected = onp.where(x[:rows] != 0, 10, 0.0)
    onp.testing.assert_array_equal(check_everywhere(function, tmp_path, x)[0], expected)


class Scaled(HybridBlock):
    """Multiplies by a state and then doubles the state."""

    def __init__(self):
        super().__init__()
        self.state = self.params.get("state", shape=(2,), init="ones", grad_req="null")

    def hybrid_forward(self, F, x, state):
        out = x * x * state
        state *= 2
        return out


@pytest.mark.parametrize("static_alloc", [False, True])
def test_a_gradient_reads_the_state_as_it_was_before_the_call_wrote_it(static_alloc):
    net = Scaled()
    net.initialize()
    net.hybridize(static_alloc=static_alloc)
    x = nd.array([3.0, 5.0])
    x.attach_grad()
    for scale in (1.0, 2.0):
        with autograd.record():
            out = net(x)
        out.backward()
        onp.testing.assert_array_equal(x.grad.asnumpy(), 2 * scale * x.asnumpy())
    with autograd.record(), pytest.raises(HybridNetError, match="wrote over"):
        autograd.grad(net(x), [x], create_graph=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda F, x: x.__iadd__(1),
        lambda F, x: (F.np.sqrt(x[:].__iadd__(1)), x),
        lambda F, x: [x.reshape((1, 3)).__imul__(2), F.np.ones_like(x)],
    ],
)
def test_results_of_blocks_that_write_their_inputs_have_the_interface_of_numpy(function):
    class Writing(HybridBlock):
        def hybrid_forward(self, F, x):
            return function(F, x)

    mx.npx.set_np()
    try:
        net = Writing()
        net.hybridize()
        for _ in range(2):
            results = net(mx.np.array([1.0, 2.0, 3.0]))
            for result in results if isinstance(results, (list, tuple)) else [results]:
                assert type(result) is mx.np.ndarray
    finally:
        mx.npx.reset_np()
