"""Every operator of the registry goes to ONNX and back with equal results, or a reason says why it does not."""

from __future__ import annotations

import logging
import pathlib
import sys
from functools import cache
from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import _core
from hybridnet.errors import DTypeError, ParamError, UnsupportedError
from hybridnet.onnx import _export_table, export_model, import_model
from hybridnet.onnx._check import run_file
from onnx_models import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ops"))
from sweep import FLOATS, OPS, Use, uses

runtime = pytest.importorskip("onnxruntime")
# Their samples use 0 in a shape for an unchanged size, which classic shapes allow.
CLASSIC_SHAPES = {"broadcast_to"}
# Samples that the default opset has no operators for.
REFUSED_SAMPLES = {
    "_contrib_DeformableConvolution-0": "DeformConv is new in opset 19",
    "_contrib_DeformableConvolution-1": "DeformConv is new in opset 19",
    "_contrib_ModulatedDeformableConvolution-0": "DeformConv is new in opset 19",
    "_contrib_ModulatedDeformableConvolution-1": "DeformConv is new in opset 19",
    "_npi_norm-3": "the nuclear norm is a sum of singular values",
    "_npi_norm-6": "the spectral norm is the largest singular value",
}
# Files of these are refused by the import.
NOT_IMPORTED = {"_npi_bincount": "reduction 'add' of an open number of updates"}
# Internal operators whose samples graphs of users do not hold: passes give the first parameters for several heads; the
# values of the second are drawn, and no shape (test_with_sizes.py runs it).
NOT_OF_USERS = {"_flash_attention", "_with_values"}
# Equal eigenvalues leave the eigenvectors open.
ANY_BASIS = {"_npi_eigh", "_linalg_syevd"}
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-4}
OPTIONS = runtime.SessionOptions()
OPTIONS.log_severity_level = 4
OPTIONS.intra_op_num_threads = 1
NotImplemented_ = runtime.capi.onnxruntime_pybind11_state.NotImplemented
logging.getLogger("hybridnet.onnx").setLevel(logging.ERROR)

PUBLIC = [name for name, described in OPS.items() if not described["internal"]]
EXPORTED = [
    name for name in OPS if _export_table.reason_of(name) is None and OPS[name]["samples"] and name not in NOT_OF_USERS
]
REFUSED = sorted(name for name in OPS if _export_table.reason_of(name) and OPS[name]["samples"])


def runnable(name: str, dtype: str) -> list[Use]:
    """The samples of an operator with values in a dtype."""
    found = [
        use if dtype == "float32" else Use(use.op, use.index, dtype) for use in uses(lambda op: op["name"] == name)
    ]
    return [use for use in found if use.runs_in(dtype) and _has_values(use, dtype)]


def _has_values(use: Use, dtype: str) -> bool:
    try:
        use.inputs(dtype)
    except ValueError:  # no integer is within the bounds of the sample
        return False
    return True


@cache
def function(op: str, symbolic: bool) -> Any:
    return _core.op_function(op, op, "hybridnet.ndarray", symbolic=symbolic)


class Case:
    """A sample as a Symbol with its inputs, and the results of the library."""

    def __init__(self, use: Use, dtype: str, parameters: bool) -> None:
        values = use.inputs(dtype)
        self.op = use.op
        names = [f"in{i}" for i in range(len(values))]
        data = names[:1] if parameters else names
        self.inputs = {name: value for name, value in zip(names, values, strict=True) if name in data}
        self.params = {name: value for name, value in zip(names, values, strict=True) if name not in data}
        arrays = [mx.nd.array(value, dtype=value.dtype) for value in values]
        variables = [mx.sym.var(name, dtype=value.dtype) for name, value in zip(names, values, strict=True)]
        made = function(use.op, False)(*arrays, **use.attrs)
        self.wanted = [x.asnumpy() for x in (made if isinstance(made, (list, tuple)) else [made])]
        self.symbol = function(use.op, True)(*variables, **use.attrs, name="op")
        self.random = bool(use.described["random"]) or use.op == "_keyed_normal_like"

    def export(self, path: Any, **options: Any) -> Any:
        shapes = {name: value.shape for name, value in self.inputs.items()}
        dtypes = {name: value.dtype for name, value in self.inputs.items()}
        export_model(self.symbol, self.params, shapes, dtypes, path, check=False, **options)
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        return model

    def run_runtime(self, model: Any) -> list[np.ndarray]:
        return run_file(runtime.InferenceSession(model.SerializeToString(), OPTIONS), self.inputs)

    def run_import(self, path: Any) -> list[np.ndarray]:
        symbol, args, states = import_model(path)
        inputs = {name: mx.nd.array(value, dtype=value.dtype) for name, value in self.inputs.items()}
        arrays = {**inputs, **args, **states}
        executor = symbol.bind(
            mx.cpu(),
            {name: arrays[name] for name in symbol.list_arguments()},
            grad_req="null",
            aux_states={name: arrays[name] for name in symbol.list_auxiliary_states()},
        )
        return [output.asnumpy() for output in executor.forward()]

    def compare(self, results: list[np.ndarray], title: str) -> None:
        assert len(results) == len(self.wanted), title
        for got, want in zip(results, self.wanted, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype), title
            if self.random or self.op in ANY_BASIS:
                continue
            one, other = got.astype("float64"), want.astype("float64")
            if want.dtype.name not in FLOATS:
                np.testing.assert_array_equal(one, other, err_msg=title)
                continue
            tolerance = TOLERANCE[want.dtype.name]
            largest = np.abs(other[np.isfinite(other)]).max(initial=1e-3)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * largest, err_msg=title)


