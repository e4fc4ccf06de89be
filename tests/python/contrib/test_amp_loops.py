"""contrib.amp converts the bodies of loops and branches; states keep their types, and caches take what is written."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import nd
from hybridnet.contrib import amp
from hybridnet.gluon import HybridBlock, SymbolBlock, nn

UNITS = 8


class Foreach(HybridBlock):
    """A cache of rows, written by index_copy, beside a state that a product makes."""

    def __init__(self, cache_dtype: str) -> None:
        super().__init__()
        self.cache_dtype = cache_dtype
        self.dense = nn.Dense(UNITS, flatten=False, in_units=UNITS, activation="tanh")

    def forward(self, x: Any) -> Any:
        def body(row: Any, states: Any) -> Any:
            place, hidden, cache = states
            hidden = self.dense(row + hidden)
            new = hidden.expand_dims(axis=0)
            if self.cache_dtype != "float32":
                new = new.astype(self.cache_dtype)
            cache = nd.contrib.index_copy(cache, place, new)
            return hidden * 2, [place + 1, hidden, cache]

        start = [nd.zeros((1,), dtype="int64"), nd.zeros((2, UNITS)), nd.zeros((6, 2, UNITS), dtype=self.cache_dtype)]
        rows, (_, hidden, cache) = nd.contrib.foreach(body, x, start)
        return rows, hidden, cache


class While(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(UNITS, flatten=False, in_units=UNITS)

    def forward(self, x: Any) -> Any:
        def body(count: Any, x: Any) -> Any:
            x = nd.contrib.cond(count > 1, lambda: nd.tanh(self.dense(x)), lambda: x * 0.5)
            return x, (count + 1, x)

        rows, (_, last) = nd.contrib.while_loop(lambda count, _: count < 4, body, (nd.zeros((1,)), x), 6)
        return rows, last


def converted(net: Any, x: Any, target: str, **options: Any) -> tuple[Any, list[Any]]:
    net.initialize(mx.init.Xavier())
    net.hybridize()
    expected = net(x)
    return amp.convert_hybrid_block(net, target, **options), expected


def bodies_of(block: SymbolBlock) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def collect(graph: dict[str, Any]) -> None:
        for node in graph["nodes"]:
            for body in node.get("subgraphs", ()):
                found.append(body)
                collect(body)

    collect(json.loads(block._outputs.tojson(remove_amp_cast=False)))
    return found


@pytest.mark.parametrize("target", ["bfloat16", "float16"])
@pytest.mark.parametrize("cache_dtype", ["float32", "bfloat16", "float16"])
def test_products_in_a_loop_run_in_16_bits_and_its_states_keep_their_types(cache_dtype, target):
    x = nd.random.normal(shape=(5, 2, UNITS))
    block, expected = converted(Foreach(cache_dtype), x, target)
    (body,) = bodies_of(block)
    assert any(node["op"] == "amp_cast" and node["attrs"]["dtype"] == target for node in body["nodes"])
    for hybridize in (False, True):
        if hybridize:
            block.hybridize(static_alloc=True)
        results = block(x)
        assert [result.dtype for result in results] == [result.dtype for result in expected]
        for result, wanted in zip(results, expected, strict=True):
            result, wanted = (array.astype("float32").asnumpy() for array in (result, wanted))
            assert not np.array_equal(result, wanted)
            np.testing.assert_allclose(result, wanted, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("target", ["bfloat16", "float16"])
def test_both_branches_of_a_converted_loop_have_one_type(target):
    x = nd.random.normal(shape=(2, UNITS))
    block, expected = converted(While(), x, target)
    assert sum(node["op"] == "amp_cast" for body in bodies_of(block) for node in body["nodes"]) >= 3
    for result, wanted in zip(block(x), expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(result.asnumpy(), wanted.asnumpy(), rtol=0.05, atol=0.05)


def test_names_of_bodies_can_be_excluded(tmp_path):
    x = nd.random.normal(shape=(5, 2, UNITS))
    net = Foreach("float32")
    net.initialize()
    net.hybridize()
    expected = net(x)
    file, _ = net.export(str(tmp_path / "net"))
    (body,) = (node["subgraphs"][0] for node in json.loads(Path(file).read_text())["nodes"] if "subgraphs" in node)
    (name,) = (node["name"] for node in body["nodes"] if node["op"] == "FullyConnected")
    block = amp.convert_hybrid_block(net, "bfloat16", excluded_sym_names=[name])
    for result, wanted in zip(block(x), expected, strict=True):
        np.testing.assert_array_equal(result.asnumpy(), wanted.asnumpy())
    with pytest.raises(ValueError, match="no node 'nothing'"):
        amp.convert_hybrid_block(net, "bfloat16", excluded_sym_names=["nothing"])


def test_a_converted_loop_is_saved_with_its_casts_or_without(tmp_path):
    x = nd.random.normal(shape=(5, 2, UNITS))
    block, expected = converted(Foreach("bfloat16"), x, "bfloat16")
    results = block(x)
    for remove, wanted in ((False, results), (True, expected)):
        files = block.export(str(tmp_path / f"net{remove}"), remove_amp_cast=remove)
        loaded = SymbolBlock.imports(files[0], ["data"], files[1])
        for ours, theirs in zip(loaded(x), wanted, strict=True):
            np.testing.assert_array_equal(ours.astype("float32").asnumpy(), theirs.astype("float32").asnumpy())


class Exchanged(HybridBlock):
    """A loop whose states start in 16 bits and in 32, and change places; a branch returns either of them."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(UNITS, flatten=False, in_units=UNITS)

    def forward(self, x: Any) -> Any:
        def body(row: Any, states: Any) -> Any:
            first, second = states
            chosen = nd.contrib.cond(row.sum() > 0, lambda: first, lambda: second)
            return chosen + row, [second, first]

        rows, states = nd.contrib.foreach(body, x, [self.dense(x[0]), x[1]])
        return rows, *states


