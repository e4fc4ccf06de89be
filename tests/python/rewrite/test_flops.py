"""Node.flops counts the operations of a node, a multiply-add as two, and equals independent formulas."""

from __future__ import annotations

import hybridnet as mx
import pytest
from hybridnet import rewrite as rw

a, b, c = (mx.sym.var(name) for name in "abc")
LSTM = mx.sym.RNN(a, b, c, mx.sym.var("d"), state_size=6, num_layers=2, bidirectional=True, mode="lstm")
LSTM_SIZES = {"a": (7, 3, 5), "b": (1584,), "c": (4, 3, 6), "d": (4, 3, 6)}


@pytest.mark.parametrize(
    ("symbol", "shapes", "expected"),
    [
        (mx.sym.FullyConnected(a, b, no_bias=True, num_hidden=5), {"a": (3, 4), "b": (5, 4)}, 2 * 3 * 4 * 5),
        (mx.sym.FullyConnected(a, b, no_bias=True, num_hidden=5), {"a": (0, 4), "b": (5, 4)}, 0),
        (mx.sym.dot(a, b), {"a": (3, 4), "b": (4, 5)}, 2 * 3 * 4 * 5),
        (mx.sym.batch_dot(a, b), {"a": (6, 3, 4), "b": (6, 4, 5)}, 2 * 6 * 3 * 4 * 5),
        (mx.sym.linalg.gemm2(a, b), {"a": (6, 3, 4), "b": (6, 4, 5)}, 2 * 6 * 3 * 4 * 5),
        (
            mx.sym.Convolution(a, b, no_bias=True, num_filter=6, kernel=(3, 2), num_group=2, stride=(2, 1)),
            {"a": (5, 4, 9, 8), "b": (6, 2, 3, 2)},
            5 * 6 * 4 * 7 * (2 * 2 * 3 * 2),
        ),
        (
            mx.sym.Deconvolution(a, b, no_bias=True, num_filter=3, kernel=(2, 2), stride=(2, 2)),
            {"a": (5, 4, 9, 8), "b": (4, 3, 2, 2)},
            2 * 5 * 4 * 9 * 8 * (3 * 2 * 2),
        ),
        # Two layers of two directions: 4 gates of 6 units read 5 inputs, then 12, and 6 units of the state.
        (LSTM, LSTM_SIZES, 2 * 2 * 7 * 3 * 4 * 6 * ((5 + 6) + (12 + 6))),
        (mx.sym.Pooling(a, kernel=(2, 2), stride=(2, 2)), {"a": (1, 3, 8, 6)}, 3 * 8 * 6),
        (mx.sym.sum(a, axis=1), {"a": (3, 4)}, 12),
        (mx.sym.softmax(a), {"a": (3, 4)}, 5 * 12),
        (mx.sym.tanh(a), {"a": (3, 4)}, 12),
        (mx.sym.elemwise_add(a, b), {"a": (3, 4), "b": (3, 4)}, 12),
        (mx.sym.Reshape(a, shape=(-1,)), {"a": (3, 4)}, 0),
        (mx.sym.transpose(a), {"a": (3, 4)}, 0),
        (mx.sym.contrib.interleaved_matmul_selfatt_qk(a, heads=2), {"a": (7, 3, 2 * 3 * 4)}, 2 * (3 * 2 * 7 * 7) * 4),
        (mx.sym.topk(a), {"a": (3, 4)}, None),
    ],
)  # fmt: skip
def test_operators_count_their_operations(symbol, shapes, expected) -> None:
    with mx.np_shape(True):
        graph = rw.graph(symbol, shapes, dict.fromkeys(shapes, "float32"))
    (node,) = (node for node in graph.nodes if node.op is not None and not node.is_input)
    assert node.flops == expected
    assert all(input_.flops == 0 for input_ in graph.nodes if input_.is_input)
