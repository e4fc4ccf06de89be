"""The whole text of errors: operator, expected, given, reason, fix, line, block."""

from __future__ import annotations

import contextlib
import inspect
import json

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import autograd, gluon
from hybridnet.gluon import nn

HERE = __file__


def text_of(call, kind=mx.MXNetError) -> str:
    """Returns the text of the error that `call` raises, with FILE for the path of this file."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value).replace(HERE, "FILE")


def line_of(function, part: str) -> int:
    """Returns the number of the line of `function` that contains `part`."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if part in line)


class Branching(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        if x.sum() > 0:
            return x * 2
        return x


class Counting(gluon.HybridBlock):
    def forward(self, x):
        for _ in range(int(x.max().asscalar())):
            x = x + 1
        return x


class CountingIntegers(gluon.HybridBlock):
    """Counting, as the error about int() says to write it."""

    def forward(self, x):
        for _ in range(x.max().astype("int64")):
            x = x + 1
        return x


class Reading(gluon.HybridBlock):
    def forward(self, x):
        return x * 2 if x.asnumpy().sum() > 0 else x


def three_deep() -> nn.HybridSequential:
    net, body, inner = nn.HybridSequential(prefix="net_"), nn.HybridSequential(), nn.HybridSequential()
    inner.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=5, prefix="last_"))
    body.add(nn.Activation("relu"), inner)
    net.add(nn.Dense(3, in_units=3), body)
    net.initialize()
    return net


def test_branching_on_a_traced_value():
    net = Branching(prefix="net_")
    net.hybridize(autograph=False)
    assert text_of(lambda: net(mx.nd.ones((2, 3))), mx.errors.TraceError) == (
        "The truth value of Symbol net__greaterscalar0: it has no values while the graph is being built.\n"
        "  Because: the block is traced once and run many times, so Python cannot branch on computed values.\n"
        "  Fix: branch with mx.nd.contrib.cond, or loop with mx.nd.contrib.while_loop.\n"
        f"  At: FILE:{line_of(Branching.hybrid_forward, 'if x.sum')}\n"
        "  Block: net"
    )


def test_asking_a_traced_array_for_a_value():
    net = Counting(prefix="net_")
    net.hybridize(strict=True, autograph=False)
    assert text_of(lambda: net(mx.nd.ones((2, 3))), mx.errors.TraceError) == (
        "asscalar() of Symbol net_max0: it has no values while the graph is being built.\n"
        "  Because: the block is traced once and run many times, so Python cannot branch on computed values.\n"
        "  Fix: branch with mx.nd.contrib.cond, loop with foreach or while_loop, or use operators.\n"
        f"  At: FILE:{line_of(Counting.forward, 'asscalar')}\n"
        "  Block: net"
    )


def test_asking_for_values_in_a_way_that_cannot_be_converted():
    net = Reading(prefix="net_")
    net.hybridize(strict=True)
    line = line_of(Reading.forward, "asnumpy")
    assert text_of(lambda: net(mx.nd.ones((2, 3))), mx.errors.TraceError) == (
        "[HN100] asnumpy() of Symbol data: it has no values while the graph is being built.\n"
        f"    {line:5} | return x * 2 if x.asnumpy().sum() > 0 else x\n"
        "          | ^\n"
        "  Because: the block is traced once and run many times, so Python cannot branch on computed values.\n"
        "  Fix: branch with mx.nd.contrib.cond, loop with foreach or while_loop, or use operators.\n"
        f"  At: FILE:{line}\n"
        "  Block: net"
    )


def test_converting_a_traced_value_to_an_integer():
    net = Counting(prefix="net_")
    net.hybridize(strict=True)
    line = line_of(Counting.forward, "asscalar")
    assert text_of(lambda: net(mx.nd.ones((2, 3))), mx.errors.TraceError) == (
        "[HN108] int() of a value that is known only when the graph runs.\n"
        f"    {line:5} | for _ in range(int(x.max().asscalar())):\n"
        "          |                ^\n"
        "  Because: int() raises an error for NaN and infinities, which a graph cannot.\n"
        "  Fix: convert the array: x.astype('int64'); range() and indices accept it (docs/errors/HN108.md).\n"
        f"  At: FILE:{line}\n"
        "  Block: net"
    )


