"""The text of a graph, with regions and lines, parses back to an equal graph."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import rewrite as rw

from rewrite.graphs import graph_of, run, tutorial
from rewrite.zoo import NETS, graphs_of

FormatError = mx.errors.FormatError
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
MODELS = [
    path.parent for path in sorted(FIXTURES.glob("*/case.json")) if json.loads(path.read_text())["kind"] == "model"
]
LOOP = """\
graph
%x = input : float32(4, 3)
%h = input : float32(3,)
%w = input : float32(3,)
%sums = loop[4] seq{%row: %x} carry{%state: %h} inv{%factor: %w} do
    %product = elemwise_mul(%row, %factor)
    %next = elemwise_add(%product, %state)
  next{%state: %next} out{.0: %product}
output %sums.0
output %sums.1
"""


def described(graph: Any) -> list[Any]:
    """The nodes of a graph with their inputs and attributes, without bodies."""
    return [
        (node.name, node.op, node.params, node.attrs, node.where, node.block, node.bodies,
         [(entry.node.name, entry.index) for entry in node.inputs], [(out.shape, out.dtype) for out in node.outputs])
        for node in graph.schedule
    ]  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_the_text_of_a_net_parses_back_to_an_equal_graph(name: str) -> None:
    for graph in graphs_of(name):
        text = graph.text()
        again = rw.parse(text)
        again.check()
        assert again.text() == text
        assert again.fingerprint() == graph.fingerprint()
        assert described(again) == described(graph)
        assert again.train == graph.train


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)
def test_graphs_of_mxnets_files_parse_back(folder: Path) -> None:
    case = json.loads((folder / "case.json").read_text())
    inputs = [spec["name"] for spec in case["inputs"]]
    net = mx.gluon.SymbolBlock.imports(str(folder / case["symbol"]), inputs, str(folder / case["params"]))
    stored = np.load(folder / "inputs.npz")
    net.hybridize()
    values = [stored[f"{case['runs'][0]}/{name}"] for name in inputs]
    net(*(mx.nd.array(value, dtype=value.dtype) for value in values))
    graph = net.graph()
    again = rw.parse(graph.text())
    assert again.text() == graph.text()
    assert again.fingerprint() == graph.fingerprint()
    assert described(again) == described(graph)


def test_a_graph_that_is_written_by_hand_runs() -> None:
    graph = rw.parse(LOOP)
    x, h, w = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones(3, np.float32), np.full(3, 2, np.float32)
    products, last = run(graph, x=x, h=h, w=w)
    np.testing.assert_array_equal(products, x * 2)
    np.testing.assert_array_equal(last, 1 + 2 * x.sum(axis=0))
    assert "loop[4] seq{%row: %x} carry{%state: %h} inv{%factor: %w} : float32(4, 3), float32(3,) do" in graph.text()


def test_every_name_and_value_comes_back() -> None:
    x = mx.sym.var('a "quoted" <name> %x\'2 \\ \n é', attr={"__note__": 'says "hi"\n'})
    graph = graph_of(mx.sym.relu(x, name="relu.0") + mx.sym.relu(x * 2, name="relu.0"))
    for array in (
        mx.nd.array([1, -0.0, float("nan"), float("inf"), 0.1, 1e-45]), mx.nd.array([[-128, 127]], dtype="int8"),
        mx.nd.array([2**62, -1], dtype="int64"), mx.nd.array([0.5, 2], dtype="float16"), mx.nd.ones((100,)),
        mx.nd.array([1e300, 1 / 3], dtype="float64"), mx.nd.array([True, False], dtype="bool"),
    ):  # fmt: skip
        graph.constant(array)
    with mx.util.np_shape(True):
        graph.constant(mx.nd.zeros((0, 3)))
        graph.constant(mx.nd.array(3.5).reshape(()))
    again = rw.parse(graph.text())
    assert again.text() == graph.text()
    assert described(again) == described(graph)
    values = [[node.value.asnumpy().tobytes() for node in g.nodes if node.is_constant] for g in (graph, again)]
    assert sorted(values[0]) == sorted(values[1])
    assert len(values[0]) == 9


def test_the_fingerprint_is_that_of_the_structure() -> None:
    assert tutorial().fingerprint() == tutorial().fingerprint()
    one = rw.parse(LOOP)
    renamed = rw.parse(LOOP.replace("%next", "%later").replace("%row", "%slice"))
    other = rw.parse(LOOP.replace("out{.0: %product}", "out{.0: %next}"))
    assert one.fingerprint() == renamed.fingerprint() != other.fingerprint()
    two = rw.parse("graph\n%c = constant [1, 2] : float32(2,)\noutput %c\n")
    three = rw.parse("graph\n%c = constant [1, 3] : float32(2,)\noutput %c\n")
    assert two.fingerprint() != three.fingerprint()


@pytest.mark.parametrize(
    ("old", "new", "place", "text"),
    [
        ("graph", "grap", "line 1, column 1", "expected 'graph', got 'grap'"),
        ("%x = input : float32(4, 3)", "%x = input", "line 3, column 1", "the type of the input"),
        ("float32(4, 3)", "float33(4, 3)", "line 2, column 14", "float33"),
        ("float32(4, 3)", "float32(4, -3)", "line 2, column 25", "a size"),
        ("float32(4, 3)", "float32(99999999999999999999)", "line 2, column 22", "a size"),
        ("float32(4, 3)", "float32(9000000000000000000, 9)", "line 2, column 14", "fits into memory"),
        ("%w = input", "%x = input", "line 4, column 1", "each value is made once"),
        ("elemwise_mul", "elemwise_mal", "line 6, column 16", "unknown operator 'elemwise_mal'"),
        ("(%row, %factor)", "(%row)", "line 6, column 16", "expected 2 inputs, got 1"),
        ("(%row, %factor)", "(%row, %w)", "line 6, column 35", "bodies see their slots only"),
        ("(%row, %factor)", "(%row, %factor", "line 7, column 5", "expected ',' or ')'"),
        ("loop[4]", "loop[5]", "line 5, column 9", "expected 4 iterations"),
        ("seq{%row: %x}", "seq{%row: %y}", "line 5, column 27", "a line above makes"),
        ("next{%state: %next} ", "", "line 8, column 3", "next{...} with 1 carries"),
        ("out{.0", "out{.1", "line 8, column 28", "the number of the output"),
        ("%sums.1", "%sums.2", "line 10, column 14", "from 0 to 1, got 2"),
        ("%sums.1", "%sums", "line 10, column 8", "one of the 2 outputs"),
        ("output %sums.1", "ouput %sums.1", "line 10, column 1", "begins with %name, 'output' or 'state'"),
        (" do\n", " {reverse=maybe} do\n", "line 5, column 9", "reverse"),
        (" do\n", " {num_seq=7} do\n", "line 5, column 9", "slots, which tell 'num_seq'"),
        ("%h = input : float32(3,)", "%h = input : float32(2,)", "line 5, column 9", "2"),
    ],
)  # fmt: skip
def test_a_wrong_text_is_an_error_with_place_and_expected_token(old: str, new: str, place: str, text: str) -> None:
    assert old in LOOP
    with pytest.raises(FormatError) as error:
        rw.parse(LOOP.replace(old, new, 1))
    message = str(error.value)
    assert place in message
    assert text in message
    lines = message.splitlines()
    column = int(place.rpartition(" ")[2])
    caret = next(line for line in lines if line.rstrip().endswith("^ here."))
    assert caret.index("^") - 4 == column - 1


def test_only_texts_are_parsed() -> None:
    for wrong in (None, b"graph", 3):
        with pytest.raises(TypeError, match="a str"):
            rw.parse(wrong)


def test_values_that_were_left_out_do_not_parse() -> None:
    graph = graph_of(mx.sym.var("x") + 1.0)
    graph.constant(mx.nd.ones((2,)))
    with pytest.raises(FormatError, match="left out"):
        rw.parse(graph.text(values=False))


def test_regions_nest_to_a_bound() -> None:
    def nested(depth: int) -> str:
        lines = ["graph", "%x = input : float32(2,)"]
        for level in range(depth):
            lines.append(f"{' ' * level}%l = loop[1] carry{{%s: %{'x' if level == 0 else 's'}}} do")
        lines.append("%y = relu(%s)")
        for level in range(depth):
            lines.append(f"next{{%s: %{'y' if level == 0 else 'l'}}} out{{}}")
        return "\n".join([*lines, "output %l"])

    graph = rw.parse(nested(12))
    assert rw.parse(graph.text()).fingerprint() == graph.fingerprint()
    with pytest.raises(FormatError, match="at most 64 deep"):
        rw.parse(nested(3_000))  # the indentation alone has 4.5 million characters


def damaged(draw: random.Random, text: str, other: str) -> str:
    """Damages a text with a few cuts, swaps and strange characters."""
    for _ in range(draw.randint(1, 4)):
        kind = draw.randrange(6)
        a, b = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        b = min(b, a + draw.choice((1, 3, 30, 300)))
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            c = draw.randrange(len(other) + 1)
            text = text[:a] + other[c : c + b - a] + text[b:]
        elif kind == 2:
            text = (
                text[:a]
                + draw.choice(["{", "}", "(", ")", '"', "%", "'", "\0", "é", "-1", "9" * 30, "[", "..."])
                + text[b:]
            )
        elif kind == 3:
            text = text[:a]
        elif kind == 4:
            lines = text.split("\n")
            i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
        else:
            words = text.split(" ")
            words[draw.randrange(len(words))] = draw.choice(words)
            text = " ".join(words)
    return text


def test_no_text_crashes() -> None:
    draw = random.Random(7)
    texts = [
        LOOP,
        *(graphs_of(name)[i].text() for name in ("nested", "branches", "counted_while", "dense") for i in (0, 1)),
    ]
    accepted = 0
    for _ in range(400):
        text = damaged(draw, draw.choice(texts), draw.choice(texts))
        try:
            graph = rw.parse(text)
        except FormatError as error:
            assert "line " in str(error)
            continue
        graph.check()
        assert rw.parse(graph.text()).fingerprint() == graph.fingerprint()
        accepted += 1
    assert accepted > 5
