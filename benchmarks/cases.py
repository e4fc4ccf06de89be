"""The cases of run.py: one row per case, with HybridNet's ways to run it, its peers and its goal."""

from __future__ import annotations

import dataclasses

__all__ = ["CASES", "SIDES", "Case", "Peer"]

SIDES = ("hybridnet", "torch", "jax", "onnxruntime", "openvino")  # the first is ours; sides/NAME_side.py


@dataclasses.dataclass(frozen=True)
class Peer:
    """A program of another framework, written from that framework's documentation.

    side, variant: the program is "NAME/VARIANT" in the table of that side. goal: the ratio to reach compared with this
    peer, if the issue sets one. is_rival: False for programs shown for reference only, such as the machine's copy of
    the same number of bytes.
    """

    side: str
    variant: str
    label: str
    goal: float | None = None
    is_rival: bool = True

    def beside(self, why: str) -> Peer:
        """Returns the same peer, shown for reference and not compared with."""
        return dataclasses.replace(self, label=f"{self.label} ({why})", goal=None, is_rival=False)


@dataclasses.dataclass(frozen=True)
class Case:
    """One row: the time of the best of HybridNet's modes relative to the best peer, and its goal.

    modes: the variants of HybridNet's side; the fastest one counts. limit: the maximum time in seconds. isas: the
    instruction sets, by name, with which the row is measured; all of them if empty.
    """

    name: str
    what: str
    goal: float
    peers: tuple[Peer, ...]
    modes: tuple[str, ...] = ("hybridized",)
    limit: float | None = None
    isas: tuple[str, ...] = ()


EAGER = Peer("torch", "eager", "PyTorch")
COMPILED = Peer("torch", "compiled", "torch.compile")
CHANNELS_LAST = Peer("torch", "channels_last", "PyTorch channels-last")
COMPILED_LAST = Peer("torch", "compiled_last", "torch.compile channels-last")
FROZEN = Peer("torch", "frozen", "torch.compile, frozen weights")
CELLS = Peer("torch", "cells", "PyTorch LSTMCell")
COMPILED_CELLS = Peer("torch", "compiled_cells", "torch.compile of LSTMCell")
FUSED = Peer("torch", "fused", "PyTorch nn.LSTM")
JIT = Peer("jax", "jit", "jax.jit")
SCAN = Peer("jax", "jit", "jax.lax.scan")
ONNX = Peer("onnxruntime", "session", "ONNX Runtime")
OPENVINO = Peer("openvino", "compiled", "OpenVINO")

BOTH = ("imperative", "hybridized")
DISPATCH, CONV_TRAINING, CONV_INFERENCE, RECURRENT, TRANSFORMER = 0.3, 0.6, 0.8, 0.9, 0.85
HALVES, BYTES = 0.9, 1.0
BFLOAT16 = ("avx512_bf16", "amx")  # the instruction sets with products of bfloat16


def copy_of(arrays: int) -> Peer:
    return Peer("torch", f"copy_{arrays}", "copying as many bytes", is_rival=False)


