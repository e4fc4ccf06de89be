"""Makes ONNX nodes: operators with constants and sizes as inputs, in the form of the file's opset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ndarray._dtypes import numpy_dtype
from ._export_dtypes import compute_dtype, result_dtype
from ._export_errors import does_not_follow
from ._export_values import Dim, Element, Number, Open, Shape, Spec, Tensor, product
from ._package import onnx
from ._size_search import explain
from ._writer import Graph, NodeRecord, Writer, type_code

__all__ = ["Emitter"]

# Operators whose output has the broadcast shape of their inputs.
_POINTWISE = frozenset([
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Div", "Elu",
    "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "Identity", "IsInf",
    "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or",
    "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
    "Softsign", "Sqrt", "Sub", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor", "Softmax", "LogSoftmax",
    "CumSum", "Trilu",
])  # fmt: skip
_NOT_SHARED = frozenset(
    ["Identity", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"]
)
# The inputs of these have types of their own.
_FIRST_INPUT_ONLY = frozenset([
    "Reshape", "Expand", "Tile", "Gather", "GatherElements", "GatherND", "Slice", "Unsqueeze", "Squeeze", "Pad",
    "TopK", "CumSum", "OneHot", "Resize", "Trilu", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
    "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
])  # fmt: skip
# Arithmetic of floats that small constants make the export compute.
_ARITHMETIC: dict[str, Any] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt,
    "Max": np.maximum, "Min": np.minimum, "Div": np.divide, "Reciprocal": np.reciprocal, "Exp": np.exp, "Log": np.log,
}  # fmt: skip
_SAME_TYPE = frozenset(["LSTM", "GRU", "RNN", "Split"])  # all outputs have the type of the first
_REARRANGING = frozenset(["Reshape", "Expand", "Transpose", "Unsqueeze", "Squeeze", "Slice", "Tile"])
_FULL_INT32 = 2**31 - 1

Operand = Any  # a Tensor, None for an absent input, or a number in the dtype of the first tensor


class Emitter:
    """Adds nodes to a Writer. `label` is the name of the node that is exported, a prefix of names in between."""

    def __init__(self, writer: Writer, num_trials: int) -> None:
        self.writer = writer
        self.num_trials = num_trials
        self.label = ""
        self.doc = ""
        self.block = ""
        # By id: tensors of numbers that are casts of bool tensors, and functions that make the latter.
        self._from_bool: dict[int, tuple[Tensor, Callable[[], Tensor]]] = {}
        self._fills: dict[int, tuple[Tensor, float]] = {}  # by id: tensors that hold one number in all places

    @property
    def opset(self) -> int:
        """The version of the operator set."""
        return self.writer.opset

    # ------------------------------------------------------------------------------------------------------ constants
    def const(self, value: Any, dtype: str | None = None) -> Tensor:
        """A tensor of known elements."""
        array = np.asarray(value) if dtype is None else np.asarray(value).astype(numpy_dtype(dtype))
        tensor = self.writer.constant(array, f"{self.label}/constant" if array.size > 1 else "constant")
        assert tensor.spec is not None
        if len(tensor.spec.shapes) != self.num_trials:
            tensor.spec = Spec([array.shape] * self.num_trials, tensor.dtype)
        return tensor

    def weight(self, array: np.ndarray, name: str, trained: bool = True) -> Tensor:
        """A tensor made of parameters; trained=False: an array that is none, under its own name."""
        tensor = Tensor(
            self.writer.unique(name), str(array.dtype), Spec([array.shape] * self.num_trials, str(array.dtype))
        )
        self.writer.parameter(tensor, array, trained)
        return tensor

    def ints(self, values: Sequence[int]) -> Tensor:
        """A constant vector of int64."""
        return self.const(np.array([int(value) for value in values], dtype=np.int64))

    # ---------------------------------------------------------------------------------------------------------- nodes
    def emit(
        self,
        op: str,
        *operands: Operand,
        outputs: int = 1,
        dtype: str | None = None,
        spec: Spec | None = None,
        domain: str = "",
        depth: int | None = None,
        **attributes: Any,
    ) -> Any:
        """Adds a node; returns its output, or a tuple of outputs if there are several.

        Numbers among the operands become constants in the dtype of the first tensor. If ONNX has no such operator for
        that dtype, it computes in a wider one between casts. dtype: of the first output; spec: its shape and dtype,
        where a form reads its sizes again. element_type is ONNX's attribute dtype.
        """
        if "element_type" in attributes:
            attributes["dtype"] = attributes.pop("element_type")
        main = next(operand for operand in operands if isinstance(operand, Tensor)).dtype if operands else ""
        if op == "Where":
            main = next((x.dtype for x in operands[1:] if isinstance(x, Tensor)), "float32")
        compute = compute_dtype(op, main) if not domain else main
        if op in _POINTWISE and len(operands) > 1:
            filled = self._filled(op, operands) if not attributes else None
            if filled is not None:
                return filled
            operands = self._without_fills(operands)
        inputs = [self._operand(op, index, operand, main, compute) for index, operand in enumerate(operands)]
        folded = self._folded_number(op, inputs) if not attributes and outputs == 1 else None
        if folded is not None:
            return self.cast(folded, dtype or main)
        own = result_dtype(op, compute)
        given = dtype or (main if own == compute else own)
        made = self._node(op, inputs, outputs, own if compute != main else given, domain, depth, attributes)
        if spec is None and op in _POINTWISE:
            spec = self._broadcast(inputs, given)
        if spec is not None:
            made[0].spec = Spec(spec.shapes, made[0].dtype)
        if op in _REARRANGING and isinstance(operands[0], Tensor) and id(operands[0]) in self._from_bool:
            self._note_flags(made[0], op, operands, spec, attributes)
        first = self.cast(made[0], given) if compute != main else made[0]
        if outputs == 1:
            return first
        others = made[1:] if compute == main or op not in _SAME_TYPE else [self.cast(other, main) for other in made[1:]]
        return (first, *others)

    def _note_flags(
        self, made: Tensor, op: str, operands: Sequence[Operand], spec: Spec | None, attributes: dict[str, Any]
    ) -> None:
        """Lets truth() rearrange the bool tensor itself instead of a cast of it."""
        source = self._from_bool[id(operands[0])][1]
        self._from_bool[id(made)] = (made, lambda: self.emit(op, source(), *operands[1:], spec=spec, **attributes))

    def fill_of(self, x: Tensor) -> float | None:
        """The number in all places of a tensor; None: it may hold several."""
        if id(x) in self._fills:
            return self._fills[id(x)][1]
        if x.const is not None and 0 < x.const.size <= 64 and (x.const == x.const.flat[0]).all():
            return x.const.flat[0].item()
        return None

    def _filled(self, op: str, operands: Sequence[Operand]) -> Tensor | None:
        """Arithmetic of a filled tensor and a number: another filled tensor."""
        function = _ARITHMETIC.get(op)
        filled = [x for x in operands if isinstance(x, Tensor) and id(x) in self._fills and x.const is None]
        others = [x for x in operands if not any(x is y for y in filled)]
        if function is None or len(filled) != 1 or any(isinstance(x, Tensor) for x in others):
            return None
        if not filled[0].dtype.startswith("float"):
            return None
        values = [self._fills[id(x)][1] if isinstance(x, Tensor) else x for x in operands]
        return self.full(filled[0].dims, float(function(*values)), filled[0].dtype)

    def _without_fills(self, operands: Sequence[Operand]) -> tuple[Operand, ...]:
        """Numbers in place of tensors that hold one number, where another operand has the shape of the result."""
        tensors = [operand for operand in operands if isinstance(operand, Tensor)]
        whole = self._broadcast(tensors, "")
        full = [x for x in tensors if id(x) not in self._fills and whole and x.spec and x.spec.shapes == whole.shapes]
        if not full:
            return tuple(operands)
        return tuple(
            self.const(self._fills[id(x)][1], x.dtype) if isinstance(x, Tensor) and id(x) in self._fills else x
            for x in operands
        )

    def _folded_number(self, op: str, inputs: Sequence[Tensor | None]) -> Tensor | None:
        """The result of arithmetic with a few constants."""
        function = _ARITHMETIC.get(op)
        if function is None or any(x is None or x.const is None or x.const.size > 64 for x in inputs):
            return None
        if op == "Div" and not inputs[0].dtype.startswith("float"):  # type: ignore[union-attr]
            return None
        with np.errstate(all="ignore"):
            made = function(*(x.const for x in inputs if x is not None))
        return self.const(np.asarray(made, dtype=numpy_dtype(inputs[0].dtype)))  # type: ignore[union-attr]

    def _operand(self, op: str, index: int, operand: Operand, main: str, compute: str) -> Tensor | None:
        if operand is None:
            return None
        if not isinstance(operand, Tensor):
            return self.const(operand, compute)
        if op == "Where" and index == 0:
            return operand  # the condition
        if compute != main and operand.dtype == main and (index == 0 or op not in _FIRST_INPUT_ONLY):
            return self.cast(operand, compute)
        return operand

    def _node(
        self,
        op: str,
        inputs: list[Tensor | None],
        outputs: int,
        dtype: str,
        domain: str,
        depth: int | None,
        attributes: dict[str, Any],
    ) -> tuple[Tensor, ...]:
        while inputs and inputs[-1] is None:
            inputs.pop()
        attributes = {key: value for key, value in attributes.items() if value is not None}
        graphs = self.writer.graphs if depth is None else self.writer.graphs[: depth + 1]
        key = None
        if op not in _NOT_SHARED and not any(isinstance(value, Graph) for value in attributes.values()):
            key = (op, domain, outputs, tuple(map(id, inputs)), repr(sorted(attributes.items())))
            for graph in reversed(graphs):
                if key in graph.made:
                    return graph.made[key]
        label = self.writer.unique(f"{self.label}/{op}" if self.label else op)
        made = tuple(
            Tensor(label if outputs == 1 else f"{label}_{index}", dtype, depth=graphs[-1].depth)
            for index in range(outputs)
        )
        record = NodeRecord(op, inputs, list(made), attributes, label, domain, self.doc, self.block)
        self.writer.add(record, graphs[-1].depth)
        if key is not None:
            graphs[-1].made[key] = made
        return made

    def _broadcast(self, inputs: Sequence[Tensor | None], dtype: str) -> Spec | None:
        specs = [tensor.spec for tensor in inputs if tensor is not None]
        if any(spec is None for spec in specs):
            return None
        shapes = [np.broadcast_shapes(*trial) for trial in zip(*(spec.shapes for spec in specs if spec), strict=True)]
        return Spec(shapes, dtype)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        """The same values in another dtype."""
        if x.dtype == dtype:
            return x
        if dtype == "bool" and id(x) in self._from_bool:
            return self._from_bool[id(x)][1]()
        if x.const is not None and x.const.size <= 4096:
            with np.errstate(invalid="ignore", over="ignore"):
                return self.const(x.const, dtype)
        made = self._noted(self.emit("Cast", x, dtype=dtype, to=type_code(dtype)), x.spec)
        if x.dtype == "bool":
            self._from_bool[id(made)] = (made, lambda: x)
        return made

    @staticmethod
    def _noted(x: Tensor, spec: Spec | None) -> Tensor:
        if x.spec is None and spec is not None:
            x.spec = Spec(spec.shapes, x.dtype)
        return x

    def like(self, x: Tensor, value: float) -> Tensor:
        """A number in the dtype of a tensor."""
        return self.const(value, x.dtype)

    # ---------------------------------------------------------------------------------------------------------- sizes
    def vector(self, numbers: Sequence[Number]) -> Tensor:
        """Sizes as a vector of int64."""
        numbers = [_exact(number) for number in numbers]
        if not any(isinstance(number, Open) for number in numbers):
            return self.ints([int(number) for number in numbers])
        parts: list[Tensor] = []
        index = 0
        while index < len(numbers):
            index += self._next_part(numbers, index, parts)
        if len(parts) == 1:
            return parts[0]
        depth = max(part.depth for part in parts)
        spec = Spec([(len(numbers),)] * self.num_trials, "int64")
        made: Tensor = self.emit("Concat", *parts, axis=0, dtype="int64", spec=spec, depth=depth)
        return made

    def _next_part(self, numbers: Sequence[Number], index: int, parts: list[Tensor]) -> int:
        """Adds the tensor of one or more sizes that stand beside each other; returns their count."""
        count = 1
        first = numbers[index]
        if not isinstance(first, Open):
            while index + count < len(numbers) and not isinstance(numbers[index + count], Open):
                count += 1
            parts.append(self.ints([int(number) for number in numbers[index : index + count]]))
            return count
        form = self._form_of(first)
        if isinstance(form, Element):
            return self._next_elements(numbers, index, form, parts)
        if not isinstance(form, Dim):
            parts.append(self.size(first))
            return 1
        while index + count < len(numbers) and self._follows(numbers[index + count], form, count):
            count += 1
        parts.append(self._sizes_of(form.tensor, form.axis, form.axis + count))
        return count

    def _next_elements(self, numbers: Sequence[Number], index: int, first: Element, parts: list[Tensor]) -> int:
        count = 1
        while index + count < len(numbers):
            form = getattr(numbers[index + count], "form", None)
            if not isinstance(form, Element) or form.tensor is not first.tensor or form.index != first.index + count:
                break
            count += 1
        parts.append(self._elements(first, count))
        return count

    def _elements(self, first: Element, count: int) -> Tensor:
        """Values of a tensor as a vector of int64."""
        whole = self.cast(first.tensor, "int64")
        flat = whole if whole.ndim == 1 else self.reshape(whole, [product(whole.dims)])
        return flat if flat.dim(0) == count else self.slice(flat, 0, first.index, first.index + count)

    def _follows(self, number: Number, first: Dim, distance: int) -> bool:
        axis = first.axis + distance
        if axis >= first.tensor.ndim:
            return False
        own = first.tensor.dim(axis)
        return number == own if isinstance(number, Open) else own == number

    def _form_of(self, number: Open) -> Any:
        form = number.form
        if isinstance(form, (Dim, Element, tuple)):
            return form
        known: dict[tuple[int, ...], Dim] = {}
        for graph in self.writer.graphs:
            known.update(graph.sizes)
        return explain(number.trials, known)

    def size(self, number: Number) -> Tensor:
        """A size as a vector of one int64."""
        if not isinstance(number, Open):
            return self.ints([number])
        form = self._form_of(number)
        if isinstance(form, Dim):
            return self._sizes_of(form.tensor, form.axis, form.axis + 1)
        if isinstance(form, Element):
            return self._elements(form, 1)
        operator, left, right = form
        a, b = self.size(left), self.size(right)
        name = {"+": "Add", "-": "Sub", "*": "Mul", "//": "Div", "%": "Mod", "max": "Max", "min": "Min"}[operator]
        spec = Spec([(1,)] * self.num_trials, "int64")
        if operator == "//" and _may_be_negative(left):
            a = self.emit("Sub", a, self.emit("Mod", a, b, depth=max(a.depth, b.depth)), depth=max(a.depth, b.depth))
        made: Tensor = self.emit(name, a, b, spec=spec, depth=max(a.depth, b.depth))
        return made

    def axis_size(self, x: Tensor, axis: int) -> Tensor:
        """The size of an axis as the model runs, a vector of one int64."""
        return self._sizes_of(x, axis, axis + 1)

    def _sizes_of(self, x: Tensor, begin: int, end: int) -> Tensor:
        spec = Spec([(end - begin,)] * self.num_trials, "int64")
        rank = x.ndim if x.spec is not None else -1
        saved, self.label = self.label, x.name.rsplit("/", 1)[0] if "/" in x.name else x.name
        try:
            made: Tensor
            if self.opset >= 15:
                bounds: dict[str, Any] = {"start": begin or None, "end": None if end == rank else end}
                made = self.emit("Shape", x, dtype="int64", spec=spec, depth=x.depth, **bounds)
                return made
            made = self.emit("Shape", x, dtype="int64", depth=x.depth)
            if end - begin != rank:
                limits = self.ints([begin]), self.ints([end])
                made = self.emit("Slice", made, *limits, dtype="int64", depth=x.depth)
            made.spec = spec
            return made
        finally:
            self.label = saved

    def number(self, number: Number | float, dtype: str) -> Tensor:
        """A size, or a number, as a tensor of shape ()."""
        if not isinstance(number, Open):
            return self.const(number, dtype)
        return self.cast(self.squeeze(self.size(number), [0]), dtype)

    def shape_of(self, x: Tensor) -> Tensor:
        """The shape of a tensor as a vector of int64."""
        return self.vector(x.dims)

    # -------------------------------------------------------------------------------------------------------- shaping
    def reshape(self, x: Tensor, numbers: Sequence[Number]) -> Tensor:
        """Another shape with the same elements."""
        numbers = list(numbers)
        spec = Spec(_shapes(numbers, self.num_trials), x.dtype)
        if x.spec is not None and x.spec.shapes == spec.shapes:
            return x
        if x.const is not None and spec.is_fixed:
            return self.const(x.const.reshape(spec.shapes[0]))
        if x.spec is not None and spec.is_fixed and not product(x.dims) == product(numbers):
            raise does_not_follow(f"the number of elements of '{x.name}'", product(x.dims))
        zero = 1 if any(not isinstance(number, Open) and number == 0 for number in numbers) else None
        if zero is not None and self.opset < 14:  # a tensor without elements
            return self.full(numbers, 0, x.dtype)
        target = self._target(x, numbers, spec) if zero is None else self.vector(numbers)
        made: Tensor = self.emit("Reshape", x, target, allowzero=zero, spec=spec)
        return made

    def _target(self, x: Tensor, numbers: Sequence[Number], spec: Spec) -> Tensor:
        open_axes = [axis for axis, number in enumerate(numbers) if isinstance(number, Open)]
        if open_axes and spec.has_elements:
            # 0 copies a size of the input; -1 stands for one size that the others determine.
            kept = [axis for axis in open_axes if x.spec is not None and axis < x.ndim and x.dim(axis) == numbers[axis]]
            left = [axis for axis in open_axes if axis not in kept]
            if not left and len(kept) == 1:
                left, kept = kept, []
            if len(left) <= 1:
                codes = [0 if axis in kept else -1 if axis in left else n for axis, n in enumerate(numbers)]
                return self.ints(codes)  # type: ignore[arg-type]
        return self.vector(numbers)

    def transpose(self, x: Tensor, perm: Sequence[int]) -> Tensor:
        """Another order of the axes."""
        perm = [int(axis) % len(perm) for axis in perm]
        if perm == sorted(perm):
            return x
        spec = x.spec and Spec([tuple(shape[axis] for axis in perm) for shape in x.spec.shapes], x.dtype)
        made: Tensor = self.emit("Transpose", x, perm=perm, spec=spec)
        return made

    def move_axis(self, x: Tensor, source: int, target: int) -> Tensor:
        """One axis at another place."""
        order = [axis for axis in range(x.ndim) if axis != source % x.ndim]
        order.insert(target % x.ndim, source % x.ndim)
        return self.transpose(x, order)

    def unsqueeze(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """New axes of size 1, at these places of the result."""
        if not axes:
            return x
        spec = None
        if x.spec is not None:
            places = sorted(axis % (x.ndim + len(axes)) for axis in axes)
            shapes = []
            for shape in x.spec.shapes:
                sizes = list(shape)
                for place in places:
                    sizes.insert(place, 1)
                shapes.append(tuple(sizes))
            spec = Spec(shapes, x.dtype)
            if x.const is not None:
                return self.const(x.const.reshape(shapes[0]))
        made: Tensor = self.emit("Unsqueeze", x, self.ints(axes), spec=spec)
        return made

    def squeeze(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        """The tensor without these axes, whose size is 1."""
        if not axes:
            return x
        spec = None
        if x.spec is not None:
            gone = {axis % x.ndim for axis in axes}
            shapes = [tuple(s for axis, s in enumerate(shape) if axis not in gone) for shape in x.spec.shapes]
            spec = Spec(shapes, x.dtype)
        made: Tensor = self.emit("Squeeze", x, self.ints(axes), spec=spec)
        return made

    def expand(self, x: Tensor, numbers: Sequence[Number]) -> Tensor:
        """Repeats axes of size 1, and all elements along new axes in front."""
        spec = Spec(_shapes(numbers, self.num_trials), x.dtype)
        if x.spec is not None and x.spec.shapes == spec.shapes:
            return x
        repeats = list(numbers)
        for axis in range(
            1, x.ndim + 1 if x.spec is not None else 1
        ):  # Expand keeps the size of the tensor where it is given 1
            if x.dim(-axis) == repeats[-axis]:
                repeats[-axis] = 1
        made: Tensor = self.emit("Expand", x, self.vector(repeats), spec=spec)
        return made

    def full(self, numbers: Sequence[Number], value: float, dtype: str) -> Tensor:
        """A tensor with one number in all places."""
        spec = Spec(_shapes(numbers, self.num_trials), dtype)
        if spec.is_fixed and int(np.prod(spec.shapes[0])) <= 64:
            made = self.const(np.full(spec.shapes[0], value), dtype)
        else:
            made = self.full_of(self.vector(numbers), value, dtype, spec)
        if numbers:
            self._fills[id(made)] = (made, value)
        return made

    def full_of(self, sizes: Tensor, value: float, dtype: str, spec: Spec | None = None) -> Tensor:
        """A tensor with one number in all places; sizes: its shape, a vector of int64."""
        if dtype == "bfloat16" and self.opset < 20:
            return self.cast(self._noted(self.full_of(sizes, value, "float32"), spec), dtype)
        element = onnx().numpy_helper.from_array(np.array([value]).astype(numpy_dtype(dtype)))
        made: Tensor = self.emit("ConstantOfShape", sizes, dtype=dtype, spec=spec, value=element)
        return made

    def slice(
        self, x: Tensor, axis: int, begin: Number | None, end: Number | None, step: int = 1, spec: Spec | None = None
    ) -> Tensor:
        """The elements begin, begin + step, ... before end along an axis; None: from the start, to the end."""
        return self.slices(x, [axis], [begin], [end], [step], spec)

    def slices(
        self,
        x: Tensor,
        axes: Sequence[int],
        begins: Sequence[Number | None],
        ends: Sequence[Number | None],
        steps: Sequence[Number],
        spec: Spec | None = None,
    ) -> Tensor:
        """Slices along several axes, with Python's rules; steps that are open must be positive."""
        kept = [
            i
            for i, step in enumerate(steps)
            if not (step == 1 and (begins[i] is None or begins[i] == 0) and ends[i] is None)
        ]
        if not kept:
            return x
        forward = [isinstance(step, Open) or step > 0 for step in steps]
        first = [(0 if forward[i] else _FULL_INT32) if begins[i] is None else begins[i] for i in kept]
        last = [(_FULL_INT32 if forward[i] else -_FULL_INT32) if ends[i] is None else ends[i] for i in kept]
        chosen, strides = [axes[i] for i in kept], [steps[i] for i in kept]
        if spec is None and x.spec is not None:
            spec = _sliced(x.spec, chosen, first, last, strides)
        more = [self.ints(chosen)] + ([self.vector(strides)] if any(stride != 1 for stride in strides) else [])
        made: Tensor = self.emit("Slice", x, self.vector(first), self.vector(last), *more, spec=spec)  # type: ignore[arg-type]
        return made

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """The tensors one behind the other along an axis."""
        if len(parts) == 1:
            return parts[0]
        spec = None
        if all(part.spec is not None for part in parts):
            axis = axis % parts[0].ndim
            shapes = [
                (*trial[0][:axis], sum(shape[axis] for shape in trial), *trial[0][axis + 1 :])
                for trial in zip(*(part.shapes for part in parts), strict=True)
            ]
            spec = Spec(shapes, parts[0].dtype)
        made: Tensor = self.emit("Concat", *parts, axis=axis, spec=spec)
        return made

    def split(self, x: Tensor, axis: int, sizes: Sequence[int]) -> tuple[Tensor, ...]:
        """Parts of these sizes along an axis."""
        if len(sizes) == 1:
            return (x,)
        made: tuple[Tensor, ...] = self.emit("Split", x, self.ints(sizes), axis=axis, outputs=len(sizes))
        if x.spec is not None:
            axis = axis % x.ndim
            for part, size in zip(made, sizes, strict=True):
                part.spec = Spec([(*s[:axis], size, *s[axis + 1 :]) for s in x.spec.shapes], x.dtype)
        return made

    def pad(
        self, x: Tensor, before: Sequence[Number], after: Sequence[Number], mode: str = "constant", value: float = 0
    ) -> Tensor:
        """Elements before and after the tensor along each axis."""
        if all(not isinstance(n, Open) and n == 0 for n in (*before, *after)):
            return x
        spec = None
        if x.spec is not None:
            sizes = [a + n + b for a, n, b in zip(before, x.spec.numbers, after, strict=True)]
            spec = Spec(_shapes(sizes, self.num_trials), x.dtype)
        fill = [value] if mode == "constant" and value != 0 else []
        made: Tensor = self.emit("Pad", x, self.vector([*before, *after]), *fill, mode=mode, spec=spec)
        return made

    # --------------------------------------------------------------------------------------------------------- common
    def reduce(self, kind: str, x: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
        """ReduceSum, ReduceMax and so on over axes."""
        axes = sorted(axis % x.ndim for axis in axes)
        if not axes:
            return x
        as_input = kind == "Sum" or self.opset >= 18
        spec = self.reduce_spec(x, axes, keepdims) if x.spec is not None else None
        inputs = [x, self.ints(axes)] if as_input else [x]
        attributes: dict[str, Any] = {} if as_input else {"axes": axes}
        made: Tensor = self.emit(f"Reduce{kind}", *inputs, keepdims=int(keepdims), spec=spec, **attributes)
        return made

    @staticmethod
    def reduce_spec(x: Tensor, axes: Sequence[int], keepdims: bool = False, dtype: str = "") -> Spec:
        """The spec of a tensor without some of its axes, or with 1 there."""
        gone = {axis % x.ndim for axis in axes}
        shapes = [
            tuple(1 if axis in gone else size for axis, size in enumerate(shape) if keepdims or axis not in gone)
            for shape in x.shapes
        ]
        return Spec(shapes, dtype or x.dtype)

    def where(self, condition: Tensor, a: Operand, b: Operand) -> Tensor:
        """Elements of a where the condition holds, else of b; the condition may have any dtype."""
        made: Tensor = self.emit("Where", self.truth(condition), a, b)
        return made

    def truth(self, x: Tensor) -> Tensor:
        """Whether elements differ from zero, as bool."""
        if x.dtype == "bool":
            return x
        if id(x) in self._from_bool:
            return self._from_bool[id(x)][1]()
        made: Tensor = self.emit("Not", self.emit("Equal", x, 0))
        return made

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """The product of matrices, over leading axes."""
        spec = None
        if a.spec is not None and b.spec is not None and a.ndim >= 2 and b.ndim >= 2:
            shapes = [
                (*np.broadcast_shapes(s[:-2], t[:-2]), s[-2], t[-1]) for s, t in zip(a.shapes, b.shapes, strict=True)
            ]
            spec = Spec(shapes, a.dtype)
        made: Tensor = self.emit("MatMul", a, b, spec=spec)
        return made

    def swap_last(self, x: Tensor) -> Tensor:
        """The last two axes swapped."""
        rank = x.ndim
        return self.transpose(x, [*range(rank - 2), rank - 1, rank - 2])

    def iota(self, count: Number, dtype: str = "int64") -> Tensor:
        """0, 1, ... count - 1."""
        if not isinstance(count, Open):
            return self.const(np.arange(count), dtype)
        spec = Spec([(n,) for n in count.trials], "int64")
        made = self.emit(
            "Range", self.const(0, "int64"), self.number(count, "int64"), self.const(1, "int64"), spec=spec
        )
        return self.cast(made, dtype)

    def flat(self, x: Tensor) -> Tensor:
        """All elements as a vector."""
        return self.reshape(x, [product(x.dims)])


def _exact(number: Any) -> Number:
    return number if isinstance(number, Open) else int(number)


def _may_be_negative(number: Number) -> bool:
    return any(trial < 0 for trial in number.trials) if isinstance(number, Open) else number < 0


def _shapes(numbers: Sequence[Number], trials: int) -> list[Shape]:
    return [
        tuple(number.trials[trial] if isinstance(number, Open) else int(number) for number in numbers)
        for trial in range(trials)
    ]


def _sliced(spec: Spec, axes: Sequence[int], begins: Any, ends: Any, steps: Sequence[Number]) -> Spec:
    shapes = []
    for trial, shape in enumerate(spec.shapes):
        sizes = list(shape)
        for axis, *bounds in zip(axes, begins, ends, steps, strict=True):
            first, last, step = (n.trials[trial] if isinstance(n, Open) else n for n in bounds)
            last = None if step < 0 and last <= -_FULL_INT32 else last
            sizes[axis] = len(range(*slice(first, last, step).indices(shape[axis])))
        shapes.append(tuple(sizes))
    return Spec(shapes, spec.dtype)
