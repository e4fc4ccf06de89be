"""Operators written in Python: subclass :class:`CustomOp` and :class:`CustomOpProp`, register the latter, then call
``mx.nd.Custom(..., op_type="name")`` on arrays, ``mx.sym.Custom`` in graphs, ``F.Custom`` in blocks.

The code runs in the calling thread, with plain arrays: it may wait for them and use NumPy. In a graph it is one
instruction of the plan: a hybridized block with such an operator waits for its result, and the rest of the graph is
optimized as usual.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _core, autograd
from ._lazy_names import names_from
from ._public_names import dir_of
from .attribute import attributes_for
from .context import Context
from .errors import GradientError, ParamError, ShapeError, not_overridden
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError
from .ndarray import NDArray, empty, zeros

if TYPE_CHECKING:
    from ._python_operator import NDArrayOp, NumpyOp, PythonOp

__all__ = [
    "Custom",
    "CustomOp",
    "CustomOpProp",
    "NDArrayOp",
    "NumpyOp",
    "OperatorArguments",
    "PythonOp",
    "get_all_registered_operators",
    "get_operator_arguments",
    "register",
]


__getattr__, __dir__ = names_from(
    __name__, {"_python_operator": "NDArrayOp NumpyOp PythonOp"}, {"context": ".context", "symbol": ".symbol"}
)


class CustomOp:
    """The implementation of an operator: override ``forward`` and ``backward``.

    An object serves one call and its gradient at a time; a graph reuses it for later calls.
    """

    def forward(
        self, is_train: bool, req: list[str], in_data: list[NDArray], out_data: list[NDArray], aux: list[NDArray]
    ) -> None:
        """Computes outputs: ``self.assign(out_data[i], req[i], value)``. req is 'null', 'write' or 'add' per output."""
        raise not_overridden(self, "forward()")

    def backward(
        self,
        req: list[str],
        out_grad: list[NDArray],
        in_data: list[NDArray],
        out_data: list[NDArray],
        in_grad: list[NDArray],
        aux: list[NDArray],
    ) -> None:
        """Computes input gradients: ``self.assign(in_grad[i], req[i], value)``."""
        raise not_overridden(self, "backward()")

    def lazy_step(
        self,
        is_train: bool,
        req: list[str],
        in_data: list[NDArray | None],
        out_data: list[NDArray],
        aux: list[NDArray],
    ) -> Sequence[int]:
        """Replaces ``forward`` for a lazy operator (``CustomOpProp(lazy=True)``): runs one step.

        in_data[i] is None until input i was requested. Returns the indices of the inputs that it needs next, and is
        called again when they are computed; an empty sequence when all outputs are set. out_data keeps the values of
        earlier steps. In a graph, nodes that only lead to inputs that are never requested are not computed. For those
        inputs, ``backward`` has None in in_data and 'null' in req; their gradient is zero.
        """
        raise not_overridden(self, "lazy_step()")

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Writes src into dst by req: 'write' and 'inplace' replace, 'add' adds, 'null' does nothing."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src


class CustomOpProp:
    """The declaration of an operator; ``__init__`` receives the keyword arguments of the call as strings.

    need_top_grad: False for operators at the end of a network that compute their gradient without an output gradient.
    lazy: True for operators that request their inputs one by one (:meth:`CustomOp.lazy_step`).
    """

    def __init__(self, need_top_grad: bool = True, lazy: bool = False) -> None:
        self.need_top_grad_ = need_top_grad
        self.lazy_ = lazy

    def infer_shape(self, in_shape: list[tuple[int, ...]]) -> tuple[Any, ...]:
        """Returns the shapes of inputs, outputs and (optional) auxiliary states. Default: all like input 0."""
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> tuple[Any, ...]:
        """Returns the dtypes of inputs, outputs and auxiliary states. Default: all like input 0."""
        first = in_type[0]
        return (
            [first] * len(self.list_arguments()),
            [first] * len(self.list_outputs()),
            [first] * len(self.list_auxiliary_states()),
        )

    def list_arguments(self) -> list[str]:
        """Returns the names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Returns the names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Returns the names of states that forward() and backward() may change; they follow the inputs in a call."""
        return []

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Lists the values that backward() reads. It only serves as documentation: all values are kept."""
        return ([*out_grad] if self.need_top_grad_ else []) + [*in_data, *out_data]

    def create_operator(self, ctx: str, in_shapes: list[tuple[int, ...]], in_dtypes: list[Any]) -> CustomOp:
        """Creates the operator for inputs of these shapes and dtypes."""
        raise not_overridden(self, "create_operator()")


