"""Parameter and Constant: the learned and constant values of blocks, on one or more devices."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, _tracing, autograd, initializer, ndarray, symbol
from .._habits import add_habits
from .._keywords import ChecksKeywords
from .._lazy_names import names_from
from .._public_names import dir_of
from .._user_line import warn
from ..context import Context, cpu, current_context
from ..errors import DeferredInitializationError, HybridNetError, ParamError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..ndarray import sparse
from ..ndarray._dtypes import dtype_name, numpy_dtype
from ..util import is_np_array, is_np_shape
from ._wrong_uses import refuse_arithmetic, set_method
from .utils import shape_is_known

if TYPE_CHECKING:
    from ..ndarray import NDArray
    from ..symbol import Symbol

__all__ = [
    "Constant",
    "DeferredInitializationError",
    "Parameter",
    "ParameterLoadError",
    "tensor_types",
]

tensor_types = (symbol.Symbol, ndarray.NDArray)

_STORAGE_TYPES = ("default", "row_sparse", "csr")
_STORAGE_CODES = {stype: str(code) for code, stype in enumerate(_STORAGE_TYPES)}  # the numbers in graph files


class ParameterLoadError(HybridNetError, ValueError, AssertionError):
    """A parameter file does not fit the block. Also an AssertionError, which MXNet raised here."""


def _context_list(ctx: Context | Sequence[Context] | None) -> list[Context]:
    if ctx is None:
        return [current_context()]
    if isinstance(ctx, Context):
        return [ctx]
    several: Any = [ctx] if isinstance(ctx, str) or not hasattr(ctx, "__iter__") else ctx
    return [Context.of(item) for item in several]


class Parameter(ChecksKeywords):
    """A named value that a block uses, with its gradient, on one or more contexts.

    Parameters
    ----------
    name : str
    grad_req : {'write', 'add', 'null'}, default 'write'
        Whether backward overwrites the gradient, adds to it (clear it with zero_grad), or computes none.
    shape : tuple of int or int, optional
        Sizes of 0 or -1 are unknown until the first batch (if allow_deferred_init).
    dtype : numpy dtype or str, default float32
    lr_mult, wd_mult : float, default 1.0
        Multipliers of the learning rate and of the weight decay.
    init : Initializer or str, optional
        The parameter's own initializer; default: the one given to initialize().
    allow_deferred_init : bool, default False
        Whether initialize() is allowed before the shape is known.
    differentiable : bool, default True
        False: grad_req is always 'null'.
    stype, grad_stype : {'default', 'row_sparse', 'csr'}
        Storage of value and gradient. The cost of a 'row_sparse' gradient depends on the rows that it reaches; a
        'row_sparse' value is read by row_sparse_data.

    Raises ValueError for unknown grad_req or storage types.
    """

    # Whether data() differs from the value, as in subclasses that drop weights.
    _computes_data = False

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: Sequence[int] | int | None = None,
        dtype: Any = np.float32,
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ) -> None:
        if isinstance(init, numbers.Number):
            raise ParamError(
                f"Parameter '{name}': init",
                expected="an Initializer or its name",
                given=repr(init),
                fix=f"for a constant pass mx.init.Constant({init!r}); the size of the input is a keyword: input_size=",
            )
        for what, value in (("stype", stype), ("grad_stype", grad_stype)):
            if value not in _STORAGE_TYPES:
                raise ParameterLoadError(
                    f"{what} for Parameter '{name}' must be one of {_STORAGE_TYPES}, but got '{value}'"
                )
        self._var: Symbol | None = None
        self._data: list[NDArray] | None = None
        self._grad: list[NDArray] | None = None
        self._ctx_list: list[Context] | None = None
        self._ctx_map: dict[Context, int] | None = None  # positions in _ctx_list; libraries copy both attributes
        self._trainer: Any = None
        self._synchronizer: Any = None  # the trainer that keeps the value equal in all processes
        self._named_by: str | None = None  # "dict" or "block"; None: by its creator
        self._deferred_init: tuple[Any, ...] = ()
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._grad_req: str | None = None
        self._shape = (shape,) if isinstance(shape, int) else (None if shape is None else tuple(shape))
        self._dtype = dtype
        self._stype = stype
        self._grad_stype = grad_stype
        self.name = name
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.grad_req = grad_req
        self.init = init

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._computes_data = cls.data is not Parameter.data

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _METHODS and not callable(value):
            raise set_method("Parameter", name)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    # -- attributes -------------------------------------------------------------------------------------------------

    @property
    def grad_req(self) -> str:
        """The gradient mode: 'write', 'add' or 'null'. Setting 'null' frees the gradient, other values create it."""
        return self._grad_req  # type: ignore[return-value]

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in ("write", "add", "null"):
            raise HybridNetValueError(f"grad_req must be one of 'write', 'add', or 'null', but got '{req}'")
        if not self._differentiable:
            req = "null"
        if self._grad_req == req:
            return
        self._grad_req = req
        if self._data is None:
            return
        if req == "null":
            self._grad = None
            self._data = [array.detach() for array in self._data]
        else:
            self._init_grad()

    @property
    def dtype(self) -> Any:
        """The element type. Setting it casts the value."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> Any:  # a tuple in programs, after initialization
        """The sizes; unknown ones are 0, or -1 under NumPy shape semantics. None: nothing is known."""
        if self._shape is None:
            return None
        if is_np_shape():
            return tuple(-1 if size == 0 else size for size in self._shape)
        return self._shape

    @shape.setter
    def shape(self, new_shape: Sequence[int]) -> None:
        new_shape = tuple(new_shape)
        old = self._shape
        if old is not None and (
            len(old) != len(new_shape)
            or any(size not in (-1, 0, new) for new, size in zip(new_shape, old, strict=False))
        ):
            raise ParameterLoadError(
                f"Parameter '{self.name}': Expected shape {old} is incompatible with given shape {new_shape}.",
                fix="pass values of the expected shape; transpose a weight of (inputs, outputs)",
            )
        self._shape = new_shape

    @property
    def stype(self) -> str:
        """The storage type of the value."""
        return self._stype

    @property
    def grad_stype(self) -> str:
        """The storage type of the gradient."""
        return self._grad_stype

    def _set_trainer(self, trainer: Any) -> None:
        if self._stype != "default" and self._trainer is not None and trainer not in (None, self._trainer):
            raise HybridNetError(
                f"Parameter '{self.name}' has a Trainer already",
                because=f"its value is {self._stype}, whose rows are fetched through one Trainer",
                fix="use that Trainer, or a dense parameter with grad_stype='row_sparse'",
            )
        self._trainer = trainer

    # -- initialization ---------------------------------------------------------------------------------------------

    def initialize(
        self,
        init: Any = None,
        ctx: Context | Sequence[Context] | None = None,
        default_init: Any = None,
        force_reinit: bool = False,
    ) -> None:
        """Creates value and gradient, now or, if the shape is unknown, at the first batch.

        Parameters
        ----------
        init : Initializer or str, optional
            Takes precedence over the parameter's own initializer and default_init.
        ctx : Context or list of Context, optional
            Contexts of the copies; default: the current context.
        default_init : Initializer or str, default Uniform()
        force_reinit : bool, default False
            Whether an existing value is initialized again; otherwise a warning is issued and nothing happens.

        Raises ValueError if the shape is not known and allow_deferred_init is False.
        """
        if self._data is not None and not force_reinit:
            warn(f"Parameter '{self.name}' is already initialized, ignoring. Set force_reinit=True to re-initialize.")
            return
        self._data = self._grad = None
        if default_init is None:
            default_init = initializer.Uniform()
        if init is None:
            init = default_init if self.init is None else self.init
        if not shape_is_known(self.shape) and not self._allow_deferred_init:
            raise HybridNetValueError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}",
                fix="give every size, or allow_deferred_init=True to wait for the first batch",
            )
        self._deferred_init = (init, _context_list(ctx), default_init, None)
        if shape_is_known(self.shape):
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Creates value and gradient now that the shape is known; does nothing if they exist.

        Raises ValueError if the shape is still not known.
        """
        if not self._deferred_init:
            return
        init, ctx, default_init, data = self._deferred_init
        shape = self.shape
        if shape is None or not shape_is_known(shape):
            raise HybridNetValueError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}. "
                "Please specify in_units, in_channels, etc for `Block`s."
            )
        self._deferred_init = ()
        with autograd.pause():
            own = data is None
            if own:
                data = ndarray.zeros(shape, ctx=cpu(), dtype=self.dtype)
                desc = initializer.InitDesc(self.name, {"__init__": init})
                initializer.create(default_init)(desc, data)
            self._init_impl(data, ctx, own)

    def _init_impl(self, data: NDArray, ctx_list: Sequence[Context], own: bool = False) -> None:
        """Creates value and gradient. own: data has no other reader, so it becomes the value without a copy."""
        self._ctx_list = list(ctx_list)
        self._ctx_map = {ctx: position for position, ctx in enumerate(self._ctx_list)}
        if self._stype != "default" and data.stype == "default":
            data = sparse.whole(data, self._stype)
        self._data = [
            _for_gluon(data if own and place == 0 and data.context == ctx else data.copyto(ctx))
            for place, ctx in enumerate(self._ctx_list)
        ]
        self._init_grad()
        self._note_value()

    def _note_value(self) -> None:
        """Called when a value was set."""
        if self._trainer is not None:
            self._trainer._value_was_set(self)
        if self._synchronizer is not None:
            self._synchronizer._take_values_of_first_process([self])

    def _init_grad(self) -> None:
        if self.grad_req == "null":
            self._grad = None
            return
        values = self._data or []
        self._grad = [_zeros_like(a, self._grad_stype) for a in values]
        autograd.mark_variables(values, self._grad, self.grad_req)

    def _load_init(
        self, data: NDArray, ctx: Any, cast_dtype: bool = False, dtype_source: str = "current", own: bool = False
    ) -> int:
        """Takes its value from data, initializing if needed; own: data has no other reader. Returns the number of bytes
        that this returned to the pool.

        cast_dtype allows another element type: dtype_source 'current' casts data, 'saved' casts the parameter.
        Raises ParameterLoadError if shape, element type or contexts do not fit.
        """
        if dtype_source not in ("current", "saved"):
            raise HybridNetValueError("dtype_source must be 'current' or 'saved'", given=repr(dtype_source))
        if data is None:  # a record without a value
            raise ParameterLoadError(f"Parameter '{self.name}': the file has its name without a value")
        self._check_loaded_shape(data.shape)
        data = self._check_loaded_dtype(data, cast_dtype, dtype_source)
        ctx = None if ctx is None else _context_list(ctx)
        if ctx is not None and (self._data is not None or self._deferred_init) and set(ctx) != set(self.list_ctx()):
            raise ParameterLoadError(
                f"Failed to load Parameter '{self.name}' on {ctx} because it was previous initialized on "
                f"{self.list_ctx()}",
                fix="leave ctx out, or call reset_ctx first",
            )
        freed = 0
        if self._data is not None:
            if own and len(self._data) == 1 and _core.adopt(self._data[0], data):
                freed = data.size * numpy_dtype(data.dtype).itemsize
                self._note_value()
            else:
                self.set_data(data)
        else:
            place = self._deferred_init[1] if self._deferred_init else ctx or [cpu()]
            with autograd.pause():
                self._init_impl(data, place, own)
        self._deferred_init = ()
        return freed

    def _check_loaded_shape(self, saved: tuple[int, ...]) -> None:
        own = self._shape
        if own is None:
            self._shape = tuple(saved)
            return
        if len(own) != len(saved) or any(size not in (-1, 0, new) for size, new in zip(own, saved, strict=False)):
            raise ParameterLoadError(
                f"Failed loading Parameter '{self.name}' from saved params: shape incompatible expected {self.shape} "
                f"vs saved {tuple(saved)}",
                fix="build the layer with the sizes that it was saved with",
            )
        self._shape = tuple(saved)

    def _check_loaded_dtype(self, data: NDArray, cast_dtype: bool, dtype_source: str) -> NDArray:
        if self.dtype is None or numpy_dtype(self.dtype) == numpy_dtype(data.dtype):
            return data
        if not cast_dtype:
            raise ParameterLoadError(
                f"Failed loading Parameter '{self.name}' from saved params: dtype incompatible expected "
                f"{dtype_name(self.dtype)} vs saved {dtype_name(data.dtype)}. "
                "Set cast_dtype=True to cast the dtype of saved params."
            )
        if dtype_source == "saved":
            self.dtype = data.dtype
            return data
        return data.astype(self.dtype)

    def reset_ctx(self, ctx: Context | Sequence[Context] | None) -> None:
        """Moves the parameter to other contexts. Raises ValueError if it was never initialized."""
        places = _context_list(ctx)
        if self._data is not None:
            data = self._reduce()
            with autograd.pause():
                self._init_impl(data, places)
        elif self._deferred_init:
            init, _, default_init, data = self._deferred_init
            self._deferred_init = (init, places, default_init, data)
        else:
            raise HybridNetValueError(
                f"Cannot reset context for Parameter '{self.name}' because it has not been initialized."
            )

    def set_data(self, data: Any) -> None:
        """Overwrites the value on all contexts. Raises ParameterLoadError if the shape does not fit.

        While a block is traced, each run of the graph writes the traced value.
        """
        if isinstance(data, symbol.Symbol):
            self.data()[:] = data
            return
        if not hasattr(data, "shape"):
            data = ndarray.array(data, dtype=self.dtype)
        self.shape = data.shape
        if self._data is None:
            if not self._deferred_init:
                raise ParameterLoadError(f"Parameter '{self.name}' has not been initialized")
            self._deferred_init = (*self._deferred_init[:3], data)
            return
        for array in self._data:
            array[:] = data
        self._note_value()

    def cast(self, dtype: Any) -> None:
        """Converts value and gradient to another element type."""
        self._dtype = dtype
        self._var = None
        if self._data is None:
            return
        with autograd.pause():
            self._data = [array.astype(dtype) for array in self._data]
            self._init_grad()

    def zero_grad(self) -> None:
        """Sets the gradient to zero on all contexts, if there is one."""
        for grad in self._grad or ():
            grad[:] = 0

    def _reduce(self) -> NDArray:
        """Returns the value on the CPU: the mean over contexts."""
        arrays = self._check_and_get(self._data, list)
        if len(arrays) == 1:
            return arrays[0].copyto(cpu())
        return ndarray.add_n(*(array.copyto(cpu()) for array in arrays)) / len(arrays)

    # -- access -----------------------------------------------------------------------------------------------------

    def _uninitialized(self) -> Exception:
        if self._deferred_init:
            return DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred",
                because="its shape is known after the first forward pass only",
                fix="call net(data) with one batch first, or build the layers with in_units=, in_channels= or "
                "input_size=",
            )
        return HybridNetError(
            f"Parameter '{self.name}' has not been initialized",
            fix=(
                "call net.initialize() before the first batch, and give collect_params() to Trainer: Block.params "
                "lacks the parameters of the blocks inside"
            ),
        )

    def _check_and_get(self, arrays: list[NDArray] | None, ctx: Any) -> Any:
        if arrays is None:
            raise self._uninitialized()
        if ctx is list:
            return arrays
        if ctx is None:
            if len(arrays) == 1:
                return arrays[0]
            ctx = current_context()
        position = (self._ctx_map or {}).get(ctx)
        if position is not None:
            return arrays[position]
        raise HybridNetError(
            f"Parameter '{self.name}' was not initialized on context {ctx}. "
            f"It was only initialized on {self._ctx_list}."
        )

    def _used_data(self, ctx: Any) -> Any:
        """Returns the value that a block computes with: the value itself, or a subclass's data(), such as dropout."""
        return self.data(ctx) if self._computes_data else self._check_and_get(self._data, ctx)

    def data(self, ctx: Context | None = None) -> Any:
        """Returns the value on ctx (default: the only or current context). While a block is traced: its variable.

        Raises RuntimeError if not initialized (there), DeferredInitializationError if the shape is not known yet.
        """
        scope = _tracing.current()
        if scope is not None:
            return scope.variable(self)
        self._refuse_row_sparse("data", "row_sparse_data", ctx)
        return self._check_and_get(self._data, ctx)

    def _refuse_row_sparse(self, method: str, instead: str, ctx: Any = None) -> None:
        if self._stype == "row_sparse":
            raise HybridNetError(
                f"Cannot return a copy of Parameter '{self.name}' on {ctx or 'all contexts'} via {method}() because "
                f"its storage type is {self._stype}. Please use {instead}() instead."
            )

    def list_data(self) -> list[NDArray]:
        """Returns the values on all contexts. Raises the errors of data()."""
        self._refuse_row_sparse("list_data", "list_row_sparse_data")
        return self._check_and_get(self._data, list)

    def _check_has_grad(self) -> None:
        if self._data is not None and self._grad is None:
            raise HybridNetError(f"Cannot get gradient array for Parameter '{self.name}' because grad_req='null'")

    def grad(self, ctx: Context | None = None) -> NDArray:
        """Returns the gradient on ctx. Raises the errors of data(), and RuntimeError if grad_req is 'null'."""
        self._check_has_grad()
        return self._check_and_get(self._grad, ctx)

    def list_grad(self) -> list[NDArray]:
        """Returns the gradients on all contexts. Raises the errors of grad()."""
        self._check_has_grad()
        return self._check_and_get(self._grad, list)

    def list_ctx(self) -> list[Context]:
        """Returns the contexts that it is or will be initialized on. Raises RuntimeError if not initialized."""
        if self._data is not None:
            return self._ctx_list  # type: ignore[return-value]
        if self._deferred_init:
            return self._deferred_init[1]
        raise self._uninitialized()

    def row_sparse_data(self, row_id: NDArray) -> NDArray:
        """Returns rows row_id of the value on row_id's context; the row_sparse result has the parameter's gradient.

        Raises RuntimeError for parameters in other storage and for those without a Trainer.
        """
        self._require_row_sparse("a copy", "row_sparse_data", row_id)
        return sparse.rows_of_table(self._check_and_get(self._data, row_id.context), row_id)

    def list_row_sparse_data(self, row_id: NDArray) -> list[NDArray]:
        """Returns rows row_id of the values on all contexts. Raises the errors of row_sparse_data()."""
        self._require_row_sparse("copies", "list_row_sparse_data", row_id)
        return [sparse.rows_of_table(array, row_id) for array in self._check_and_get(self._data, list)]

    def _require_row_sparse(self, what: str, method: str, row_id: Any) -> None:
        if self._stype != "row_sparse":
            raise HybridNetError(
                f"Cannot return {what} of Parameter {self.name} via {method}() because its storage type is "
                f"{self._stype}. Please use data() instead."
            )
        if not isinstance(row_id, ndarray.NDArray):
            raise HybridNetTypeError(f"{method}: row_id must be an NDArray", given=type(row_id).__name__)
        if self._trainer is None:
            raise HybridNetError(
                f"Cannot get row_sparse data for Parameter '{self.name}' when no Trainer is created with it."
            )

    # -- graphs -----------------------------------------------------------------------------------------------------

    def var(self) -> Symbol:
        """Returns the variable that represents the parameter in a graph."""
        scope = _tracing.current()
        return scope.variable(self) if scope is not None else self._make_var()

    def _make_var(self) -> Symbol:
        if self._var is None:
            var = symbol.var(
                self.name,
                shape=self.shape,
                dtype=self.dtype,
                lr_mult=self.lr_mult,
                wd_mult=self.wd_mult,
                init=self._init_text(),
                stype=self._stype,
            )
            self._var = var.as_np_ndarray() if is_np_array() else var
            _tracing.note_parameter(self._var, self)
        return self._var

    def _make_traced(self, name: str) -> Symbol:
        shape = self._shape
        if shape is not None and 0 in shape:
            shape = tuple(size or -1 for size in shape)
        return _core.traced_parameter(
            name,
            shape,
            self._dtype,
            is_np_array(),
            self.lr_mult,
            self.wd_mult,
            _STORAGE_CODES[self._stype],
            None if self.init is None else self._traced_init_text(),
        )

    def _traced_init_text(self) -> str | None:
        return self._init_text()

    def _init_text(self) -> str | None:
        """The text of its own initializer for a graph's variable; None if there is none or it has no text."""
        if self.init is None or isinstance(self.init, str):
            return self.init
        try:
            return self.init.dumps()
        except (AttributeError, TypeError):  # any callable is allowed, and its arguments need not be JSON
            return None

    def _take_traced_shape(self, variable: Symbol) -> None:
        """Takes unknown sizes from the inferred shape of the variable of a trace."""
        shape = variable.shape
        if shape is not None and all(size >= 0 for size in shape):
            self.shape = shape