class LateState(HybridBlock):
    """The first state is cast like its old value, which the body reads after the second one, or not at all."""

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.reads = reads
        self.dense = nn.Dense(UNITS, flatten=False, in_units=UNITS)

    def forward(self, x: Any) -> Any:
        def body(row: Any, states: Any) -> Any:
            first, second = states
            return row * 2, [self.dense(row), second - first if self.reads else second + 1]

        rows, states = nd.contrib.foreach(body, x, [x[0], x[1] * 3])
        return rows, *states


@pytest.mark.parametrize("target", ["bfloat16", "float16"])
@pytest.mark.parametrize("make", [Exchanged, lambda: LateState(True), lambda: LateState(False)])
def test_states_keep_their_places_and_types(make, target, tmp_path):
    x = nd.random.normal(shape=(5, 2, UNITS))
    block, expected = converted(make(), x, target)
    block(x)
    blocks = [block]
    for remove in (False, True):
        files = block.export(str(tmp_path / f"net{remove}"), remove_amp_cast=remove)
        blocks.append(SymbolBlock.imports(files[0], ["data"], files[1]))
    for ours in blocks:
        for result, wanted in zip(ours(x), expected, strict=True):
            np.testing.assert_allclose(result.astype("float32").asnumpy(), wanted.asnumpy(), rtol=0.05, atol=0.05)


