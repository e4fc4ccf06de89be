"""ParameterDict: parameters by name, created, shared, saved and loaded together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import initializer, ndarray
from .._habits import add_habits
from ..errors import KeyError as HybridNetKeyError
from ..errors import ValueError as HybridNetValueError
from ..ndarray._dtypes import numpy_dtype
from ..ndarray.utils import load_mapped
from .parameter import Constant, Parameter, ParameterLoadError, release_freed
from .utils import _brief_print_list, _indent

if TYPE_CHECKING:
    from ..context import Context
    from ..ndarray import NDArray

__all__ = ["ParameterDict"]


def _merge_shapes(wanted: Sequence[int], stored: Sequence[int]) -> tuple[int, ...] | None:
    """Merges two shapes with unknown sizes; None if they contradict each other."""
    merged = []
    for a, b in zip(wanted, stored, strict=False):
        if a != b and a > 0 and b > 0:
            return None
        merged.append(b if a in (0, -1) else a)
    return tuple(merged)


class ParameterDict:
    """Parameters by full name, in order of creation; creates new ones under its prefix.

    Parameters
    ----------
    prefix : str, default ''
        Prepended to the names that get() takes.
    shared : ParameterDict, optional
        Searched by get() before it creates a new parameter: blocks share weights through it.
    """

    def __init__(self, prefix: str = "", shared: ParameterDict | None = None) -> None:
        self._prefix = prefix
        self._params: OrderedDict[str, Parameter] = OrderedDict()
        self._shared = shared

    def __repr__(self) -> str:
        name = self._prefix + " " if self._prefix else ""
        content = "\n".join(_indent(f"  {value}", 2) for value in self.values())
        return f"{name}(\n{content}\n)"

    def __getitem__(self, key: str) -> Parameter:
        return self._params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> ItemsView[str, Parameter]:
        """Returns (name, Parameter) pairs."""
        return self._params.items()

    def keys(self) -> KeysView[str]:
        """Returns the full names."""
        return self._params.keys()

    def values(self) -> ValuesView[Parameter]:
        """Returns the parameters."""
        return self._params.values()

    @property
    def prefix(self) -> str:
        """The prefix of all names."""
        return self._prefix

    def _get_impl(self, name: str) -> Parameter | None:
        found = self._params.get(name)
        if found is None and self._shared is not None:
            # Through _get_impl, so that parameters shared by a parent are found in nested blocks too.
            found = self._shared._get_impl(name)
            if found is not None:
                self._params[name] = found
        return found

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """Returns the parameter prefix + name; creates it with kwargs (see Parameter) if there is none.

        Raises ValueError if the attributes of an existing parameter contradict kwargs.
        """
        name = self.prefix + name
        param = self._get_impl(name)
        if param is None:
            param = self._params[name] = Parameter(name, **kwargs)
            param._named_by = "dict"
            return param
        for key, value in kwargs.items():
            self._reconcile(param, key, value)
        return param

    @staticmethod
    def _reconcile(param: Parameter, key: str, value: Any) -> None:
        existing = getattr(param, key, None)
        if existing is None:
            setattr(param, key, value)
            return
        if key == "shape" and value is not None:
            value = (value,) if isinstance(value, int) else tuple(value)
            if len(value) == len(existing):
                merged = _merge_shapes(value, existing)
                if merged is not None:
                    param._shape = merged
                    return
        elif key == "dtype" and value is not None and numpy_dtype(value) == numpy_dtype(existing):
            return
        if value is not None and value != existing:
            raise ParameterLoadError(
                f"Cannot retrieve Parameter '{param.name}' because desired attribute does not match with stored for "
                f"attribute '{key}': desired '{value}' vs stored '{existing}'."
            )

    def get_constant(self, name: str, value: Any = None) -> Constant:
        """Returns the constant prefix + name; creates it from value if there is none.

        Raises KeyError if there is none and value is None, ValueError if there is one with another value.
        """
        name = self.prefix + name
        param = self._get_impl(name)
        if param is None:
            if value is None:
                raise HybridNetKeyError(
                    f"No constant named '{name}'. Please specify value if you want to create a new constant."
                )
            constant = Constant(name, value)
            constant._named_by = "dict"
            self._params[name] = constant
            return constant
        if not isinstance(param, Constant):
            raise ParameterLoadError(f"Parameter '{name}' already exists but it is not a constant.")
        if value is not None:
            value = value.asnumpy() if isinstance(value, ndarray.NDArray) else np.asarray(value)
            if param.shape != value.shape or not (param.value.asnumpy() == value).all():
                raise ParameterLoadError(f"Constant '{name}' already exists but it's value doesn't match new value")
        return param

    def _adopt(self, attribute: str, param: Parameter) -> None:
        """Adds a parameter that was created directly and set as this attribute of a block, and completes its name."""
        if param._named_by == "dict":
            return  # the dict that created it has it
        if param._named_by is None:
            param._named_by = "block"
            name = param.name if param.name.startswith(self._prefix) else self._prefix + param.name
            param.name = self._prefix + attribute if self._params.get(name, param) is not param else name
        self._params.setdefault(param.name, param)

    def update(self, other: ParameterDict | Mapping[str, Parameter]) -> None:
        """Adds all parameters of other. Raises ValueError if a name refers to two different parameters."""
        for name, param in other.items():
            if self._params.setdefault(name, param) is not param:
                raise ParameterLoadError(
                    f"Cannot update self with other because they have different Parameters with the same name '{name}'"
                )

    def initialize(
        self,
        init: Any = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
    ) -> None:
        """Initializes all parameters; init (default Uniform()) applies to parameters without their own initializer."""
        if init is None:
            init = initializer.Uniform()
        if verbose:
            init.set_verbosity(verbose=verbose)
        for param in self.values():
            param.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Sets all gradients to zero."""
        grads = [grad for param in self.values() for grad in param._grad or ()]
        if grads:
            ndarray.reset_arrays(*grads, num_arrays=len(grads))

    def reset_ctx(self, ctx: Context | Sequence[Context] | None) -> None:
        """Moves all parameters to other contexts."""
        for param in self.values():
            param.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """Returns all contexts that parameters are initialized on."""
        return list(dict.fromkeys(ctx for param in self.values() for ctx in param.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Sets an attribute of every parameter: ``params.setattr("grad_req", "null")``."""
        for param in self.values():
            setattr(param, name, value)

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Writes all values to a ``.params`` file, with strip_prefix removed from the names.

        Raises ValueError if a name does not start with strip_prefix.
        """
        arrays = {}
        for param in self.values():
            if not param.name.startswith(strip_prefix):
                raise HybridNetValueError(
                    f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name '{param.name}' does "
                    f"not start with '{strip_prefix}'. this may be due to your Block shares parameters from other "
                    "Blocks or you forgot to use 'with name_scope()' when creating child blocks."
                )
            arrays[param.name[len(strip_prefix) :]] = param._reduce()
        ndarray.save(filename, arrays)

    def load(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Reads a ``.params`` file, with restore_prefix prepended to its names. Raises the errors of load_dict."""
        if restore_prefix:
            for name in self.keys():
                if not name.startswith(restore_prefix):
                    raise ParameterLoadError(
                        f"restore_prefix is '{restore_prefix}' but Parameters name '{name}' does not start with "
                        f"'{restore_prefix}'."
                    )
        self._take_values(
            load_mapped(filename),
            ctx,
            allow_missing,
            ignore_extra,
            restore_prefix,
            filename,
            cast_dtype,
            dtype_source,
            own=True,
        )

    def load_dict(
        self,
        param_dict: Mapping[str, NDArray] | Sequence[Any],
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        filename: str | None = None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Takes values from named arrays; the prefixes ``arg:`` and ``aux:`` of names are dropped.

        Parameters
        ----------
        allow_missing : bool
            Whether parameters missing in param_dict keep their value.
        ignore_extra : bool
            Whether arrays without a parameter are skipped.
        cast_dtype, dtype_source
            See Parameter._load_init.

        Raises ParameterLoadError if names, shapes, element types or contexts do not fit.
        """
        self._take_values(
            param_dict, ctx, allow_missing, ignore_extra, restore_prefix, filename, cast_dtype, dtype_source, own=False
        )

    def _take_values(
        self,
        param_dict: Mapping[str, NDArray] | Sequence[Any],
        ctx: Any,
        allow_missing: bool,
        ignore_extra: bool,
        restore_prefix: str,
        filename: str | None,
        cast_dtype: bool,
        dtype_source: str,
        *,
        own: bool,
    ) -> None:
        """Same as load_dict; own: the arrays have no other reader."""
        if isinstance(param_dict, list) and not all(isinstance(item, tuple) for item in param_dict):
            raise ParameterLoadError(
                f"file '{filename}' holds a list of {len(param_dict)} arrays without names, which cannot be "
                "matched with parameters",
                fix="save a dict, as save_parameters and ParameterDict.save do",
            )
        pairs = param_dict.items() if isinstance(param_dict, Mapping) else param_dict
        arrays = {
            restore_prefix + (name[4:] if name.startswith(("arg:", "aux:")) else name): array for name, array in pairs
        }
        source = f"file: {filename}" if filename else "param_dict"
        strip = len(restore_prefix)
        naming = "Please make sure source and target networks have the same prefix."
        if not allow_missing:
            for name in self.keys():
                if name not in arrays:
                    raise ParameterLoadError(
                        f"Parameter '{name[strip:]}' is missing in {source}, which contains parameters: "
                        f"{_brief_print_list(arrays.keys())}. {naming} Set allow_missing=True to ignore."
                    )
        freed = 0
        for name, array in arrays.items():
            if name in self._params:
                freed += self[name]._load_init(array, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source, own=own)
            elif not ignore_extra:
                raise ParameterLoadError(
                    f"Parameter '{name[strip:]}' loaded from {source} is not present in ParameterDict, choices are: "
                    f"{_brief_print_list(self._params.keys())}. Set ignore_extra to True to ignore. {naming}"
                )
        release_freed(freed)


add_habits(ParameterDict, "parameters")
