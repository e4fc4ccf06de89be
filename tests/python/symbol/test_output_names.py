"""Names of arguments, states and outputs equal those of MXNet 1.9.1, for the whole registry.

tests/fixtures/names/mxnet-1.9.1.json holds MXNet's names; tools/record_mxnet_names.py, which wrote it, explains how.
"""

from __future__ import annotations

import json
import pathlib

import hybridnet as mx
import pytest
from hybridnet import _core

ROOT = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "names"
ANSWERS = json.loads((ROOT / "mxnet-1.9.1.json").read_text())

# Operators whose inputs have other names here. Variables get these names only if a program omits input symbols, which
# the functions of mx.np never do.
OTHER_ARGUMENTS = {
    "_np_copy": "one operator with mx.nd's",
    "_npi_absolute": "one operator with mx.nd's",
    "_npi_arctan2": "lhs and rhs, as all operators on two arrays",
    "_npi_delete": "obj is given where it is an array",
    "_npi_hypot": "lhs and rhs, as all operators on two arrays",
    "_npi_multinomial": "a, as NumPy-style functions say",
    "_contrib_quantized_rnn": "scale and shift, which they are",
}


def composed(op: str, parameters: dict[str, str], inputs: list[str]) -> mx.sym.Symbol:
    function = _core.op_function(op, op, "tests", symbolic=True)
    return function(*[mx.sym.var(name) for name in inputs], name="g", **parameters)


@pytest.mark.parametrize("op", ANSWERS)
def test_names_are_those_of_mxnet(op: str) -> None:
    variadic = _core.describe_op(op)["variadic"]
    for parameters, arguments, states, outputs in ANSWERS[op]:
        given = [*arguments, *states] if variadic and op != "UpSampling" else []
        symbol = composed(op, parameters, given)
        assert symbol.list_outputs() == [f"g_{name}" for name in outputs], parameters
        if variadic or op in OTHER_ARGUMENTS:
            continue
        assert symbol.list_arguments() == [f"g_{name}" for name in arguments], parameters
        assert symbol.list_auxiliary_states() == [f"g_{name}" for name in states], parameters


def test_the_answers_cover_the_operators_that_programs_call() -> None:
    assert len(ANSWERS) > 400
    assert {"RNN", "CTCLoss", "_contrib_box_nms", "sort", "topk", "moments", "make_loss", "LeakyReLU"} <= set(ANSWERS)


@pytest.mark.parametrize("op", ["Concat", "add_n", "stack"])
def test_variables_stand_for_inputs_that_a_symbol_lacks(op: str) -> None:
    """num_args is the number of inputs, as in MXNet."""
    symbol = composed(op, {"num_args": "3"}, ["x"])
    assert symbol.list_arguments() == ["x", "g_arg1", "g_arg2"]
    with pytest.raises(mx.MXNetError, match="num_args"):
        composed(op, {"num_args": "1"}, ["x", "y"])
    with pytest.raises(mx.MXNetError, match="num_args"):
        getattr(mx.nd, op)(mx.nd.ones((2,)), num_args=2)


def test_both_outputs_of_random_slopes_are_returned() -> None:
    x = mx.nd.array([-1.0, 2.0, -3.0])
    output, mask = mx.nd.LeakyReLU(x, act_type="rrelu", lower_bound=0.5, upper_bound=0.5)
    assert output.asnumpy().tolist() == [-0.5, 2, -1.5] and mask.asnumpy().tolist() == [0.5] * 3


def test_inputs_that_parameters_ask_for_are_made() -> None:
    settings = {"state_size": "3", "num_layers": "1", "mode": "gru", "use_sequence_length": "True"}
    assert composed("RNN", settings, []).list_arguments() == [
        "g_data",
        "g_parameters",
        "g_state",
        "g_sequence_length",
    ]
    assert composed("CTCLoss", {"use_label_lengths": "True"}, []).list_arguments() == [
        "g_data",
        "g_label",
        "g_label_lengths",
    ]
