"""mx.operator: the list of operators and their parameters."""

from __future__ import annotations

import hybridnet as mx
import pytest
from hybridnet import operator


def test_all_public_names_are_listed_and_helpers_are_not() -> None:
    names = operator.get_all_registered_operators()
    assert {"Convolution", "elemwise_add", "_plus", "broadcast_add"} <= set(names)
    assert len(names) == len(set(names)) > 300
    assert not [name for name in names if name.startswith("_backward_")]


def test_arguments_are_inputs_then_parameters() -> None:
    found = operator.get_operator_arguments("Activation")
    assert found.names == ["data", "act_type"]
    assert found.narg == 2
    assert found.types[0] == "NDArray-or-Symbol"
    assert "'relu'" in found.types[1]
    assert found.types[1].endswith("required")
    assert operator.get_operator_arguments("Concat").types[0] == "NDArray-or-Symbol[]"
    assert "optional, default=" in operator.get_operator_arguments("LeakyReLU").types[-1]


def test_an_unknown_operator_is_an_error_that_names_similar_ones() -> None:
    with pytest.raises(mx.errors.ParamError, match="Convolution"):
        operator.get_operator_arguments("Convolutoin")