CASES = (
    Case("add_scalar", "x+1, 4x4", DISPATCH, (EAGER, JIT), ("imperative",)),
    Case("multiply_add", "a*b+c, 4x4", DISPATCH, (EAGER, JIT), ("imperative",)),
    Case("dot_32", "dot of 32x32", DISPATCH, (EAGER, JIT), ("imperative",)),
    Case("record_backward", "record + backward of five operators, 4x4", DISPATCH, (EAGER,), ("imperative",)),
    Case("mlp_train", "MLP 784-512-512-10 training step, batch 128", 1.0, (EAGER, COMPILED, JIT), BOTH),
    Case(
        "lenet_train", "LeNet training step, batch 64", CONV_TRAINING,
        (EAGER, CHANNELS_LAST, COMPILED_LAST, JIT), BOTH,
    ),
    Case("resnet18_train", "ResNet-18 training step, batch 8", CONV_TRAINING, (CHANNELS_LAST, COMPILED_LAST)),
    Case(
        "resnet50_infer_1", "ResNet-50 inference, batch 1", CONV_INFERENCE,
        (ONNX, OPENVINO, CHANNELS_LAST, COMPILED_LAST, FROZEN, JIT),
    ),
    Case("resnet50_infer_16", "ResNet-50 inference, batch 16", CONV_INFERENCE, (ONNX, OPENVINO, CHANNELS_LAST, FROZEN)),
    Case(
        "mobilenet_infer_1", "MobileNet inference, batch 1", CONV_INFERENCE,
        (ONNX, OPENVINO, CHANNELS_LAST, COMPILED_LAST, FROZEN),
    ),
    Case(
        "bert_infer", "BERT-base inference, 1x128 tokens", TRANSFORMER,
        (ONNX, OPENVINO, EAGER, COMPILED, FROZEN, JIT), BOTH,
    ),
    Case(
        "resnet50_bfloat16", "ResNet-50 inference, batch 1, bfloat16", HALVES, (OPENVINO, CHANNELS_LAST, FROZEN),
        isas=BFLOAT16,
    ),
    Case(
        "mobilenet_bfloat16", "MobileNet inference, batch 1, bfloat16", HALVES, (OPENVINO, CHANNELS_LAST, FROZEN),
        isas=BFLOAT16,
    ),
    Case(
        "bert_bfloat16", "BERT-base inference, 1x128 tokens, bfloat16", HALVES, (OPENVINO, EAGER, FROZEN),
        isas=BFLOAT16,
    ),
    Case("resnet50_int8", "ResNet-50 inference, batch 1, int8", BYTES, (ONNX, OPENVINO)),
    Case("mobilenet_int8", "MobileNet inference, batch 1, int8", BYTES, (ONNX, OPENVINO)),
    Case("bert_int8", "BERT-base inference, 1x128 tokens, data rounded to int8 in each run", BYTES, (ONNX, OPENVINO)),
    Case(
        "transformer_train", "2-layer transformer training step, 8x128x256, no dropout", TRANSFORMER,
        (EAGER, COMPILED, JIT), BOTH,
    ),
    Case(
        "transformer_dropout_train", "2-layer transformer training step, 8x128x256, dropout 0.1", TRANSFORMER,
        (EAGER, COMPILED), BOTH,
    ),
    Case(
        "lstm_foreach", "LSTM 2x256 by foreach over cells, batch 32, length 35, forward", RECURRENT,
        (SCAN, COMPILED_CELLS, CELLS, FUSED),
    ),
    Case(
        "lstm_foreach_train", "LSTM 2x256 by foreach over cells, batch 32, length 35, forward and backward", RECURRENT,
        (SCAN, COMPILED_CELLS, CELLS, FUSED)
    ),
    Case("lstm_fused", "gluon.rnn.LSTM 2x256, batch 32, length 35, forward", RECURRENT, (ONNX, OPENVINO, FUSED), BOTH),
    Case(
        "lstm_fused_train", "gluon.rnn.LSTM 2x256, batch 32, length 35, forward and backward", RECURRENT,
        (FUSED,), BOTH,
    ),
    Case("expression_16m", "tanh(a*x+b)*sigmoid(x)+x, 16M float32", 1.0, (JIT, COMPILED, EAGER, copy_of(2))),
    Case("linear_16m", "a*x+b*y+z, 16M float32", 1.0, (JIT, COMPILED, EAGER, copy_of(3))),
    Case(
        "while_1000", "while_loop of 1,000 tiny iterations", 1.0,
        (dataclasses.replace(ONNX, goal=0.05), Peer("jax", "jit", "jax.lax.while_loop"), EAGER), limit=1e-3,
    ),
    Case("cond_call", "cond of two tiny branches", 1.0, (Peer("jax", "jit", "jax.lax.cond"), ONNX, EAGER)),
    Case(
        "adam_300", "Trainer.step of 300 small parameters, adam", 1.0,
        (Peer("torch", "foreach", "PyTorch foreach", goal=0.5), Peer("torch", "fused", "PyTorch fused")),
        ("imperative",),
    ),
    Case("loader_0", "DataLoader, 1,024 samples of 3x64x64, batch 32, 0 workers", 1.0, (EAGER,), ("imperative",)),
    Case("loader_2", "DataLoader, 1,024 samples of 3x64x64, batch 32, 2 workers", 1.0, (EAGER,), ("imperative",)),
)  # fmt: skip