def check(use: Use, dtype: str, path: Any, parameters: bool, **options: Any) -> None:
    """A sample passes ONNX's checker, and gives our results in ONNX Runtime and after its import."""
    with mx.util.np_shape(use.op not in CLASSIC_SHAPES):
        try:
            case = Case(use, dtype, parameters)
        except (ParamError, DTypeError):
            assert dtype != "float32"  # the library does not run the sample in this dtype
            return
        if str(use) in REFUSED_SAMPLES and options.get("opset_version", 18) < 19:
            with pytest.raises(UnsupportedError, match=use.op):
                case.export(path, **options)
            return
        compare(case, case.export(path, **options), f"{use} {dtype}", path, options.get("opset_version", 18))


def compare(case: Case, model: Any, title: str, path: Any, opset: int) -> None:
    try:
        results = case.run_runtime(model)
    except NotImplemented_:  # it has few kernels for the newest opsets
        assert opset > 21
    else:
        case.compare(results, f"{title} in ONNX Runtime")
    try:
        back = case.run_import(path)
    except UnsupportedError as error:
        assert case.op in NOT_IMPORTED and NOT_IMPORTED[case.op] in str(error), error
    else:
        case.compare(back, f"{title} after the import")


def test_every_public_operator_has_a_form_or_a_reason() -> None:
    without = [
        name
        for name in OPS
        if _export_table.find_form(name) is None
        and not _export_table.is_composed(name)
        and not _export_table.reason_of(name)
    ]
    assert without == []


def test_no_reason_is_for_an_operator_that_is_unknown() -> None:
    known = {name for name, _, _ in _core.op_names()}
    assert set(_export_table.REASONS) - known == set()
    assert set(_export_table.exported_operators()) - known == set()


@pytest.mark.parametrize("name", [name for name in EXPORTED if "float32" in OPS[name]["dtypes"]])
def test_operators_give_our_results_in_onnxruntime_and_after_an_import(name: str, tmp_path) -> None:
    for use in runnable(name, "float32"):
        check(use, "float32", tmp_path / "op.onnx", parameters=False)


@pytest.mark.parametrize("name", [name for name in REFUSED if name in PUBLIC])
def test_operators_without_a_form_are_refused_by_name(name: str, tmp_path) -> None:
    use = Use(name, 0)
    with mx.util.np_shape(name not in CLASSIC_SHAPES), pytest.raises(UnsupportedError) as caught:
        Case(use, OPS[name]["dtypes"][0], parameters=False).export(tmp_path / "op.onnx")
    assert f"operator '{name}'" in str(caught.value) or OPS[name]["composed"]
    assert _export_table.reason_of(name) in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool"])
def test_operators_give_our_results_in_every_dtype(dtype: str, tmp_path) -> None:
    failed = {}
    for use in [use for name in EXPORTED if dtype in OPS[name]["dtypes"] for use in runnable(name, dtype)]:
        try:
            check(use, dtype, tmp_path / "op.onnx", parameters=True)
        except Exception as error:
            failed[str(use)] = f"{type(error).__name__}: {error}"[:300]
    assert failed == {}


@pytest.mark.slow
@pytest.mark.parametrize("opset", [13, 17, onnx.defs.onnx_opset_version()])
def test_operators_give_our_results_in_every_opset(opset: int, tmp_path) -> None:
    """Uses that an older opset has no operator for are refused by name, never written otherwise."""
    failed, refused = {}, []
    for use in [use for name in EXPORTED if "float32" in OPS[name]["dtypes"] for use in runnable(name, "float32")]:
        try:
            check(use, "float32", tmp_path / "op.onnx", parameters=True, opset_version=opset)
        except UnsupportedError as error:
            assert f"opset {opset}" in str(error) or "no form in ONNX" in str(error), error
            refused.append(str(use))
        except Exception as error:
            failed[str(use)] = f"{type(error).__name__}: {error}"[:300]
    assert failed == {}
    assert len(refused) < 60, refused
