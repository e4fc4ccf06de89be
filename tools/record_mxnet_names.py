#!/usr/bin/env python3
"""Records MXNet 1.9.1's names of the arguments, states and outputs of every operator that both libraries have.

    PYTHONPATH=python python tools/record_mxnet_names.py cases cases.json
    MXNET_PYTHON tools/record_mxnet_names.py record cases.json tests/fixtures/names/mxnet-1.9.1.json

The first step takes the samples of HybridNet's registry and VARIANTS; the second runs in an environment with MXNet
1.9.1 and needs nothing of HybridNet. Each operator is composed under the name "g" without inputs, so that MXNet creates
variables for them. The file contains, for each operator, rows of [parameters, arguments, states, outputs] without the
"g_". tests/python/symbol/test_output_names.py compares. Parameters that MXNet refuses are left out.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

_MODES = ("rnn_relu", "rnn_tanh", "gru", "lstm")
# Parameters that change the number of inputs or outputs, in addition to those of the samples.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "SliceChannel": [{"num_outputs": n, "squeeze_axis": squeeze} for n in (1, 2, 3) for squeeze in (False, True)],
    "_split_v2": [{"sections": n, "indices": "()"} for n in (1, 2)] + [{"indices": "(0,)"}, {"indices": "(0, 1)"}],
    "Concat": [{"num_args": n} for n in (1, 2, 3)],
    "add_n": [{"num_args": n} for n in (1, 2, 3)],
    "stack": [{"num_args": n} for n in (1, 2)],
    "amp_multicast": [{"num_outputs": n} for n in (1, 3)],
    "UpSampling": [{"scale": 2, "sample_type": "bilinear", "num_filter": 3, "num_args": n} for n in (1, 2, 3)]
    + [{"scale": 2, "sample_type": "nearest", "num_args": n} for n in (1, 3)],
    "topk": [{"ret_typ": kind} for kind in ("value", "indices", "mask", "both")],
    "LeakyReLU": [{"act_type": kind} for kind in ("leaky", "prelu", "elu", "selu", "gelu", "rrelu")],
    "RNN": [
        {"mode": mode, "state_size": 3, "num_layers": 1, "state_outputs": states, "use_sequence_length": lengths}
        for mode in _MODES
        for states in (False, True)
        for lengths in (False, True)
    ],
    "CTCLoss": [
        {"use_data_lengths": data, "use_label_lengths": label} for data in (False, True) for label in (False, True)
    ],
    "BatchNorm": [{"output_mean_var": flag} for flag in (False, True)],
    "LayerNorm": [{"output_mean_var": flag} for flag in (False, True)],
    "GroupNorm": [{"output_mean_var": flag} for flag in (False, True)],
    "_contrib_BatchNormWithReLU": [{"output_mean_var": flag} for flag in (False, True)],
    "_contrib_Proposal": [{"output_score": flag} for flag in (False, True)],
    "_contrib_MultiProposal": [{"output_score": flag} for flag in (False, True)],
    "_npi_unique": [{}, {"return_index": True}, {"return_counts": True}],
    "_npi_average": [{"returned": flag} for flag in (False, True)],
    "_sample_multinomial": [{"get_prob": flag} for flag in (False, True)],
    "SequenceLast": [{"use_sequence_length": flag} for flag in (False, True)],
    "SequenceMask": [{"use_sequence_length": flag} for flag in (False, True)],
    "softmax": [{"use_length": flag} for flag in (False, True)],
    "Convolution": [{"kernel": "(3, 3)", "num_filter": 2, "no_bias": flag} for flag in (False, True)],
    "Deconvolution": [{"kernel": "(3, 3)", "num_filter": 2, "no_bias": flag} for flag in (False, True)],
    "FullyConnected": [{"num_hidden": 2, "no_bias": flag} for flag in (False, True)],
}


def write_cases(target: str) -> None:
    """Writes the operators with their parameters, except operators that only gradients and passes create."""
    from hybridnet import _core

    cases: dict[str, list[dict[str, str]]] = {}
    for name, _, internal in _core.op_names():
        described = _core.describe_op(name)
        if internal or described["subgraphs"] or name.startswith("_backward"):
            continue
        uses = [dict(sample["attrs"]) for sample in described["samples"]] or [{}]
        uses += [{key: str(value) for key, value in use.items()} for use in VARIANTS.get(name, ())]
        cases[name] = [use for i, use in enumerate(uses) if use not in uses[:i]]
    with open(target, "w") as file:
        json.dump(cases, file)


def _composed(op: str, parameters: dict[str, str]) -> list[list[str]]:
    import mxnet as mx
    from mxnet.base import _LIB, SymbolHandle, c_str, c_str_array, check_call, mx_uint

    count, creators = mx_uint(), ctypes.POINTER(ctypes.c_void_p)()
    check_call(_LIB.MXSymbolListAtomicSymbolCreators(ctypes.byref(count), ctypes.byref(creators)))
    for i in range(count.value):
        name = ctypes.c_char_p()
        check_call(_LIB.MXSymbolGetAtomicSymbolName(ctypes.c_void_p(creators[i]), ctypes.byref(name)))
        if name.value is not None and name.value.decode() == op:
            break
    else:
        return []
    handle = SymbolHandle()
    keys, values = c_str_array(list(parameters)), c_str_array(list(parameters.values()))
    check_call(
        _LIB.MXSymbolCreateAtomicSymbol(
            ctypes.c_void_p(creators[i]), mx_uint(len(parameters)), keys, values, ctypes.byref(handle)
        )
    )
    check_call(_LIB.MXSymbolCompose(handle, c_str("g"), mx_uint(0), None, (SymbolHandle * 0)()))
    symbol = mx.sym.Symbol(handle)
    names = symbol.list_arguments(), symbol.list_auxiliary_states(), symbol.list_outputs()
    return [[name.removeprefix("g_") for name in part] for part in names]


def _in_child(op: str, parameters: dict[str, str]) -> list[list[str]]:
    """Runs in a child process, since MXNet ends the process for some parameters."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = _composed(op, parameters)
        except Exception:
            answer = []
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else []


def record(source: str, target: str) -> None:
    """Writes MXNet's names, one operator per line."""
    import mxnet  # noqa: F401 (before the children)

    with open(source) as file:
        cases = json.load(file)
    rows = {}
    for op, uses in sorted(cases.items()):
        found = [[use, *names] for use in uses if (names := _in_child(op, use))]
        if found:
            rows[op] = found
    with open(target, "w") as file:
        lines = [f"{json.dumps(op)}: {json.dumps(found, separators=(',', ':'))}" for op, found in rows.items()]
        file.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write_cases(sys.argv[2]) if sys.argv[1] == "cases" else record(sys.argv[2], sys.argv[3])