def test_a_block_with_constants_is_converted() -> None:
    class Shifted(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(UNITS, flatten=False, in_units=UNITS)

        def forward(self, x: Any) -> Any:
            return self.dense(x + nd.array(range(UNITS)))

    x = nd.random.normal(shape=(2, UNITS))
    block, expected = converted(Shifted(), x, "bfloat16")
    np.testing.assert_allclose(block(x).astype("float32").asnumpy(), expected.asnumpy(), rtol=0.05, atol=0.1)


def test_a_converted_block_takes_its_inputs_in_the_same_order() -> None:
    class Difference(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(UNITS, flatten=False, in_units=UNITS)

        def forward(self, *arrays: Any) -> Any:
            result = self.dense(arrays[-1])
            for number, array in enumerate(reversed(arrays[:-1])):
                result = result - (number + 2) * array
            return result

    arrays = [nd.random.normal(shape=(2, UNITS)) for _ in range(11)]
    net = Difference()
    net.initialize()
    net.hybridize()
    expected = net(*arrays)
    block = amp.convert_hybrid_block(net, "bfloat16")
    np.testing.assert_allclose(block(*arrays).astype("float32").asnumpy(), expected.asnumpy(), rtol=0.05, atol=0.3)


def test_a_converted_block_of_symbols_takes_its_inputs_in_the_order_of_the_block() -> None:
    first, second = mx.sym.var("z"), mx.sym.var("a")  # neither in the order of names nor of reading
    outputs = mx.sym.FullyConnected(second, num_hidden=3, name="dense") + first * 2
    net = SymbolBlock(outputs, [first, second])
    net.initialize()
    net.hybridize()
    arrays = nd.random.normal(shape=(2, 3)), nd.random.normal(shape=(2, UNITS))
    expected = net(*arrays)
    block = amp.convert_hybrid_block(net, "bfloat16")
    np.testing.assert_allclose(block(*arrays).asnumpy(), expected.asnumpy(), rtol=0.05, atol=0.05)


def test_an_input_that_nothing_reads_stays_an_input() -> None:
    class Second(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(3, in_units=UNITS)

        def forward(self, unread: Any, x: Any) -> Any:
            return self.dense(x)

    net = Second()
    net.initialize()
    net.hybridize()
    arrays = nd.ones((1,)), nd.random.normal(shape=(2, UNITS))
    with pytest.warns(UserWarning, match="not used"):
        expected = net(*arrays)
    block = amp.convert_hybrid_block(net, "bfloat16")
    np.testing.assert_allclose(block(*arrays).astype("float32").asnumpy(), expected.asnumpy(), rtol=0.05, atol=0.05)


def test_weights_are_cast_once_not_in_each_call():
    x = nd.random.normal(shape=(3, UNITS))
    net = nn.HybridSequential()
    net.add(nn.Dense(64, in_units=UNITS), nn.Dense(4, in_units=64))
    block, _ = converted(net, x, "bfloat16")
    block.hybridize(static_alloc=True)
    block(x)
    first = block(x).asnumpy()
    assert "amp_cast (" not in block.plan_text() and "prepared once per set of parameters" in block.plan_text()
    weights = [name for name in block.collect_params() if name.endswith("weight")]
    for name in weights:
        block.collect_params()[name].set_data(block.collect_params()[name].data() * 2)
    changed = block(x).asnumpy()
    assert not np.array_equal(first, changed)  # new weights are cast again


def test_imperative_writes_take_the_type_of_the_array() -> None:
    code = """
    import hybridnet as mx
    from hybridnet import nd
    from hybridnet.contrib import amp
    amp.init("bfloat16")
    for dtype in ("float32", "bfloat16", "int32"):
        cache = nd.zeros((4, 3), dtype=dtype)
        new = nd.FullyConnected(nd.ones((1, 2)), nd.ones((3, 2)), nd.zeros((3,)), num_hidden=3)
        if dtype == "int32":
            new = new.astype("int32")
        place = nd.array([1], dtype="int64")
        for out in (
            nd.contrib.index_copy(cache, place, new),
            nd.contrib.index_copy(cache, index_vector=place, new_tensor=new),
        ):
            print(out.dtype.__name__, out.sum().astype("float32").asscalar())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["float32", "6.0"] * 2 + ["bfloat16", "6.0"] * 2 + ["int32", "6.0"] * 2