_REGISTERED: dict[str, Callable[..., CustomOpProp]] = {}


def register(reg_name: str) -> Callable[[type[CustomOpProp]], type[CustomOpProp]]:
    """Class decorator that registers a CustomOpProp as op_type reg_name; a later one with that name replaces it."""

    def do_register(prop_cls: type[CustomOpProp]) -> type[CustomOpProp]:
        if not (isinstance(prop_cls, type) and issubclass(prop_cls, CustomOpProp)):
            raise HybridNetTypeError("operator.register", expected="a subclass of CustomOpProp", given=repr(prop_cls))
        _REGISTERED[reg_name] = prop_cls
        _core.forget_custom_operators()
        return prop_cls

    return do_register


class OperatorArguments(NamedTuple):
    """The inputs and parameters of an operator, in the order of its signature."""

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """Returns the names of all operators, including aliases, without helpers that only gradients use."""
    return sorted(
        {name for primary, aliases, internal in _core.op_names() if not internal for name in (primary, *aliases)}
    )


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Returns names and types of an operator's inputs and parameters. Raises ParamError for an unregistered name."""
    op = _core.describe_op(op_name)
    array = "NDArray-or-Symbol[]" if op["variadic"] else "NDArray-or-Symbol"
    pairs = [(item["name"], array) for item in op["inputs"]] + [
        (field["name"], _type_text(field)) for field in op["fields"]
    ]
    return OperatorArguments(len(pairs), [name for name, _ in pairs], [text for _, text in pairs])


def _type_text(field: dict[str, Any]) -> str:
    """Returns a type in MXNet's print format, such as "float, optional, default=0.9"."""
    kind = "{" + ", ".join(map(repr, field["choices"])) + "}" if field.get("choices") else field["kind"]
    return f"{kind}, required" if field["required"] else f"{kind}, optional, default={field['default']}"


def get_all_registered_operators_grouped() -> dict[str, list[str]]:
    """Maps operator names to their names and aliases."""
    return {primary: [primary, *aliases] for primary, aliases, internal in _core.op_names() if not internal}


# ------------------------------------------------------------------------------------------------------------- calling
def _prop(op_type: str, attributes: str) -> CustomOpProp:
    made = _REGISTERED.get(op_type)
    if made is None:
        known = ", ".join(sorted(_REGISTERED)) or "none"
        raise ParamError(
            "operator 'Custom', input 'op_type'",
            expected=f"a registered operator ({known})",
            given=repr(op_type),
            fix=f"decorate its CustomOpProp with @mx.operator.register({op_type!r}), before the model is loaded",
        )
    return made(**json.loads(attributes))