@pytest.mark.parametrize(("block_class", "plain_class"), [(Branching, Branching), (CountingIntegers, Counting)])
def test_with_the_source_converted_these_blocks_become_graphs(block_class, plain_class):
    net, plain = block_class(), plain_class()
    net.hybridize(strict=True)
    for value in (2, -1, 3, 0):
        x = mx.nd.full((2, 3), value)
        np.testing.assert_array_equal(net(x).asnumpy(), plain(x).asnumpy())


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_wrong_shape_three_blocks_deep(hybrid):
    net = three_deep()
    net.hybridize(hybrid)
    text = text_of(lambda: net(mx.nd.ones((2, 3))), mx.errors.ShapeError)
    node = "node 'last_fwd', " if hybrid else ""
    assert text.splitlines()[:3] == [
        f"operator 'FullyConnected' ({node}block 'net.1.1.1'), input 'data': expected 5 features, got 4.",
        "  Because: the layer was built for 5 features: its weight has shape (2, 5).",
        "  Fix: pass data with 5 features, or make a new layer with in_units=4.",
    ]
    assert text.splitlines()[3].startswith("  At: FILE:")


def convolve(**kwargs):
    return mx.nd.Convolution(mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 3, 3)), no_bias=True, **kwargs)


def test_an_unknown_parameter():
    assert text_of(lambda: convolve(kernel=(3, 3), num_filter=1, strides=2), mx.errors.ParamError) == (
        "operator 'Convolution', input 'strides': expected one of: data, weight, bias, kernel, stride, dilate, pad, "
        "num_filter, num_group, no_bias, layout, got 'strides'.\n"
        "  Because: the operator has no argument of this name.\n"
        "  Fix: write stride=... in place of strides=...\n"
        f"  At: FILE:{line_of(convolve, 'Convolution')}"
    )


def test_a_parameter_out_of_range():
    assert text_of(lambda: convolve(kernel=(3, 3), num_filter=0), mx.errors.ParamError) == (
        "operator 'Convolution', input 'num_filter': expected an int >= 1, got 0.\n"
        f"  At: FILE:{line_of(convolve, 'Convolution')}"
    )


def test_a_missing_parameter():
    assert text_of(lambda: convolve(num_filter=1), mx.errors.ParamError) == (
        "operator 'Convolution', input 'kernel': expected a tuple of ints, got nothing.\n"
        "  Because: the parameter is required.\n"
        "  Fix: pass kernel=...\n"
        f"  At: FILE:{line_of(convolve, 'Convolution')}"
    )


