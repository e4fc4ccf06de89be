"""Element types that operators of ONNX accept: those of the standard which ONNX Runtime's kernels for the CPU have.

A node with another type computes in a wider one, between casts. float16 always passes: runtimes without such kernels
insert the casts themselves.
"""

from __future__ import annotations

from ..errors import UnsupportedError

__all__ = ["compute_dtype", "result_dtype"]

_LETTERS = {"f": "float32", "d": "float64", "b": "bfloat16", "i": "int32", "l": "int64", "c": "int8", "u": "uint8"}
_LETTERS["t"] = "bool"

# The types of the first input, by operator; operators that are not listed take every type.
_TYPES = {
    "f": """AveragePool Conv ConvTranspose Acos Acosh Asin Asinh Atan Atanh Cosh Sinh Tan Elu Erf Gelu GlobalAveragePool
        GlobalMaxPool HardSigmoid Hardmax InstanceNormalization LRN LeakyRelu PRelu Softplus Softsign Selu Col2Im Det
        GridSample Mish MaxRoiPool RNN LSTM GRU Multinomial HardSwish Celu ThresholdedRelu""",
    "fd": """BatchNormalization Ceil Floor Cos Sin Exp Log LogSoftmax Softmax Sigmoid Sqrt Tanh Reciprocal Gemm
        LayerNormalization LpNormalization DFT RoiAlign IsInf IsNaN RMSNormalization Round RandomNormalLike
        RandomUniformLike DeformConv Relu""",
    "fdil": """Add Sub Mul Div Pow MatMul CumSum Einsum ReduceL1 ReduceL2 ReduceLogSumExp ReduceMean ReduceProd
        ReduceSum ReduceSumSquare Range EyeLike""",
    "fdilcu": """Clip Greater GreaterOrEqual Less LessOrEqual Max Min Mod Abs ArgMax ArgMin ReduceMax ReduceMin Where
        TopK""",
    "fdilc": "Neg",
    "fdilt": "Trilu",
    "fil": "OneHot",
    "fdl": "Unique",
    "fdcu": "DepthToSpace SpaceToDepth MaxPool",
    "ficu": "Resize",
    "filt": "NonZero",
    "il": "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot",
    "fdblicu": "Sign",
    "t": "And Or Xor Not",
    "fdilcut": "Equal Expand Pad Tile Compress ReverseSequence",
}
_NATIVE: dict[str, frozenset[str]] = {
    name: frozenset(_LETTERS[letter] for letter in letters)
    for letters, names in _TYPES.items()
    for name in names.split()
}
_WIDER = {
    "bool": ("uint8", "int32", "int64", "float32"),
    "uint8": ("int32", "int64", "float32"),
    "int8": ("int32", "int64", "float32"),
    "int32": ("int64", "float64", "float32"),
    "int64": ("float64", "int32", "float32"),
    "bfloat16": ("float32",),
    "float64": ("float32",),
}
_RESULTS = {
    name: dtype
    for dtype, names in {
        "bool": "Equal Greater GreaterOrEqual Less LessOrEqual IsInf IsNaN And Or Not Xor",
        "int64": "ArgMax ArgMin Shape Size NonZero",
    }.items()
    for name in names.split()
}


def compute_dtype(op: str, dtype: str) -> str:
    """The dtype in which an operator computes on inputs of a dtype."""
    native = _NATIVE.get(op)
    if op == "IsInf" and dtype == "float16":  # only from opset 20 on
        return "float32"
    if native is None or dtype in native or dtype == "float16":
        return dtype
    for wider in _WIDER.get(dtype, ()):
        if wider in native:
            return wider
    raise UnsupportedError(
        f"ONNX operator {op} does not take {dtype}, nor a wider type", fix="cast the values to float32 before"
    )


def result_dtype(op: str, dtype: str) -> str:
    """The dtype of the first output for inputs of a dtype."""
    return _RESULTS.get(op, dtype)