def _three(answer: Any, what: str, op_type: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Returns the three parts of an infer_shape or infer_type result; the third may be missing."""
    parts = [list(part) for part in answer]
    if len(parts) not in (2, 3):
        raise HybridNetTypeError(f"operator {op_type!r}: {what} must return two or three lists", given=str(len(parts)))
    return parts[0], parts[1], parts[2] if len(parts) == 3 else []


def _shapes(prop: CustomOpProp, given: list[Any], op_type: str) -> tuple[list[Any], list[Any], list[Any]]:
    inputs, outputs, states = _three(prop.infer_shape(given), "infer_shape", op_type)
    wanted = (len(prop.list_arguments()), len(prop.list_outputs()), len(prop.list_auxiliary_states()))
    if (len(inputs), len(outputs), len(states)) != wanted:
        raise ShapeError(
            (
                f"operator {op_type!r}: infer_shape must return shapes of {wanted[0]} inputs, {wanted[1]} outputs "
                f"and {wanted[2]} auxiliary states"
            ),
            given=f"{len(inputs)}, {len(outputs)} and {len(states)}",
        )
    return inputs, outputs, states


class LibraryHooks:
    """Callbacks of the library's operator ``Custom``."""

    @staticmethod
    def num_outputs(op_type: str, attributes: str) -> int:
        return len(_prop(op_type, attributes).list_outputs())

    @staticmethod
    def num_arguments(op_type: str, attributes: str) -> int:
        return len(_prop(op_type, attributes).list_arguments())

    @staticmethod
    def infer(op_type: str, attributes: str, shapes: list[Any], dtypes: list[Any]) -> tuple[list[Any], ...]:
        prop = _prop(op_type, attributes)
        count, outputs = len(prop.list_arguments()), len(prop.list_outputs())
        in_shapes, out_shapes = list(shapes), [None] * outputs
        in_types, out_types = list(dtypes), [None] * outputs
        if count == 0 or shapes[0] is not None:
            args, out_shapes, states = _shapes(prop, [s if s is not None else () for s in shapes[:count]], op_type)
            in_shapes = [
                tuple(shape) if len(shape) or known == () else known for shape, known in zip(args + states, shapes)
            ]
        if count == 0 or dtypes[0] is not None:
            known = [dtype if dtype is not None else dtypes[0] for dtype in dtypes[:count]]
            args, out_types, states = _three(prop.infer_type(known), "infer_type", op_type)
            in_types = args + states
        return in_shapes, in_types, [None if s is None else tuple(s) for s in out_shapes], out_types

    @staticmethod
    def is_lazy(op_type: str, attributes: str) -> bool:
        return bool(getattr(_prop(op_type, attributes), "lazy_", False))

    @staticmethod
    def link(op_type: str, attributes: str, shapes: list[Any], dtypes: list[Any]) -> _Linked:
        return _Linked(op_type, _prop(op_type, attributes), shapes, dtypes)

    @staticmethod
    def backward(
        kept: _Kept,
        out_grads: list[NDArray],
        inputs: list[NDArray],
        outputs: list[NDArray],
        in_grads: list[NDArray],
    ) -> None:
        kept.backward(out_grads, inputs, outputs, in_grads)

    @staticmethod
    def call(op_type: str, attributes: str, inputs: list[NDArray]) -> list[NDArray]:
        shapes, dtypes = [array.shape for array in inputs], [array.dtype for array in inputs]
        try:
            return _Call(op_type, _prop(op_type, attributes), shapes, dtypes, inputs.__getitem__).run(inputs)
        except Exception as error:
            _add_place(error, _core.current_graph_position())
            raise

    @staticmethod
    def call_lazy(
        op_type: str, attributes: str, shapes: list[Any], dtypes: list[Any], get: Callable[[int], NDArray]
    ) -> list[NDArray]:
        try:
            return _Call(op_type, _prop(op_type, attributes), shapes, dtypes, get).run()
        except Exception as error:
            _add_place(error, _core.current_graph_position())
            raise


def _add_place(error: Exception, place: str) -> None:
    """Adds the place in the graph to the error, unless it has one."""
    notes = getattr(error, "__notes__", [])
    if not place or any(note.startswith("In node ") for note in notes):
        return
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(f"In node {place}")
    else:
        error.__notes__ = [*notes, f"In node {place}"]  # type: ignore[attr-defined]


class _Linked:
    """An operator in a plan, for inputs of these shapes and dtypes. ``idle`` holds objects that are not in use."""

    def __init__(self, op_type: str, prop: CustomOpProp, shapes: list[Any], dtypes: list[Any]) -> None:
        self.op_type, self.prop = op_type, prop
        count = len(prop.list_arguments())
        _check_count(op_type, prop, len(shapes))
        self.shapes = _shapes(prop, shapes[:count], op_type)[0]
        self.dtypes = _three(prop.infer_type(dtypes[:count]), "infer_type", op_type)[0]
        self.idle: list[CustomOp] = []

    def forward(
        self, inputs: list[NDArray], states: list[NDArray], outputs: list[NDArray], training: bool, keep: bool
    ) -> _Kept | None:
        """Fills outputs, may change states. keep: returns data for the gradient. An object that raised is dropped."""
        ctx = next((array.context for array in (*inputs, *states)), Context.default_ctx)
        try:
            op = self.idle.pop() if self.idle else self.prop.create_operator(str(ctx), self.shapes, self.dtypes)
            with autograd.pause(train_mode=training), _Timed(self.op_type):
                op.forward(
                    is_train=training, req=["write"] * len(outputs), in_data=inputs, out_data=outputs, aux=states
                )
        except Exception as error:
            _add_place(error, _core.current_graph_position())
            raise
        if keep:
            return _Kept(self, op, states, _core.current_graph_position())
        self.idle.append(op)
        return None


class _Kept:
    """The data that a forward run in a plan keeps for its gradient: the operator's object, idle again after it."""

    def __init__(self, linked: _Linked, op: CustomOp, states: list[NDArray], place: str) -> None:
        self.linked, self.op, self.states, self.place = linked, op, states, place

    def __del__(self) -> None:
        self.linked.idle.append(self.op)

    def backward(
        self, out_grads: list[NDArray], inputs: list[NDArray], outputs: list[NDArray], in_grads: list[NDArray]
    ) -> None:
        """Fills in_grads, which hold zeros."""
        try:
            with autograd.pause(train_mode=True), _Timed(f"_backward_{self.linked.op_type}"):
                self.op.backward(
                    req=["write"] * len(in_grads),
                    out_grad=out_grads,
                    in_data=inputs,
                    out_data=outputs,
                    in_grad=in_grads,
                    aux=self.states,
                )
        except Exception as error:
            _add_place(error, self.place)
            raise


def _check_count(op_type: str, prop: CustomOpProp, given: int) -> None:
    names = [*prop.list_arguments(), *prop.list_auxiliary_states()]
    if given != len(names):
        raise ParamError(
            f"operator {op_type!r}", expected=f"{len(names)} inputs ({', '.join(names)})", given=str(given)
        )


class _Call:
    """One call and the data for its gradient. get(i) is input i; a lazy operator does not request all of them."""

    def __init__(
        self, op_type: str, prop: CustomOpProp, shapes: list[Any], dtypes: list[Any], get: Callable[[int], NDArray]
    ) -> None:
        self.count = len(prop.list_arguments())
        wanted = self.count + len(prop.list_auxiliary_states())
        _check_count(op_type, prop, len(shapes))
        self.op_type, self.prop, self.get = op_type, prop, get
        self.lazy = bool(getattr(prop, "lazy_", False))
        self.inputs: list[NDArray | None] = [None] * self.count
        self.args: list[Any] = [None] * self.count  # arrays, or None for inputs that were not requested
        self.ctx: Context | None = None
        # The operator's object needs all shapes and dtypes: inputs of unknown spec are computed.
        eager = [i for i in range(self.count) if not self.lazy or shapes[i] is None or dtypes[i] is None]
        for i in eager:
            self._read(i)
        self.specs = [
            (shapes[i], dtypes[i]) if (array := self.args[i]) is None else (array.shape, array.dtype)
            for i in range(self.count)
        ]
        self.states = [get(i).detach() for i in range(self.count, wanted)]
        if self.ctx is None:
            self.ctx = self.states[0].context if self.states else Context.default_ctx

    def _read(self, index: int) -> None:
        array = self.get(index)
        self.inputs[index], self.args[index] = array, array.detach()
        self.ctx = self.ctx or array.context

    def run(self, given: list[NDArray] | None = None) -> list[NDArray]:
        """Returns the outputs, recorded if the caller records. given: all inputs, if the caller has computed them
        anyway; those not requested have a gradient of zero. In graphs, the nodes that lead to them are not even
        recorded.
        """
        shapes, out_shapes, _ = _shapes(self.prop, [shape for shape, _ in self.specs], self.op_type)
        types, out_types, _ = _three(
            self.prop.infer_type([dtype for _, dtype in self.specs]), "infer_type", self.op_type
        )
        self.op = self.prop.create_operator(str(self.ctx), shapes, types)
        outputs = [empty(tuple(s), ctx=self.ctx, dtype=t) for s, t in zip(out_shapes, out_types, strict=True)]
        training, recording = autograd.is_training(), _core.is_recording()
        (self._step_on if self.lazy else self._forward)(training, outputs)
        inputs = given[: self.count] if given else [array for array in self.inputs if array is not None]
        self.zero_grads = [(i, given[i].shape, given[i].dtype) for i in range(self.count) if given and not self.has(i)]
        if not (recording and any(_core.needs_gradient(array) for array in inputs)):
            return outputs
        self.outputs = [output.detach() for output in outputs]
        self.versions = self._overwrites()
        self.place = _core.current_graph_position()
        self.inputs, self.get = [], _no_input  # the tape keeps the inputs it needs
        _core.record_function(self.op_type, self.backward, inputs, outputs)
        return outputs

    def has(self, index: int) -> bool:
        """Whether this input was requested."""
        return self.args[index] is not None

    def _forward(self, training: bool, outputs: list[NDArray]) -> None:
        with autograd.pause(train_mode=training), _Timed(self.op_type):
            self.op.forward(
                is_train=training, req=["write"] * len(outputs), in_data=self.args, out_data=outputs, aux=self.states
            )

    def _step_on(self, training: bool, outputs: list[NDArray]) -> None:
        while True:
            with autograd.pause(train_mode=training), _Timed(self.op_type):
                wanted = self.op.lazy_step(
                    is_train=training,
                    req=["write"] * len(outputs),
                    in_data=list(self.args),
                    out_data=outputs,
                    aux=self.states,
                )
            requested = [int(i) for i in wanted]
            if not requested:
                return
            self._check_requested(requested)
            for i in requested:
                if not self.has(i):
                    self._read(i)

    def _check_requested(self, requested: list[int]) -> None:
        names = self.prop.list_arguments()
        if any(not 0 <= i < self.count for i in requested):
            raise HybridNetValueError(
                f"operator {self.op_type!r}: lazy_step() asked for inputs {requested}, expected numbers from 0 to "
                f"{self.count - 1} ({', '.join(names)})"
            )
        if all(self.has(i) for i in requested):
            raise HybridNetValueError(
                f"operator {self.op_type!r} has stalled: lazy_step() asked for "
                f"{', '.join(names[i] for i in requested)}, which it has",
                fix="return an empty list when the outputs are set",
            )

    def _overwrites(self) -> list[int]:
        return [_core.overwrites(array) for array in [*self.args, *self.outputs] if array is not None]

    def backward(self, out_grads: list[NDArray | None], create_graph: bool, recorded: Any) -> list[NDArray]:
        """Called by the tape for the gradient."""
        try:
            return self._gradients(out_grads, create_graph)
        except Exception as error:
            _add_place(error, self.place)
            raise

    def _gradients(self, out_grads: list[NDArray | None], create_graph: bool) -> list[NDArray]:
        if create_graph:
            raise GradientError(
                f"operator {self.op_type!r}: a custom operator has no gradient of its gradient",
                fix="write it as mx.autograd.Function, whose backward() may be made of operators",
            )
        if self.versions != self._overwrites():
            raise GradientError(
                f"operator {self.op_type!r}: a value that its gradient needs was overwritten in place",
                fix="write to a new array (y = x + 1 instead of x += 1), or copy first: x.copy()",
            )
        given = [
            zeros(output.shape, ctx=self.ctx, dtype=output.dtype) if grad is None else grad
            for grad, output in zip(out_grads, self.outputs, strict=True)
        ]
        grads: list[Any] = [None if a is None else zeros(a.shape, ctx=self.ctx, dtype=a.dtype) for a in self.args]
        with autograd.pause(train_mode=True), _Timed(f"_backward_{self.op_type}"):
            self.op.backward(
                req=["null" if grad is None else "write" for grad in grads],
                out_grad=given,
                in_data=self.args,
                out_data=self.outputs,
                in_grad=grads,
                aux=self.states,
            )
        for i, shape, dtype in self.zero_grads:
            grads[i] = zeros(shape, ctx=self.ctx, dtype=dtype)
        return [grad for grad in grads if grad is not None]


class _Timed:
    """Context manager that reports the time of its body to the profiler."""

    __slots__ = ("_begin", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._begin = _core.profile_now() if _core.profile_active() else None

    def __exit__(self, *exception: Any) -> None:
        if self._begin is not None:
            _core.profile_add(f"{self._name}::pure_python", "Custom Operator", self._begin)


def _no_input(index: int) -> NDArray:
    raise HybridNetValueError(f"input {index} was asked for after the operator had ended")


def Custom(*inputs: Any, op_type: str | None = None, name: str | None = None, out: Any = None, **kwargs: Any) -> Any:
    """Runs (arrays) or adds to the graph (Symbols) the operator registered as op_type.

    inputs: in the order of list_arguments() and list_auxiliary_states(), or by these names; in graphs, omitted inputs
    become variables. Other keywords go to the CustomOpProp as strings. Raises ParamError for an unknown op_type.
    ``mx.nd.Custom`` runs an operator without inputs, ``mx.sym.Custom`` adds it to the graph.
    """
    return _custom(inputs, op_type, name, out, kwargs, symbolic=True)


def custom_on_arrays(
    *inputs: Any, op_type: str | None = None, name: str | None = None, out: Any = None, **kwargs: Any
) -> Any:
    """Implements ``mx.nd.Custom``: same as Custom, but a call without inputs runs an operator that has none."""
    return _custom(inputs, op_type, name, out, kwargs, symbolic=False)


def _custom(
    inputs: tuple[Any, ...], op_type: str | None, name: str | None, out: Any, kwargs: dict[str, Any], symbolic: bool
) -> Any:
    """Implements Custom. symbolic: whether a call without inputs, of an operator that has none, makes a node."""
    if op_type is None:
        raise ParamError(
            "operator 'Custom', input 'op_type'", expected="the name of a registered operator", given="nothing"
        )
    attr = kwargs.pop("attr", None)
    tensors = {key: kwargs.pop(key) for key in list(kwargs) if isinstance(kwargs[key], (NDArray, _core.SymbolBase))}
    attributes = json.dumps({key: _text(value) for key, value in kwargs.items()})
    prop = _prop(op_type, attributes)
    names = [*prop.list_arguments(), *prop.list_auxiliary_states()]
    if inputs or tensors:
        symbolic = any(isinstance(value, _core.SymbolBase) for value in (*inputs, *tensors.values()))
    elif names:
        symbolic = True  # its inputs become variables
    given = _in_order(op_type, names, inputs, tensors)
    fields = {"op_type": op_type, "open_attributes": attributes}
    if not symbolic:
        missing = [key for key, value in zip(names, given, strict=True) if value is None]
        if missing:
            raise ParamError(f"operator {op_type!r}", expected=f"{len(names)} inputs", given=f"no {', '.join(missing)}")
        return _core.op_function("Custom", "Custom", "hybridnet.ndarray")(*given, **fields, out=out)
    from .name import current
    from .symbol import var

    stem = current().get(name, op_type.lower())
    given = [var(f"{stem}_{key}") if value is None else value for key, value in zip(names, given, strict=True)]
    make = _core.op_function("Custom", "Custom", "hybridnet.symbol", symbolic=True)
    return make(*given, **fields, name=stem, attr=attributes_for(attr))


def _text(value: Any) -> str:
    return np.dtype(value).name if isinstance(value, type) and issubclass(value, np.generic) else str(value)


def _in_order(op_type: str, names: list[str], inputs: tuple[Any, ...], tensors: dict[str, Any]) -> list[Any]:
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        inputs = tuple(inputs[0])
    if len(inputs) > len(names):
        raise ParamError(
            f"operator {op_type!r}",
            expected=f"at most {len(names)} inputs ({', '.join(names)})",
            given=str(len(inputs)),
        )
    given: list[Any] = [*inputs, *[None] * (len(names) - len(inputs))]
    for key, value in tensors.items():
        if key not in names:
            raise ParamError(f"operator {op_type!r}", expected=f"inputs named {', '.join(names)}", given=repr(key))
        if given[names.index(key)] is not None:
            raise HybridNetTypeError(f"operator {op_type!r}: input {key!r} is given twice")
        given[names.index(key)] = value
    return given


__dir__ = dir_of(__name__, __dir__)