class Misspelled(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.Activation(x, act_type="rleu")


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_bad_choice_within_a_block(hybrid):
    net = nn.HybridSequential(prefix="net_")
    net.add(Misspelled())
    net.hybridize(hybrid)
    text = text_of(lambda: net(mx.nd.ones((2,))), mx.errors.ParamError)
    assert text.splitlines()[0].endswith(
        "input 'act_type': expected one of 'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh', got 'rleu'."
    )
    assert "block 'net.0'" in text
    assert f"At: FILE:{line_of(Misspelled.hybrid_forward, 'Activation')}" in text


@pytest.mark.parametrize("hybrid", [False, True])
def test_an_uninitialized_parameter(hybrid):
    net = nn.Dense(3, in_units=2, prefix="dense_")
    net.hybridize(hybrid)
    assert text_of(lambda: net(mx.nd.ones((1, 2)))).splitlines()[:2] == [
        "Parameter 'dense_weight' has not been initialized.",
        "  Fix: call net.initialize() before the first batch, and give collect_params() to Trainer: Block.params lacks "
        "the parameters of the blocks inside.",
    ]


# ---------------------------------------------------------------------------------------------------------------- files
def test_a_missing_file(tmp_path):
    path = str(tmp_path / "net.params")
    for call in (lambda: mx.nd.load(path), lambda: nn.Dense(2, in_units=1).load_parameters(path)):
        lines = text_of(call, mx.errors.FileError).splitlines()
        assert lines[:2] == [
            f"input '{path}': cannot open the file: No such file or directory.",
            "  Fix: check the path and the working directory.",
        ]
        assert lines[2].startswith("  At: FILE:")
    with pytest.raises(OSError, match=r"net-symbol\.json"):
        gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"])


def saved(path) -> bytes:
    mx.nd.save(str(path), {"weight": mx.nd.ones((2, 3)), "bias": mx.nd.zeros((2,))})
    return path.read_bytes()


def test_a_truncated_params_file(tmp_path):
    path = tmp_path / "net.params"
    whole = saved(path)
    path.write_bytes(whole[:-2])
    lines = text_of(lambda: mx.nd.load(str(path)), mx.errors.FormatError).splitlines()
    assert lines[:2] == [
        f"input '{path}': a name is longer than the file (at byte {len(whole) - 4} of {len(whole) - 2}): got 4.",
        "  Fix: the file is damaged or is no .params file; save or copy it again.",
    ]


def test_every_truncation_is_an_error_or_a_value(tmp_path):
    path = tmp_path / "net.params"
    whole = saved(path)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert "net.params" in text_of(lambda: mx.nd.load(str(path)), mx.errors.FormatError)


def test_every_flipped_byte_is_an_error_or_a_value(tmp_path):
    path = tmp_path / "net.params"
    whole = bytearray(saved(path))
    for place in range(len(whole)):
        for flip in (0x01, 0x80, 0xFF):
            changed = bytearray(whole)
            changed[place] ^= flip
            path.write_bytes(changed)
            with contextlib.suppress(mx.MXNetError):
                mx.nd.load(str(path))


def graph_text() -> str:
    return mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc").tojson()


def test_a_graph_with_an_unknown_operator(tmp_path):
    path = tmp_path / "net-symbol.json"
    path.write_text(graph_text().replace("FullyConnected", "FulyConnected"))
    lines = text_of(lambda: gluon.SymbolBlock.imports(str(path), ["data"]), mx.errors.FormatError).splitlines()
    assert lines[:3] == [
        "operator 'FulyConnected' (node 'fc'): unknown operator 'FulyConnected'.",
        f"  Because: the file {path} uses it at the graph.nodes[3] ('fc').",
        "  Fix: operators of similar names: FullyConnected.",
    ]


def test_a_graph_with_an_internal_operator():
    graph = json.loads(graph_text())
    graph["nodes"][-1]["op"] = "_backward_take"
    with pytest.raises(mx.errors.FormatError, match=r"'_backward_take' is internal.*nodes\[3\]"):
        mx.sym.load_json(json.dumps(graph))


def test_every_truncation_of_a_graph_is_an_error():
    text = graph_text()
    for size in range(0, len(text) - 2, 7):
        with pytest.raises(mx.errors.FormatError):
            mx.sym.load_json(text[:size])


def test_parameters_of_another_shape(tmp_path):
    path = str(tmp_path / "net.params")
    net = nn.Dense(3, in_units=2, prefix="a_")
    net.initialize()
    net.save_parameters(path)
    text = text_of(lambda: nn.Dense(4, in_units=2, prefix="b_").load_parameters(path))
    for part in ("b_weight", "(4, 2)", "(3, 2)"):
        assert part in text


# --------------------------------------------------------------------------- overwritten values and asynchronous errors
def overwrite():
    x = mx.nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x * x
        z = y * y
    y += 1
    z.backward()


def test_an_overwritten_value():
    assert text_of(overwrite, mx.errors.GradientError) == (
        "operator 'broadcast_mul', input 'rhs': the value that its gradient needs was overwritten in place.\n"
        f"  Because: it was recorded at FILE:{line_of(overwrite, 'z = y * y')} and overwritten at "
        f"FILE:{line_of(overwrite, 'y += 1')}.\n"
        "  Fix: write to a new array (y = x + 1 instead of x += 1), or copy first: x.copy().\n"
        f"  At: FILE:{line_of(overwrite, 'z = y * y')}"
    )


def fail_later(busy: bool):
    """Starts work that fails: if `busy`, in a worker long after the call, else at once."""
    x = mx.nd.ones((900, 900))
    rows = mx.nd.dot(x, x) if busy else x
    taken = mx.nd.take(rows, mx.nd.array([5000]), mode="raise")
    return taken + 1


@pytest.mark.parametrize("busy", [False, True])
def test_an_asynchronous_failure_names_the_line_that_pushed_it(busy):
    result = []
    expected = (
        f"operator 'take': expected indices in [-900, 899], got 5000.\n  At: FILE:{line_of(fail_later, 'mx.nd.take')}"
    )
    assert text_of(lambda: result.append(fail_later(busy)) or result[0].asnumpy(), IndexError) == expected
    mx.nd.waitall()


class Taking(gluon.HybridBlock):
    def hybrid_forward(self, F, x, rows):
        return F.take(F.dot(x, x), rows, mode="raise") + 1


@pytest.mark.parametrize("static", [False, True])
def test_a_failure_inside_a_hybridized_block(static):
    net = Taking(prefix="net_")
    net.hybridize(static_alloc=static, static_shape=static)
    x = mx.nd.ones((300, 300))
    np.testing.assert_allclose(net(x, mx.nd.array([1, 2])).asnumpy(), 301)
    out = net(x, mx.nd.array([400]))
    assert text_of(out.asnumpy, IndexError) == (
        "operator 'take' (node 'net_take0', block 'net'): expected indices in [-300, 299], got 400.\n"
        f"  At: FILE:{line_of(Taking.hybrid_forward, 'F.take')}"
    )
    np.testing.assert_allclose(net(x, mx.nd.array([1, 2])).asnumpy(), 301)  # the block still works


def test_a_failure_is_reported_once_by_waitall():
    fail_later(True)
    with pytest.raises(IndexError, match="take"):
        mx.nd.waitall()
    mx.nd.waitall()
