"""The tests of the package onnx for backends: each case gives its results, or is refused by name with a reason."""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import hybridnet as mx  # noqa: E402
import hybridnet.onnx.backend as backend  # noqa: E402
from backend_reasons import DIFFERS, REASONS  # noqa: E402
from hybridnet.errors import HybridNetError  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
# In 32 of the cases that pass, sequences, optional values or numbers among the inputs decide about the graph: the
# backend compiles these models for each kind of input, and import_model refuses them without input_shapes.
GOAL = 0.98  # a share of the cases in scope; those of DIFFERS do not count as passed
_FOREIGN = re.compile("STRING|COMPLEX|FLOAT8|FLOAT4|INT4|INT2|FLOAT6|E8M0")


def _cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for kind in KINDS for case in load_model_tests(kind=kind)]


CASES = {case.name: case for case in _cases()}


def _model_of(case: Any) -> Any:
    return case.model if case.model is not None else onnx.load(os.path.join(case.model_dir, "model.onnx"))


def _types(model: Any) -> set[str]:
    """The names of the element types of the model's inputs and outputs, of casts and of constants."""
    names = onnx.TensorProto.DataType.Name
    found = set()
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        kind = value.type
        while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
            kind = getattr(kind, kind.WhichOneof("value")).elem_type
        found.add(names(kind.tensor_type.elem_type))
    for node in model.graph.node:
        found.update(names(a.i) for a in node.attribute if a.name in ("to", "dtype", "output_dtype"))
        found.update(names(a.t.data_type) for a in node.attribute if a.type == onnx.AttributeProto.TENSOR)
    return found


def _is_foreign(case: Any) -> bool:
    """Whether a case is about element types that HybridNet does not have."""
    model = _model_of(case)
    domains = {node.domain for node in model.graph.node}
    return bool(domains & {"ai.onnx.ml"}) or any(_FOREIGN.search(name) for name in _types(model))


def _found(table: dict[str, Any], name: str) -> Any:
    """The entry of a table of patterns for a name; None: it has none."""
    return next((entry for pattern, entry in table.items() if re.fullmatch(pattern, name)), None)


def _loaded(path: str, kind: Any) -> Any:
    with open(path, "rb") as file:
        data = file.read()
    if kind.WhichOneof("value") == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.WhichOneof("value") == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def _array(value: Any) -> Any:
    """An array in place of a TensorProto; arrays and sequences as they are."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return [_array(item) for item in value] if isinstance(value, list) else value


def _data_sets(case: Any, model: Any) -> Any:
    if case.data_sets is not None:
        return [tuple([_array(value) for value in values] for values in part) for part in case.data_sets]
    sets = []
    for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_*"))):
        sets.append(
            tuple(
                [
                    _loaded(os.path.join(folder, f"{what}_{i}.pb"), values[i].type)
                    for i in range(len(glob.glob(os.path.join(folder, f"{what}_*.pb"))))
                ]
                for what, values in (("input", model.graph.input), ("output", model.graph.output))
            )
        )
    return sets


def _results(case: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """The results and the expected results for each data set."""
    model = _model_of(case)
    sets = _data_sets(case, model)
    assert sets
    prepared = backend.prepare(model if case.model_dir is None else os.path.join(case.model_dir, "model.onnx"))
    for inputs, outputs in sets:
        for _ in range(2):  # the second call runs the plan of the first one
            made = prepared.run(list(inputs))
        assert len(made) == len(outputs)
        yield list(made), outputs


def _check(case: Any) -> None:
    for made, outputs in _results(case):
        for value, expected in zip(made, outputs, strict=True):
            _compare(value, expected, case.rtol, case.atol)


def _compare(value: Any, expected: Any, rtol: float, atol: float) -> None:
    if expected is None or isinstance(expected, (list, tuple)):
        assert (value is None) == (expected is None)
        for one, other in zip(value or [], expected or [], strict=True):
            _compare(one, other, rtol, atol)
        return
    expected = np.asarray(expected)
    assert value.shape == expected.shape
    assert value.dtype == expected.dtype
    if expected.dtype == bool:
        np.testing.assert_array_equal(value, expected)
        return
    if expected.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)  # the tolerance of the runner in the package onnx
    wide = "float64" if expected.dtype.kind not in "iu" else expected.dtype
    np.testing.assert_allclose(value.astype(wide), expected.astype(wide), rtol=rtol, atol=atol)


IN_SCOPE = [name for name, case in CASES.items() if not _is_foreign(case)]
REFUSED = [name for name in IN_SCOPE if _found(REASONS, name)]
OTHERS = [name for name in IN_SCOPE if _found(DIFFERS, name)]


@pytest.mark.parametrize("name", [name for name in IN_SCOPE if name not in {*REFUSED, *OTHERS}])
def test_gives_the_results_of_the_standard(name: str) -> None:
    _check(CASES[name])


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_with_the_node_and_a_reason(name: str) -> None:
    with pytest.raises(HybridNetError, match=r"ONNX operator \w+|input '\w+'"):
        _check(CASES[name])


@pytest.mark.parametrize("name", OTHERS)
def test_gives_other_results_in_the_shapes_and_types_of_the_standard(name: str) -> None:
    _, tolerance = _found(DIFFERS, name)
    for made, outputs in _results(CASES[name]):
        for value, expected in zip(made, outputs, strict=True):
            assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
            if tolerance is not None:
                np.testing.assert_allclose(value.astype("float64"), expected.astype("float64"), rtol=0, atol=tolerance)


def test_graphs_can_be_loaded_from_files() -> None:
    failed = []
    for name in IN_SCOPE:
        case = CASES[name]
        try:
            symbol, _, _ = mx.onnx.import_model(case.model or os.path.join(case.model_dir, "model.onnx"))
        except HybridNetError:
            continue
        try:
            mx.sym.load_json(symbol.tojson())
        except HybridNetError:
            failed.append(name)
    assert failed == []


def test_enough_of_the_standard_is_supported() -> None:
    assert not set(REFUSED) & set(OTHERS)
    assert len(IN_SCOPE) > 1500
    assert 1 - len(REFUSED + OTHERS) / len(IN_SCOPE) >= GOAL


@pytest.mark.parametrize("pattern", [*REASONS, *DIFFERS])
def test_each_reason_is_about_a_case(pattern: str) -> None:
    assert any(re.fullmatch(pattern, name) for name in IN_SCOPE)
