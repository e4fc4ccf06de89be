"""Symbol: one or more outputs of a graph under construction."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from .. import _core
from .._files import read_text, replacing
from .._habits import add_habits
from .._lazy_names import names_from
from .._public_names import dir_of
from .._tracing import Refusals, ask_for_conversion, is_own_file
from .._user_line import warn
from ..attribute import AttrScope, attributes_for
from ..base import no_values
from ..context import Context, current_context
from ..errors import AttributeError as HybridNetAttributeError
from ..errors import HybridNetError
from ..errors import IndexError as HybridNetIndexError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..name import NameManager
from ..ndarray._dtypes import numpy_dtype
from ..ndarray._flattening import takes_no_axes
from ..ndarray._fluent import add_fluent_methods
from ..ndarray._operators import UFUNC_OPERATORS
from ..ops._namespace import public_names
from ..util import is_np_shape
from . import _internal
from ._amp_casts import CASTS, without_casts
from ._traced_indexing import traced_item
from ._traced_writes import as_indexed, set_item, write

__all__ = ["Group", "Symbol", "Variable", "load", "load_json", "var"]


def _in_place_of(name: str) -> str:
    """Returns the function to call instead of a NumPy function."""
    name = {"absolute": "abs", "concatenate": "concat"}.get(name, name)
    found = name in public_names()
    return f"call mx.nd.{name}, which works on traced arrays too" if found else "use the operators of mx.nd"


def _slices(begin: Sequence[Any], end: Sequence[Any], step: Sequence[Any]) -> tuple[slice, ...]:
    return tuple(slice(*parts) for parts in zip_longest(begin, end, step))


class Symbol(_core.SymbolBase):
    """Outputs of graph nodes. Operators and arithmetic on Symbols create new nodes; nothing is computed before bind().

    Inside a traced block a Symbol represents an array: shape and dtype are known, values are not.
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    _has_numpy_interface = False

    # -------------------------------------------------------------------------------------------------------- queries
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class for ``isinstance``: for a traced program, a Symbol in place of one of its arrays is an array, as in
        imperative mode.
        """
        cls = type(self)
        if not self._is_traced_array or is_own_file(sys._getframe(1).f_code.co_filename):
            return cls
        return cls._array_class()

    @staticmethod
    def _array_class() -> type:
        from ..ndarray import NDArray

        return NDArray

    def __repr__(self) -> str:
        specs = _core.symbol_specs(self)
        what = f" {specs[0][0]} {np.dtype(specs[0][1])}" if specs and len(specs) == 1 and None not in specs[0] else ""
        name = self.name
        if name is None:
            return f"<{type(self).__name__} group [{', '.join(self.list_outputs())}]>"
        return f"<{type(self).__name__} {name}{what}>"

    @property
    def name(self) -> str | None:
        """Name of the node; None for a group of several nodes."""
        return _core.symbol_name(self)

    @property
    def _spec(self) -> tuple[Any, Any]:
        specs = _core.symbol_specs(self)
        if specs is None or len(specs) != 1:
            raise HybridNetAttributeError(
                "a Symbol has a shape and a dtype only while a block is traced; use infer_shape()"
            )
        return specs[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a traced array. Raises TraceError while it is unknown, AttributeError outside traces."""
        shape = self._spec[0]
        _core.note_trace_read(1)
        if shape is None or -1 in shape:
            raise no_values(
                self,
                f"The shape {shape or ''}",
                "it depends on data; use operators such as reshape_like, slice_like, shape_array",
            )
        return shape

    @property
    def dtype(self) -> Any:
        """NumPy dtype of a traced array."""
        dtype = self._spec[1]
        _core.note_trace_read(4)
        if dtype is None:
            raise no_values(self, "The dtype", "cast the inputs of the block explicitly")
        return dtype

    @property
    def ndim(self) -> int:
        """Number of axes of a traced array."""
        shape = self._spec[0]
        _core.note_trace_read(2)
        if shape is None:
            raise no_values(self, "The number of axes", "give the block's inputs a known rank")
        return len(shape)

    @property
    def size(self) -> int:
        """Number of elements of a traced array."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def T(self) -> Symbol:
        """The Symbol with its axes in reverse order; a traced vector stays as it is."""
        return self if self._is_traced_array and self.ndim < 2 else self.transpose()

    @property
    def context(self) -> Context:
        """The device that the traced block's inputs are on."""
        return current_context()

    ctx = context

    @property
    def stype(self) -> str:
        """Storage type: 'default'."""
        return "default"

    def list_arguments(self) -> list[str]:
        """Returns the names of the variables that need values."""
        return _core.symbol_list_arguments(self)

    def list_auxiliary_states(self) -> list[str]:
        """Returns the names of the variables that operators update, such as moving means."""
        return _core.symbol_list_auxiliary_states(self)

    def list_inputs(self) -> list[str]:
        """Returns the names of all variables, in the order in which the graph is visited."""
        return _core.symbol_list_inputs(self)

    def list_outputs(self) -> list[str]:
        """Returns the names of the outputs: 'fc_output', 'split_output1', a variable's own name."""
        return _core.symbol_list_outputs(self)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return _core.symbol_num_outputs(self)

    def get_internals(self) -> Symbol:
        """Returns every output of every node, as one group."""
        return _core.symbol_internals(self)

    def get_children(self) -> Symbol | None:
        """Returns the inputs of this node as a group; None for a variable."""
        children = _core.symbol_children(self)
        return children if children.num_outputs else None

    def debug_str(self) -> str:
        """Returns the graph as text, one line per node."""
        return _core.symbol_text(self)

    # ------------------------------------------------------------------------------------------------------ attributes
    def attr(self, key: str) -> str | None:
        """Returns an attribute of the node, or a parameter of its operator, as text."""
        return _core.symbol_attr(self, key)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Returns attributes and parameters of the node."""
        if recursive:
            raise HybridNetValueError("list_attr: recursive listing was removed", fix="use attr_dict()")
        return _core.symbol_list_attr(self)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Returns a dict of node name -> attributes and parameters, for all nodes."""
        return _core.symbol_attr_dict(self)

    def _set_attr(self, **kwargs: str) -> None:
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise HybridNetValueError("_set_attr", expected=f"text for {key!r}", given=type(value).__name__)
            _core.symbol_set_attr(self, key, value)

    # ---------------------------------------------------------------------------------------------------- composition
    def _gen_atomic_symbol(self) -> Symbol:
        """Returns the last operator, applied to new variables."""
        node = json.loads(self.tojson(remove_amp_cast=False))["nodes"][-1]
        return _core.op_function(node["op"], node["op"], __name__, symbolic=True)(
            name=node["name"], **node.get("attrs", {})
        )

    def __call__(self, *args: Symbol, **kwargs: Any) -> Symbol:
        """Returns this graph with variables replaced: by position, or by name."""
        name = kwargs.pop("name", None)
        result = _core.symbol_composed(self, list(args), kwargs)
        return result if name is None else _core.symbol_renamed(result, name)

    def __copy__(self) -> Symbol:
        return load_json(self.tojson(remove_amp_cast=False))

    def __deepcopy__(self, memo: Any) -> Symbol:
        return load_json(self.tojson(remove_amp_cast=False))

    def __reduce__(self) -> tuple[Any, ...]:
        return load_json, (self.tojson(remove_amp_cast=False),)

    def __getitem__(self, key: Any) -> Symbol:
        """Returns an output by number, name or slice; for a traced array, its elements."""
        if self._is_traced_array and not isinstance(key, str):
            return as_indexed(self, key, traced_item(self, key))
        if isinstance(key, str):
            return _core.symbol_output(self, self._output_number(key))
        if isinstance(key, slice):
            return Group([self[i] for i in range(*key.indices(self.num_outputs))])
        if not isinstance(key, (int, np.integer)):
            raise HybridNetTypeError(
                "Symbol[...]", expected="an output's number, name or a slice", given=type(key).__name__
            )
        if not -self.num_outputs <= key < self.num_outputs:
            raise HybridNetIndexError(f"Symbol[{key}]: expected an output number below {self.num_outputs}")
        return _core.symbol_output(self, int(key) % self.num_outputs)

    def _output_number(self, name: str) -> int:
        outputs = self.list_outputs()
        found = [i for i, output in enumerate(outputs) if output == name]
        if not found:
            raise HybridNetValueError(
                f"Symbol[{name!r}]: there is no such output", because=f"the outputs are {', '.join(outputs)}"
            )
        if len(found) > 1:
            raise HybridNetValueError(f"Symbol[{name!r}]: {len(found)} outputs have this name; index by number")
        return found[0]

    @property
    def _is_traced_array(self) -> bool:
        return self.num_outputs == 1 and _core.symbol_specs(self) is not None

    def __len__(self) -> int:
        if self._is_traced_array:
            shape = self._spec[0]
            _core.note_trace_read(1)
            if shape and shape[0] >= 0:
                return shape[0]
            raise no_values(self, "len()", "loop with mx.nd.contrib.foreach or while_loop")
        return self.num_outputs

    def __iter__(self) -> Iterator[Symbol]:
        if self._is_traced_array:
            raise no_values(self, "Iterating", "loop with mx.nd.contrib.foreach, or split the array with mx.nd.split")
        return (self[i] for i in range(self.num_outputs))

    def __reversed__(self) -> Iterator[Symbol]:
        ask_for_conversion("reversed()")
        return (self[i] for i in range(len(self) - 1, -1, -1))

    # ---------------------------------------------------------------------------------------------------- unsupported
    def __bool__(self) -> bool:
        raise no_values(
            self, "The truth value", "branch with mx.nd.contrib.cond, or loop with mx.nd.contrib.while_loop"
        )

    def __int__(self) -> int:
        raise no_values(self, "int()", "branch with mx.nd.contrib.cond, or compute with operators")

    def __float__(self) -> float:
        raise no_values(self, "float()", "branch with mx.nd.contrib.cond, or compute with operators")

    def __index__(self) -> int:
        raise no_values(
            self, "Using the value as an index", "use take, or loop with mx.nd.contrib.foreach or while_loop"
        )

    def asnumpy(self) -> Any:
        """Always raises TraceError: a graph has no values."""
        raise no_values(
            self, "asnumpy()", "branch with mx.nd.contrib.cond, loop with foreach or while_loop, or use operators"
        )

    def asscalar(self) -> Any:
        """Always raises TraceError: a graph has no values."""
        raise no_values(
            self, "asscalar()", "branch with mx.nd.contrib.cond, loop with foreach or while_loop, or use operators"
        )

    item = asscalar

    def tolist(self) -> Any:
        """Always raises TraceError: a graph has no values."""
        raise no_values(self, "tolist()", "compute with operators, or return the array and read it after the call")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise no_values(self, "Conversion to a NumPy array", "use the operators of mx.nd instead of NumPy's")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        kind = UFUNC_OPERATORS.get(ufunc.__name__)
        if method == "__call__" and kind is not None and not kwargs:  # a NumPy number on the left
            numbers = [value.item() if isinstance(value, np.generic) else value for value in inputs]
            result = _core.symbol_binary(kind, *numbers)
            if result is not NotImplemented:
                return result
        if any(isinstance(value, np.ndarray) for value in inputs):
            raise no_values(self, f"numpy.{ufunc.__name__}", "convert the NumPy array first: mx.nd.array(x)")
        raise no_values(self, f"numpy.{ufunc.__name__}", _in_place_of(ufunc.__name__))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        try:
            with Refusals(tells_outer=False):
                return func._implementation(*args, **kwargs)  # some NumPy functions only call methods
        except HybridNetError:
            raise no_values(self, f"numpy.{func.__name__}", _in_place_of(func.__name__)) from None

    def __contains__(self, value: Any) -> bool:
        raise no_values(self, "'in' on the elements", "compare with == and reduce with max()")

    def __format__(self, spec: str) -> str:
        if spec:
            raise no_values(self, f"Formatting as {spec!r}", "return the array and print it after the call")
        return str(self)

    def wait_to_read(self) -> None:
        """Always raises: a graph has no values."""
        raise no_values(self, "wait_to_read()", "bind the Symbol and wait for its outputs")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Always raises: a graph has no values."""
        raise no_values(self, "backward()", "call backward() on an NDArray that was recorded")

    def attach_grad(self, *args: Any, **kwargs: Any) -> None:
        """Always raises: a graph has no values."""
        raise no_values(self, "attach_grad()", "call attach_grad() on the arrays that are given to the block")

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._is_traced_array:
            raise no_values(
                self, "Writing elements", "build the array with operators such as where, concat or scatter_nd"
            )
        set_item(self, key, value)

    # ------------------------------------------------------------------------------------------------------ array-like
    def reshape(self, *shape: Any, **kwargs: Any) -> Symbol:
        """Reshapes, with the codes of NDArray.reshape. For a traced array: a view that shares writes."""
        if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
            shape = tuple(shape[0])
        if shape:
            kwargs["shape"] = shape
        return _core.traced_view(main_operator("Reshape")(self, **kwargs), self)

    def astype(self, dtype: Any, copy: bool = True) -> Symbol:
        """Converts elements to dtype; with copy=False returns a traced array of that dtype itself."""
        if not copy and self._is_traced_array and np.dtype(self.dtype) == numpy_dtype(dtype):
            return self
        return main_operator("Cast")(self, dtype=dtype)

    def transpose(self, *axes: Any, **kwargs: Any) -> Symbol:
        """Permutes the axes; reverses them if none is given."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (list, tuple))):
            axes = tuple(axes[0] or ())
        return main_operator("transpose")(self, axes=kwargs.pop("axes", None) or axes, **kwargs)

    def flatten(self, *axes: Any, **kwargs: Any) -> Symbol:
        """Converts to a matrix: the first axis stays, the others merge; inplace=True: as a view of a traced array."""
        if axes or "start_dim" in kwargs or "end_dim" in kwargs:
            kwargs["inplace"] = takes_no_axes(self, axes, kwargs)
        return self._in_place(main_operator("Flatten")(self), **kwargs)

    def squeeze(self, axis: Any = None, **kwargs: Any) -> Symbol:
        """Removes the axes of size 1; inplace=True: as a view of a traced array."""
        return self._in_place(main_operator("squeeze")(self, axis=axis), **kwargs)

    def expand_dims(self, axis: int, **kwargs: Any) -> Symbol:
        """Inserts an axis of size 1; inplace=True: as a view of a traced array."""
        return self._in_place(main_operator("expand_dims")(self, axis=axis), **kwargs)

    def _in_place(self, made: Symbol, inplace: bool = False, **_: Any) -> Symbol:
        return _core.traced_view(made, self) if inplace else made

    def split_v2(self, *args: Any, **kwargs: Any) -> Symbol:
        """See :func:`split_v2`."""
        from ._creation import split_v2

        return split_v2(self, *args, **kwargs)

    def copy(self) -> Symbol:
        """Returns the same values in a node of its own."""
        return _internal._copy(self)

    def detach(self) -> Symbol:
        """Returns the same values without passing gradients. For a traced array: a view that shares writes."""
        return _core.traced_view(main_operator("BlockGrad")(self), self)

    def copyto(self, other: Any) -> Any:
        """Writes the values of a traced array into another one of any dtype. Returns the other one."""
        if not isinstance(other, Symbol):
            raise no_values(self, "copyto() into an array", "return the value, and copy it after the call")
        return other if other is self else write(other, self)

    def slice_assign(self, rhs: Any, begin: Sequence[int], end: Sequence[int], step: Sequence[int] = ()) -> Symbol:
        """Writes rhs into the slice [begin, end) with step of a traced array."""
        self[_slices(begin, end, step)] = rhs
        return self

    def slice_assign_scalar(
        self, value: float, begin: Sequence[int], end: Sequence[int], step: Sequence[int] = ()
    ) -> Symbol:
        """Writes value into every element of the slice [begin, end) with step of a traced array."""
        self[_slices(begin, end, step)] = value
        return self

    def _full(self, value: float) -> Symbol:
        return write(self, value)

    def as_in_context(self, context: Context) -> Symbol:
        """Returns the array itself: a graph runs on one device."""
        return self

    as_in_ctx = as_in_context

    def as_nd_ndarray(self) -> Symbol:
        """Returns this Symbol as a classic Symbol."""
        return self

    def as_np_ndarray(self) -> Any:
        """Returns the same outputs as a Symbol of ``mx.sym.np``."""
        importlib.import_module("hybridnet.symbol.numpy")  # registers the class of such Symbols
        return _core.symbol_of_class(self, True)

    def __matmul__(self, other: Any) -> Symbol:
        return main_operator("dot")(self, other)

    # ------------------------------------------------------------------------------------------------------- inference
    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Infers (argument shapes, output shapes, auxiliary shapes); (None, None, None) if too few are known.

        Known shapes are given by position (in list_arguments() order, None to skip) or by name.
        """
        complete, arguments, outputs, auxiliaries = self._infer(args, kwargs, "shape", partial=True)
        if not complete and any(_unknown_shape(s) for s, _ in [*arguments, *outputs, *auxiliaries]):
            return None, None, None
        return _firsts(arguments), _firsts(outputs), _firsts(auxiliaries)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Same as infer_shape, but returns partial results.

        Unknown shapes are (), unknown sizes 0; with NumPy shape semantics, where these mean something, None and -1.
        """
        _, arguments, outputs, auxiliaries = self._infer(args, kwargs, "shape", partial=True)
        unknown_shape, least = (None, -1) if is_np_shape() else ((), 0)

        def shown(specs: list[Any]) -> list[Any]:
            return [unknown_shape if shape is None else tuple(max(size, least) for size in shape) for shape, _ in specs]

        return shown(arguments), shown(outputs), shown(auxiliaries)

    def _input_shapes(self, shapes: dict[str, Any]) -> tuple[list[Any], list[Any], list[str]]:
        """Infers shapes of arguments and of auxiliary states, and returns the names of those that stay unknown.

        Output shapes may stay unknown: for some operators, and branches of different sizes, they are known only at run
        time.
        """
        _, arguments, _, auxiliaries = self._infer((), shapes, "shape", partial=True, lenient=True)
        found = [shape for shape, _ in [*arguments, *auxiliaries]]
        names = [*self.list_arguments(), *self.list_auxiliary_states()]
        missing = [name for name, shape in zip(names, found, strict=True) if _unknown_shape(shape)]
        return found[: len(arguments)], found[len(arguments) :], missing

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Infers (argument types, output types, auxiliary types) from known ones, or (None, None, None)."""
        result = self.infer_type_partial(*args, **kwargs)
        return (None, None, None) if any(t is None for part in result for t in part) else result

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Same as infer_type, but returns partial results: None for unknown types."""
        _, arguments, outputs, auxiliaries = self._infer(args, kwargs, "type", partial=True)
        return tuple([dtype for _, dtype in specs] for specs in (arguments, outputs, auxiliaries))  # type: ignore[return-value]

    def _infer(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], what: str, partial: bool, lenient: bool = False
    ) -> Any:
        if args and kwargs:
            raise HybridNetValueError(f"infer_{what}: expected {what}s by position or by name, not both")
        names = self.list_arguments()
        if len(args) > len(names):
            raise HybridNetValueError(f"infer_{what}", expected=f"at most {len(names)} {what}s", given=str(len(args)))
        given = dict(zip(names, args, strict=False)) if args else kwargs
        known = set(self.list_inputs())
        unknown = [name for name in given if name not in known]
        if unknown and not lenient:
            raise HybridNetValueError(
                f"infer_{what}: the Symbol has no argument {unknown[0]!r}", expected=f"names among {names}"
            )
        specs = {}
        for name, value in given.items():
            if value is None or name not in known:
                continue
            specs[name] = (_known_shape(value), None) if what == "shape" else (None, value)
        return _core.symbol_infer(self, specs, partial)

    # --------------------------------------------------------------------------------------------------------- running
    def bind(
        self,
        ctx: Context,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Any = None,
        shared_exec: Any = None,
        *,
        remat: str | int = "auto",
    ) -> Any:
        """Binds arrays to the variables; the Executor runs forward and backward over them.

        remat: the values that backward recomputes instead of keeping them; see HybridBlock.hybridize.
        """
        from ..executor import Executor

        return Executor(self, ctx, args, args_grad, grad_req, aux_states, remat)

    def simple_bind(
        self,
        ctx: Context,
        grad_req: Any = "write",
        type_dict: dict[str, Any] | None = None,
        stype_dict: Any = None,
        group2ctx: Any = None,
        shared_arg_names: Any = None,
        shared_exec: Any = None,
        shared_buffer: Any = None,
        *,
        remat: str | int = "auto",
        **kwargs: Any,
    ) -> Any:
        """Infers shapes from the given ones, allocates all arrays and binds them. remat: same as for bind."""
        from ..executor import simple_bind

        return simple_bind(self, ctx, grad_req, type_dict, kwargs, group2ctx, stype_dict, remat)

    def eval(self, ctx: Context | None = None, **kwargs: Any) -> list[Any]:
        """Runs the graph once on the given arrays; returns the outputs."""
        return self.bind(ctx or current_context(), kwargs).forward()

    def gradient(self, wrt: Any) -> Any:
        """Returns the gradient of the sum of all output elements with respect to variables: see mx.sym.gradient."""
        from ._gradient import gradient

        return gradient(self, wrt)

    _bind = bind
    _simple_bind = simple_bind

    def optimize_for(
        self,
        backend: str,
        args: dict[str, Any] | None = None,
        aux: dict[str, Any] | None = None,
        ctx: Context | None = None,
        shape_dict: dict[str, Any] | None = None,
        type_dict: dict[str, Any] | None = None,
        stype_dict: Any = None,
        skip_infer: bool = False,
        **kwargs: Any,
    ) -> Symbol:
        """Returns this graph: graphs are optimized when they are bound, for the device they are bound to.

        Given shapes and types (arrays in args and aux, shape_dict and type_dict) are checked against the graph unless
        skip_infer is true. Raises TypeError if backend is not a string, ShapeError and DTypeError for a mismatch.
        """
        if not isinstance(backend, str) or not backend:
            raise HybridNetTypeError("optimize_for: backend must be a name", given=repr(backend))
        if not skip_infer:
            arrays = {**(args or {}), **(aux or {})}
            names = set(self.list_inputs())
            shapes = {**(shape_dict or {}), **{name: array.shape for name, array in arrays.items()}}
            types = {**(type_dict or {}), **{name: array.dtype for name, array in arrays.items()}}
            self.infer_shape_partial(**{name: shape for name, shape in shapes.items() if name in names})
            self.infer_type_partial(**{name: dtype for name, dtype in types.items() if name in names})
        return self

    def get_backend_symbol(self, backend: str) -> Symbol:
        """Same as optimize_for without shapes."""
        return self.optimize_for(backend, skip_infer=True)

    # ----------------------------------------------------------------------------------------------------------- files
    def tojson(self, remove_amp_cast: bool = True) -> str:
        """Returns the graph in MXNet's JSON format; without mixed-precision casts unless remove_amp_cast=False."""
        text = _core.symbol_tojson(self)
        if remove_amp_cast and any(f'"{cast}"' in text for cast in CASTS):
            edited = json.dumps(without_casts(json.loads(text)))
            text = _core.symbol_tojson(_core.symbol_from_json(edited, "text"))
        return text

    def save(self, fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
        """Writes tojson() to a file. Raises FileError if it cannot be written.

        Arrays that the graph holds as constants are not in the file: a UserWarning names them.
        """
        if constants := _core.symbol_constants(self):
            warn(
                f"Symbol.save: the values of {', '.join(constants)} are not in {os.fspath(fname)!r}: there they are "
                "arguments. Save them with nd.save, or use variables and operators such as sym.full in their place",
            )
        self._write(fname, remove_amp_cast)

    def _write(self, fname: str | os.PathLike[str], remove_amp_cast: bool) -> None:
        text = self.tojson(remove_amp_cast)
        with replacing(fname, "Symbol.save") as file:
            file.write(text.encode())


def _unknown_shape(shape: Any) -> bool:
    return shape is None or -1 in shape


def _known_shape(value: Any) -> tuple[int, ...]:
    """Converts a shape of the user: -1 is unknown; without NumPy shape semantics 0 is unknown too."""
    sizes = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
    return sizes if _core.is_np_shape() else tuple(-1 if size == 0 else size for size in sizes)


def _firsts(pairs: list[tuple[Any, Any]]) -> list[Any]:
    return [first for first, _ in pairs]


_made: dict[str, Any] = {}


def main_operator(name: str) -> Any:
    made = _made.get(name)
    if made is None:
        made = _made[name] = _core.op_function(name, name, "hybridnet.symbol", symbolic=True)
    return made


# ------------------------------------------------------------------------------------------------------------ variables
STORAGE_TYPES = {"default": 0, "row_sparse": 1, "csr": 2}  # the numbers in graph files


def var(
    name: str,
    attr: dict[str, str] | None = None,
    shape: Sequence[int] | int | None = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: Any = None,
    init: Any = None,
    stype: str | None = None,
    profiler_scope: str | None = None,
    **kwargs: str,
) -> Symbol:
    """Returns a variable: an input of the graph. Further keywords must be hidden attributes: __key__="text"."""
    if not isinstance(name, str):
        raise HybridNetTypeError("var", expected="a name", given=type(name).__name__)
    attributes = dict(attributes_for(attr) or {})
    if shape is not None:
        attributes["__shape__"] = str((shape,) if isinstance(shape, int) else tuple(shape))
    if lr_mult is not None:
        attributes["__lr_mult__"] = str(lr_mult)
    if wd_mult is not None:
        attributes["__wd_mult__"] = str(wd_mult)
    if dtype is not None:
        attributes["__dtype__"] = str(_core.dtype_code(dtype))
    if init is not None:
        attributes["__init__"] = init if isinstance(init, str) else init.dumps()
    if stype is not None:
        if stype not in STORAGE_TYPES:
            raise HybridNetValueError(
                "var", expected=f"stype to be one of {', '.join(STORAGE_TYPES)}", given=repr(stype)
            )
        attributes["__storage_type__"] = str(STORAGE_TYPES[stype])
    if profiler_scope is not None:
        attributes["__profiler_scope__"] = profiler_scope
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise HybridNetValueError("var", expected="attributes of the form __key__", given=repr(key))
        attributes[key] = str(value)
    return _core.variable(name, attributes)


Variable = var


def Group(symbols: Sequence[Symbol], create_fn: Any = None) -> Symbol:
    """Groups all outputs of the Symbols into one Symbol."""
    symbols = list(symbols)
    if not symbols or not all(isinstance(symbol, _core.SymbolBase) for symbol in symbols):
        raise HybridNetTypeError("Group: expected a list of at least one Symbol")
    return _core.group(symbols)


def load(fname: str | os.PathLike[str]) -> Symbol:
    """Loads the graph of a JSON file of HybridNet or MXNet 1.x. Raises FileError, or FormatError with the position."""
    return _core.symbol_from_json(read_text(fname, "sym.load"), os.fspath(fname))


def load_json(json_str: str) -> Symbol:
    """Loads the graph of a JSON string."""
    if not isinstance(json_str, str):
        raise HybridNetTypeError("load_json", expected="text", given=type(json_str).__name__)
    return _core.symbol_from_json(json_str, "text")


add_fluent_methods(Symbol, "hybridnet.symbol", symbolic=True)
add_habits(Symbol, "symbol")
_core.register_symbol_class(Symbol)
_core.set_symbol_scopes(NameManager._current, AttrScope._current)

# MXNet also has these functions in this module.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_creation": (
            "arange concatenate eye full histogram hypot linspace maximum minimum ones pow power split_v2 zeros"
        ),
    },
)
__dir__ = dir_of(__name__, __dir__)
