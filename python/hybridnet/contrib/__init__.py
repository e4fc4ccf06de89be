"""Contributed features: control flow of arrays and graphs (foreach, while_loop, cond, scan, tree_fold)."""

from .._lazy_names import names_from
from .._public_names import dir_of
from . import control_flow
from .control_flow import cond, foldl, foldr, foreach, scan, until, while_loop
from .control_flow import map as map
from .control_flow import reduce as reduce
from .tree import Tree, tree_fold, tree_of

# Without map and reduce, so that "import *" does not replace Python's.
__all__ = [
    "Tree", "cond", "control_flow", "foldl", "foldr", "foreach", "scan", "tree_fold", "tree_of", "until", "while_loop",
]  # fmt: skip

# MXNet's names; imported on first use.
__getattr__, __dir__ = names_from(
    __name__,
    modules={
        "amp": "amp",
        "autograd": "autograd",
        "backends": "backends",
        "io": "io",
        "onnx": "onnx",
        "quantization": "quantization",
        "quant": "quantization",
        "svrg_optimization": "svrg_optimization",
        "tensorboard": "tensorboard",
        "text": "text",
        "ndarray": "..ndarray.contrib",
        "nd": "..ndarray.contrib",
        "symbol": "..symbol.contrib",
        "sym": "..symbol.contrib",
    },
    missing={
        "tensorrt": ("there is no GPU", "hybridize() compiles the network for the CPU"),
    },
)
__dir__ = dir_of(__name__, __dir__, also=("map", "reduce"))  # not in __all__: import * leaves Python's map