_WORTH_RELEASING = 16 << 20


def release_freed(count: int) -> None:
    """Returns pooled memory to the system if replacing parameters has freed much of it (count: bytes)."""
    if count >= _WORTH_RELEASING:
        cpu().empty_cache()


def _for_gluon(array: NDArray) -> NDArray:
    """Converts the array to the class that blocks use: mx.np's after npx.set_np()."""
    return array.as_np_ndarray() if is_np_array() else array.as_nd_ndarray()


def _zeros_like(array: NDArray, stype: str) -> NDArray:
    """Zeros for the gradient of an array. Dense ones on a CPU use no memory before the first read or write."""
    if stype != "default" or array.context.device_type == "gpu":
        zeros = ndarray.zeros(array.shape, ctx=array.context, dtype=array.dtype, stype=stype)
    else:
        zeros = _core.deferred_zeros(array)
    return zeros if stype != "default" or array.stype != "default" else _core.retyped(zeros, type(array))


add_habits(Parameter, "parameter", refused=("lr", "requires_grad", "trainable"))
refuse_arithmetic(Parameter)
_METHODS = frozenset(name for name, value in vars(Parameter).items() if callable(value) and name[0] != "_")


class Constant(Parameter):
    """A constant that is saved with the block but never trained: grad_req is always 'null'.

    Parameters
    ----------
    name : str
    value : NDArray, numpy array or nested list
    """

    def __init__(self, name: str, value: Any) -> None:
        if not isinstance(value, ndarray.NDArray):
            value = ndarray.array(value)
        self.value = value
        super().__init__(name, grad_req="null", shape=value.shape, dtype=value.dtype, init=initializer.Constant(value))

    def _traced_init_text(self) -> str | None:
        return None  # its values are in the parameter file

    @property
    def grad_req(self) -> str:
        """Always 'null'."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        self._grad_req = "null"
        if req != "null":
            warn(
                f'Constant parameter "{self.name}" does not support grad_req other than "null", and new value '
                f'"{req}" is ignored.',
            )


# MXNet also has it in this module.
__getattr__, __dir__ = names_from(__name__, {"_parameter_dict": "ParameterDict"}, {"context": "..context"})
__dir__ = dir_of(__name__, __dir__)
