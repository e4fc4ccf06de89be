"""Block: the base of layers and models; children, parameters, names, hooks, files."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .. import name as _name
from .. import ndarray
from .._habits import add_habits
from .._keywords import check_hybridize_keywords, check_keywords, no_keyword, unknown_keyword
from .._lazy_names import names_from
from .._public_names import dir_of
from .._user_line import warn
from ..errors import HybridNetError, ShapeError, not_overridden
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..ndarray.utils import load_mapped
from ._baked_attributes import attribute_is_set, forget_readers
from ._block_errors import add_block_path
from ._constructor_calls import NotConstructed, check_arguments, no_children, no_layer, wrong_call
from ._formats import _flatten as _flatten  # libraries use it to pass nested states
from ._formats import _regroup as _regroup
from ._model_files import read_model, write_model
from ._parameter_dict import ParameterDict
from ._summary import print_summary
from ._wrong_uses import set_method
from .parameter import Parameter, ParameterLoadError, release_freed
from .utils import HookHandle, _brief_print_list, _indent

if TYPE_CHECKING:
    from ..context import Context

__all__ = ["Block"]

BlockT = TypeVar("BlockT", bound="Block")


class _CurrentScope(threading.local):
    """The current scope of each thread."""

    value: _BlockScope | None = None


class _BlockScope:
    """Name scope, entered by ``with block.name_scope()``: prefixes count up per class of block."""

    _current = _CurrentScope()

    def __init__(self, block: Block) -> None:
        self._block = block
        self._counter: dict[str, int] = {}
        # A stack: a scope may be reentered within itself, and by several traces.
        self._entered: list[tuple[_BlockScope | None, Any]] = []

    @staticmethod
    def create(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
        """Returns the full prefix and the parameter dict of a new block."""
        current = _BlockScope._current.value
        if current is None:
            if prefix is None:
                prefix = _name.current().get(None, hint) + "_"
            params = ParameterDict(prefix) if params is None else ParameterDict(params.prefix, params)
            return prefix, params
        if prefix is None:
            count = current._counter.get(hint, 0)
            prefix = f"{hint}{count}_"
            current._counter[hint] = count + 1
        if params is None:
            parent = current._block.params
            params = ParameterDict(parent.prefix + prefix, parent._shared)
        else:
            params = ParameterDict(params.prefix, params)
        return current._block.prefix + prefix, params

    def __enter__(self) -> _BlockScope:
        block = self._block
        if block._empty_prefix:
            return self
        names = _name.Prefix(block.prefix)
        current = _BlockScope._current
        self._entered.append((current.value, names))
        current.value = self
        names.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        if self._block._empty_prefix:
            return
        _BlockScope._current.value, names = self._entered.pop()
        names.__exit__()


def _holds_unregistered(value: Any, children: set[int]) -> bool:
    if isinstance(value, Block):
        return id(value) not in children
    if isinstance(value, (list, tuple)):
        return any(_holds_unregistered(item, children) for item in value)
    if isinstance(value, dict):
        return any(_holds_unregistered(item, children) for item in value.values())
    return False


def _may_agree(shape: tuple[int, ...] | None, other: tuple[int, ...] | None) -> bool:
    """Whether two shapes with possibly unknown sizes can be equal."""
    if shape is None or other is None:
        return True
    return len(shape) == len(other) and all(a == b or a <= 0 or b <= 0 for a, b in zip(shape, other, strict=True))


class Block:
    """Base of layers and models. Subclasses define ``forward``.

    Blocks and Parameters set as attributes become children and own parameters::

        class Model(gluon.Block):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                with self.name_scope():
                    self.hidden = nn.Dense(20)
                    self.out = nn.Dense(10)

            def forward(self, x):
                return self.out(mx.nd.relu(self.hidden(x)))

    Parameters
    ----------
    prefix : str, optional
        Prepended to the names of parameters and children; default: class name and a number.
    params : ParameterDict, optional
        Parameters to share: ``nn.Dense(20, params=other.collect_params())``.
    """

    # Instances have attributes of these names once the constructor has run.
    _children: Any = NotConstructed()
    _forward_hooks: Any = NotConstructed()
    _forward_pre_hooks: Any = NotConstructed()
    _params: Any = NotConstructed()
    _prefix: Any = NotConstructed()
    _reg_params: Any = NotConstructed()
    _scope: Any = NotConstructed()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            check_keywords(cls, args, kwargs)
        if args:
            check_arguments(cls, args)
        return super().__new__(cls)

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None, **unknown: Any) -> None:
        if unknown:
            raise unknown_keyword(type(self), unknown)
        self._empty_prefix = prefix == ""
        self._prefix, self._params = _BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix[:-1] if self._prefix.endswith("_") else self._prefix
        self._scope = _BlockScope(self)
        self._children: OrderedDict[str, Block] = OrderedDict()
        self._reg_params: dict[str, Parameter] = {}
        self._forward_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._forward_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    def __repr__(self) -> str:
        lines = [f"  ({key}): {_indent(repr(b), 2)}" for key, b in self.__dict__.items() if isinstance(b, Block)]
        return "{}(\n{}\n)".format(type(self).__name__, "\n".join(lines))

    def __setattr__(self, name: str, value: Any) -> None:
        existing = self.__dict__.get(name)
        if isinstance(existing, (Parameter, Block)) and not isinstance(value, type(existing)):
            raise HybridNetTypeError(
                f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not allowed.",
                fix=f"write values by block.{name}.set_data(array)"
                if isinstance(existing, Parameter)
                else f"set block.{name} to a {type(existing).__name__}, or use another name",
            )
        if name == "hybridize" and not callable(value):
            raise set_method(type(self).__name__, name)
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if self._reg_params.get(name, value) is not value:
                raise HybridNetValueError(
                    f"Overriding Parameter attribute {name} is not allowed. If you want to share parameters between "
                    "blocks, please set 'params' at Block construction instead."
                )
            self._reg_params[name] = value
            self._params._adopt(name, value)
        attribute_is_set(self, name, existing, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        forget_readers(self, name)
        super().__delattr__(name)

    if TYPE_CHECKING:
        # For type checkers: subclasses set children and parameters under computed names.
        def __getattr__(self, name: str) -> Any: ...

    def _check_container_with_block(self) -> None:
        children = {id(child) for child in self._children.values()}
        for key, value in self.__dict__.items():
            if key.startswith("_") or not isinstance(value, (list, tuple, dict)):
                continue
            if _holds_unregistered(value, children):
                warn(
                    f'"{type(self).__name__}.{key}" is an unregistered container with Blocks. Note that Blocks inside '
                    "the list, tuple or dict will not be registered automatically. Make sure to register them using "
                    "register_child() or switching to nn.Sequential/nn.HybridSequential instead. ",
                )

    def _alias(self) -> str:
        return type(self).__name__.lower()

    @property
    def prefix(self) -> str:
        """The prefix of the names of parameters and children."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without the '_' at its end."""
        return self._name

    def name_scope(self) -> _BlockScope:
        """Returns a context in which new children and parameters have this block's prefix."""
        return self._scope

    @property
    def params(self) -> ParameterDict:
        """This block's own parameters, without those of its children."""
        return self._params

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """Returns the parameters of this block and all descendants.

        select: regular expression matched from the start of the names, such as ``".*weight|.*bias"``.
        """
        self._check_container_with_block()
        result = ParameterDict(self._params.prefix)
        if select:
            pattern = re.compile(select)
            result.update({name: value for name, value in self.params.items() if pattern.match(name)})
        else:
            result.update(self.params)
        for child in self._children.values():
            result.update(child.collect_params(select=select))
        return result

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Returns parameters by structural name: ``features.0.weight``."""
        if prefix:
            prefix += "."
        result = {prefix + key: value for key, value in self._reg_params.items()}
        for name, child in self._children.items():
            result.update(child._collect_params_with_prefix(prefix + name))
        return result

    # -- files ------------------------------------------------------------------------------------------------------

    def save_parameters(self, filename: str, deduplicate: bool = False, **unknown: NoReturn) -> None:
        """Writes the parameters, by structural name, to a ``.params`` file for load_parameters.

        deduplicate: whether a parameter shared by several blocks is written only once.
        """
        if unknown:
            raise no_keyword(Block.save_parameters, unknown)
        ndarray.save(filename, self._arrays_to_save(deduplicate))

    def _arrays_to_save(self, deduplicate: bool = False) -> dict[str, ndarray.NDArray]:
        """Returns the arrays that save_parameters writes."""
        params = self._collect_params_with_prefix()
        if deduplicate:
            last_name = {param: name for name, param in params.items()}
            params = {name: param for param, name in last_name.items()}
        return {name: param._reduce() for name, param in params.items()}

    def save_params(self, filename: str) -> None:
        """Deprecated: writes the parameters by name without prefix. Use save_parameters."""
        warn("save_params is deprecated. Please use save_parameters.", DeprecationWarning)
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_parameters(
        self,
        filename: str,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
        **unknown: NoReturn,
    ) -> None:
        """Reads parameters that save_parameters (or ParameterDict.save) wrote.

        Parameters
        ----------
        filename : str
        ctx : Context or list of Context, optional
            Contexts for parameters that are not initialized; default: cpu().
        allow_missing : bool, default False
            Whether parameters missing in the file keep their value.
        ignore_extra : bool, default False
            Whether arrays without a parameter are skipped.
        cast_dtype : bool, default False
            Whether element types may differ; dtype_source 'current' casts the file's arrays, 'saved' the parameters.

        Raises FileError or FormatError for the file itself, ParameterLoadError (a ValueError) if names, shapes, element
        types or contexts do not fit.
        """
        if unknown:
            raise no_keyword(Block.load_parameters, unknown)
        loaded = load_mapped(filename)
        params = self._collect_params_with_prefix()
        if not loaded and not params:
            return
        if not isinstance(loaded, dict):
            raise ParameterLoadError(
                f"file '{filename}' holds a list of {len(loaded)} arrays without names, which cannot be matched "
                "with parameters",
                fix="write it with save_parameters",
            )
        # Names with prefixes, written by ParameterDict.save and old versions of MXNet. The names of a block without
        # children have no dot in either form.
        if not any("." in name for name in loaded) and not set(loaded) & set(params):
            self.collect_params().load(
                filename,
                ctx,
                allow_missing,
                ignore_extra,
                self.prefix,
                cast_dtype=cast_dtype,
                dtype_source=dtype_source,
            )
            return
        if not allow_missing:
            self._check_nothing_missing(params, loaded, filename)
        freed = 0
        for name, array in loaded.items():
            if name in params:
                freed += params[name]._load_init(array, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source, own=True)
            elif not ignore_extra:
                raise ParameterLoadError(
                    f"Parameter '{name}' loaded from file '{filename}' is not present in this block, which contains "
                    f"parameters {_brief_print_list(params)}. Set ignore_extra=True to ignore. ",
                    fix="build the block that was saved, or pass ignore_extra=True",
                )
        release_freed(freed)

    @staticmethod
    def _check_nothing_missing(params: dict[str, Parameter], loaded: dict[str, Any], filename: str) -> None:
        # A shared parameter has several names; the file needs only one of them.
        names = defaultdict(list)
        for name, param in params.items():
            names[param].append(name)
        for name, param in params.items():
            if not any(alias in loaded for alias in names[param]):
                raise ParameterLoadError(
                    f"Parameter '{name}' is missing in file '{filename}', which contains parameters: "
                    f"{_brief_print_list(loaded)}. Set allow_missing=True to ignore missing parameters.",
                    fix="build the block that was saved, or pass allow_missing=True and initialize the others",
                )

    def load_params(
        self, filename: str, ctx: Any = None, allow_missing: bool = False, ignore_extra: bool = False
    ) -> None:
        """Deprecated: same as load_parameters."""
        warn("load_params is deprecated. Please use load_parameters.", DeprecationWarning)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Writes prefix-model.json, the names of all blocks, and prefix-model.params for load().

        Unlike save_parameters, this works for blocks whose children have names that differ from run to run.
        """
        write_model(self, prefix)

    def load(self, prefix: str) -> None:
        """Reads a file of save() into the same structure, created in the same order; restores hybridization.

        Children take their saved names. Raises FileError or FormatError for the files,
        ParameterLoadError if the structure or parameters differ.
        """
        read_model(self, prefix)

    # -- children and hooks -----------------------------------------------------------------------------------------

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Adds a child block. Attributes that are blocks are registered automatically."""
        if not isinstance(block, Block):
            raise no_layer(block, type(self).__name__)
        self._children[str(len(self._children)) if name is None else name] = block

    def register_forward_pre_hook(self, hook: Callable[[Block, tuple[Any, ...]], None]) -> HookHandle:
        """Calls ``hook(block, inputs)`` before every forward. The hook must not modify them."""
        handle = HookHandle()
        handle.attach(self._forward_pre_hooks, hook)
        return handle

    def register_forward_hook(self, hook: Callable[[Block, tuple[Any, ...], Any], None]) -> HookHandle:
        """Calls ``hook(block, inputs, outputs)`` after every forward. The hook must not modify them."""
        handle = HookHandle()
        handle.attach(self._forward_hooks, hook)
        return handle

    def register_op_hook(self, callback: Callable[..., None], monitor_all: bool = False) -> None:
        """Calls ``callback(name, op name, array)`` for operators' outputs (with monitor_all, also inputs) of all
        hybridized descendants.
        """
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def apply(self: BlockT, fn: Callable[[Block], Any]) -> BlockT:
        """Calls fn on every descendant, then on this block. Returns this block."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def initialize(
        self,
        init: Any = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
        **unknown: NoReturn,
    ) -> None:
        """Initializes all parameters.

        Parameters
        ----------
        init : Initializer or str, default Uniform()
            For parameters without their own initializer.
        ctx : Context or list of Context, optional
            Default: the current context.
        verbose : bool, default False
            Logs each array.
        force_reinit : bool, default False
            Whether parameters that have a value are initialized again.
        """
        if unknown:
            raise no_keyword(Block.initialize, unknown)
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridizes all HybridBlock descendants. Raises ParamError for keywords that HybridBlock.hybridize() lacks."""
        check_hybridize_keywords(kwargs)
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def cast(self, dtype: Any) -> None:
        """Converts all parameters to another element type."""
        for child in self._children.values():
            child.cast(dtype)
        for param in self.params.values():
            param.cast(dtype)

    def zero_grad(self) -> None:
        """Sets all gradients to zero."""
        self.collect_params().zero_grad()

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Moves all parameters to other contexts."""
        for param in self.collect_params().values():
            param.reset_ctx(ctx)

    def share_parameters(self: BlockT, shared: ParameterDict | dict[str, Parameter] | Block) -> BlockT:
        """Replaces own parameters by the given ones, by structural name (``features.0.weight``), or by those of another
        block. Returns itself.

        A parameter that two blocks share has one value and one gradient: the sum of both gradients.
        Raises ValueError if a name is not one of this block's parameters, ShapeError if a shape differs.
        """
        if isinstance(shared, Block):
            shared = shared._collect_params_with_prefix()
        shared = dict(shared.items())
        unknown = set(shared) - set(self._collect_params_with_prefix())
        if unknown:
            raise HybridNetValueError(
                f"share_parameters: no parameter {_brief_print_list(sorted(unknown))} in this block, which contains "
                f"{_brief_print_list(self._collect_params_with_prefix())}"
            )
        for name, own in self._collect_params_with_prefix().items():
            if name in shared and not _may_agree(own.shape, shared[name].shape):
                raise ShapeError(
                    f"share_parameters: parameter {name!r}",
                    expected=f"shape {own.shape}",
                    given=f"{shared[name].shape}, that of {shared[name].name!r}",
                    input=name,
                )
        self._take_shared(shared, "")
        return self

    def _take_shared(self, shared: dict[str, Parameter], prefix: str) -> None:
        for key, own in list(self._reg_params.items()):
            param = shared.get(prefix + key)
            if param is None or param is own:
                continue
            self._params._params = OrderedDict(
                (param.name, param) if value is own else (name, value) for name, value in self._params._params.items()
            )
            self._reg_params[key] = param
            object.__setattr__(self, key, param)
        for name, child in self._children.items():
            child._take_shared(shared, f"{prefix}{name}.")

    # -- calling ----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs hooks and forward."""
        for hook in tuple(self._forward_pre_hooks.values()):
            hook(self, args)
        try:
            out = self.forward(*args, **kwargs)
        except HybridNetError as error:
            add_block_path(error, self)
            raise
        except TypeError:
            if explained := wrong_call(self, args, kwargs):
                raise explained from None
            raise
        for hook in tuple(self._forward_hooks.values()):
            hook(self, args, out)
        return out

    def __getitem__(self, key: Any) -> Any:
        """Raises TypeError: only containers have indices. Without this method Python would not name the children."""
        raise no_children(self)

    def forward(self, *args: Any) -> Any:
        """Computes the outputs; subclasses override it."""
        raise not_overridden(self, "forward()")

    def summary(self, *inputs: Any) -> None:
        """Prints layers, output shapes and parameter counts for one run on inputs.

        Layers that run several times with equal shapes, as in a loop, have one row. For a hybridized block whose graph
        was cut into segments, prints these and the cuts. Raises RuntimeError if the block is not initialized.
        """
        print_summary(self, inputs)


add_habits(Block, "block")

# MXNet also has these in this file.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_hybrid_block": "HybridBlock",
        "_symbol_block": "SymbolBlock",
    },
    {"initializer": "..initializer", "symbol": "..symbol"},
)
__dir__ = dir_of(__name__, __dir__)
