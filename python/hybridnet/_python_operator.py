"""MXNet's first operators in Python: :class:`NumpyOp` and :class:`NDArrayOp`. New programs use ``operator.CustomOp``.

An object of a subclass is called on Symbols: ``loss = MySoftmax()(data=hidden, name="softmax")``.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ._user_line import warn
from .ndarray import NDArray
from .operator import Custom, CustomOp, CustomOpProp, register

__all__ = ["NDArrayOp", "NumpyOp", "PythonOp"]

_numbers = itertools.count()


class PythonOp:
    """Base of both kinds: override ``forward`` and ``backward``, and the methods that describe inputs and outputs.

    need_top_grad: False for operators at the end of a network that compute their gradient without an output gradient.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad
        self._op_type: str | None = None
        warn(f"{type(self).__name__} has been deprecated. Please use CustomOp", DeprecationWarning)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the node of this operator on Symbols, given in order or by name; ``name`` is the node's name."""
        if self._op_type is None:
            self._op_type = f"_{type(self).__name__}_{next(_numbers)}"
            register(self._op_type)(_prop_of(self))
        return Custom(*args, op_type=self._op_type, **kwargs)

    def forward(self, in_data: list[Any], out_data: list[Any]) -> None:
        """Fills out_data in place. Default: copies the first input."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any]) -> None:
        """Fills in_grad in place. Default: ones."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: list[Any]) -> tuple[Any, Any]:
        """Returns the shapes of inputs and outputs. Default: all like input 0."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Returns the names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Returns the names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Whether backward reads out_grad."""
        return self.need_top_grad_

    def _run(self, method: Any, **arrays: list[NDArray]) -> None:
        """Calls forward or backward; the method fills the arrays of 'in_grad', if given, else of 'out_data'."""
        method(**arrays)


class NumpyOp(PythonOp):
    """An operator with code for NumPy arrays."""

    def _run(self, method: Any, **arrays: list[NDArray]) -> None:
        seen = {what: [np.array(array.asnumpy()) for array in listed] for what, listed in arrays.items()}
        method(**seen)
        filled = "in_grad" if "in_grad" in arrays else "out_data"
        for array, values in zip(arrays[filled], seen[filled], strict=True):
            array[:] = values


class NDArrayOp(PythonOp):
    """An operator with code for NDArrays."""

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Lists the values that backward() reads. It only serves as documentation: all values are kept."""
        return ([*out_grad] if self.need_top_grad() else []) + [*in_data, *out_data]


def _prop_of(owner: PythonOp) -> type[CustomOpProp]:
    """Wraps the operator as a CustomOpProp."""

    class Run(CustomOp):
        def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            owner._run(owner.forward, in_data=in_data, out_data=out_data)

        def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
            owner._run(owner.backward, out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=in_grad)

    class Prop(CustomOpProp):
        def __init__(self) -> None:
            super().__init__(need_top_grad=owner.need_top_grad())

        def list_arguments(self) -> list[str]:
            return owner.list_arguments()

        def list_outputs(self) -> list[str]:
            return owner.list_outputs()

        def infer_shape(self, in_shape: list[Any]) -> tuple[Any, ...]:
            inputs, outputs = owner.infer_shape(in_shape)
            return inputs, outputs, []

        def create_operator(self, ctx: str, in_shapes: Any, in_dtypes: Any) -> CustomOp:
            return Run()

    return Prop
