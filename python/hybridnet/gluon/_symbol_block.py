"""SymbolBlock: a block that runs a given graph, such as one loaded from files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core, _tracing, symbol
from .._control_flow import nests
from ..errors import FileError, HybridNetError, ParamError, UnsupportedError
from ..ndarray import NDArray
from ..symbol import Symbol
from ._checksums import verify_checksums
from ._decisions import Decisions
from ._formats import format_of, nest_of
from ._hybrid_block import HybridBlock, flatten_arguments
from ._parameter_dict import ParameterDict
from ._traced_graph import TracedGraph

if TYPE_CHECKING:
    from ..context import Context

__all__ = ["SymbolBlock"]


def _common_prefix(names: Sequence[str]) -> str:
    # The common prefix of the smallest and the largest name is common to all.
    first, last = min(names, default=""), max(names, default="")
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]


def _entries(inputs: Any) -> list[Symbol]:
    if isinstance(inputs, Symbol):
        return list(inputs) if len(inputs.list_outputs()) > 1 else [inputs]
    return [entry for item in inputs for entry in _entries(item)]


def _parameter_dtypes(inputs: Sequence[Symbol], outputs: Symbol) -> dict[str, Any]:
    """Returns the dtypes that inference finds from the inputs' dtypes; float32 if it finds none."""
    names = [*outputs.list_arguments(), *outputs.list_auxiliary_states()]
    known: dict[str, Any] = {}
    for variable in inputs:
        types = variable.infer_type()[0]
        if not types or types[0] is None:
            return dict.fromkeys(names, np.float32)
        known[str(variable.name)] = types[0]
    try:
        arguments, _, auxiliaries = outputs.infer_type(**known)
    except HybridNetError:
        return dict.fromkeys(names, np.float32)
    found = [*(arguments or ()), *(auxiliaries or ())]
    if len(found) != len(names):
        return dict.fromkeys(names, np.float32)
    return {name: dtype or np.float32 for name, dtype in zip(names, found, strict=False)}


class SymbolBlock(HybridBlock):
    """A block that runs a graph: variables that are not inputs become its parameters, under their own names.

    Parameters
    ----------
    outputs : Symbol or list of Symbol
    inputs : Symbol or list of Symbol
        Variables of the graph whose values the caller passes.
    params : ParameterDict, optional
        Parameters to share with another block.

    Example: the features of a network, sharing its parameters::

        out = net(mx.sym.var("data"))
        features = out.get_internals()["net0_dense0_relu_fwd_output"]
        block = gluon.SymbolBlock(features, mx.sym.var("data"), params=net.collect_params())

    Raises ParamError if an input is not a variable.
    """

    def __init__(self, outputs: Any, inputs: Any, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=None, params=None)
        self._prefix = ""
        self._params = ParameterDict("", params)
        self._inputs = _entries(inputs)
        for variable in self._inputs:
            if len(variable.get_internals().list_outputs()) != 1:
                raise ParamError(f"Input symbols must be variable, but {variable} is an output of operators")
        if isinstance(outputs, (list, tuple)):
            entries = _entries(outputs)
            self._outputs = entries[0] if len(outputs) == 1 and len(entries) == 1 else symbol.Group(entries)
        else:
            self._outputs = outputs
        single = len(self._outputs.list_outputs()) == 1
        count = len(self._outputs.list_outputs())
        self._out_nest = nests.ARRAY if single else nests.list_of(count)
        self._make_params()
        self._graph = self._last_graph = self._make_graph()

    def _make_params(self) -> None:
        input_names = {variable.name for variable in self._inputs}
        dtypes = _parameter_dtypes(self._inputs, self._outputs)
        for name in self._outputs.list_arguments():
            if name not in input_names:
                self.params.get(name, allow_deferred_init=True, dtype=dtypes[name])
        for name in self._outputs.list_auxiliary_states():
            if name not in input_names:
                self.params.get(name, grad_req="null", allow_deferred_init=True, dtype=dtypes[name])
        strip = len(_common_prefix(list(self._params.keys())))
        self._reg_params = {name[strip:]: param for name, param in self._params.items()}

    def _make_graph(self) -> TracedGraph:
        return TracedGraph(self._inputs, self._outputs, self._out_nest, self._params._params, False, Decisions.none())

    @property
    def _in_format(self) -> Any:
        """The nesting of arguments. Any nesting is accepted and flattened: a format that is set is stored only."""
        return self.__dict__.get("_in_format_set", [0] * len(self._inputs))

    @_in_format.setter
    def _in_format(self, fmt: Any) -> None:
        self.__dict__["_in_format_set"] = fmt

    @property
    def _out_format(self) -> Any:
        """The nesting of results. Files do not contain it, so libraries store it separately and set it here."""
        return format_of(self._out_nest)

    @_out_format.setter
    def _out_format(self, fmt: Any) -> None:
        nest = nest_of(fmt)
        count, wanted = len(self._outputs.list_outputs()), len(nest.paths(""))
        if count != wanted:
            raise ParamError("SymbolBlock: _out_format", expected=f"a format of {count} outputs", given=f"{fmt}")
        self._out_nest = nest
        self._graph = self._last_graph = self._make_graph()

    def __repr__(self) -> str:
        outputs = self._outputs
        return f"{type(self).__name__}(\n{outputs} : {len(self._inputs)} -> {len(outputs.list_outputs())}\n)"

    @staticmethod
    def imports(
        symbol_file: str,
        input_names: str | Sequence[str],
        param_file: str | None = None,
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        verify: bool = False,
    ) -> SymbolBlock:
        """Loads a model that HybridBlock.export, Module.save_checkpoint or MXNet wrote.

        Parameters
        ----------
        symbol_file : str
            ``...-symbol.json``.
        input_names : str or list of str
            Variables whose values the caller passes.
        param_file : str, optional
            ``...-0000.params``; without it call initialize() or load parameters.
        ctx : Context or list of Context, optional
            Contexts of the parameters; default: cpu().
        allow_missing, ignore_extra : bool, default False
            See Block.load_parameters.
        verify : bool, default False
            Whether the files must be bit for bit those that export(checksum=True) wrote.

        Raises FileError if a file is missing, FormatError if one is broken or differs from the exported one, ParamError
        for a name in input_names that the graph lacks, ParameterLoadError if the parameters do not match the graph.
        """
        if not os.path.exists(symbol_file):
            raise FileError(f"symbol file '{symbol_file}' does not exist", fix="give the file that export() wrote")
        if verify:
            verify_checksums(symbol_file, param_file)
        outputs = symbol.load(symbol_file)
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        unknown = [name for name in names if name not in outputs.list_inputs()]
        if unknown:
            raise ParamError(
                f"SymbolBlock.imports: '{symbol_file}' has no input {', '.join(map(repr, unknown))}; its variables are "
                f"{', '.join(outputs.list_inputs()[:8])}{', ...' if len(outputs.list_inputs()) > 8 else ''}"
            )
        dtype = np.float32 if param_file is None else None
        block = SymbolBlock(outputs, [symbol.var(name, dtype=dtype) for name in names])
        if param_file is not None:
            block.collect_params().load(
                param_file, ctx, allow_missing, ignore_extra, cast_dtype=True, dtype_source="saved"
            )
        return block

    def _clear_cached_op(self) -> None:
        super()._clear_cached_op()
        graph = self.__dict__.get("_graph")
        if graph is not None:
            graph.op = None
            self._last_graph = graph

    def _call_cached_op(self, *args: Any) -> Any:
        graph = self._graph
        flat: list[Any] = list(args)
        if not all(isinstance(arg, NDArray) for arg in args):
            flat = []
            flatten_arguments(args, flat)
        if len(flat) != len(self._inputs):
            raise ParamError(
                f"SymbolBlock has inputs {[v.name for v in self._inputs]}, but {len(flat)} arrays were given"
            )
        if graph.op is None:
            self._infer(flat)
            self._compile(graph, nests.tuple_of(len(flat)))
            self._last_inputs = (len(flat), [(array.shape, array.dtype) for array in flat])
        return graph.run(flat)

    def _parameters_of_forward(self) -> tuple[list[str], str | None]:
        return [str(variable.name) for variable in self._inputs], None

    def _infer(self, flat: Sequence[NDArray]) -> None:
        """Completes the shapes of parameters from those of the inputs."""
        waiting = [param for param in self._graph.params if param._data is None and param._deferred_init]
        if not waiting:
            return
        self._set_shapes(flat)
        for param in waiting:
            param._finish_deferred_init()

    def _set_shapes(self, flat: Sequence[NDArray]) -> None:
        shapes = {variable.name: array.shape for variable, array in zip(self._inputs, flat, strict=False)}
        used = set(self._outputs.list_inputs())
        shapes = {name: shape for name, shape in shapes.items() if name in used}
        for name, param in self._params.items():
            if param.shape is not None and all(size > 0 for size in param.shape) and name in used:
                shapes[name] = param.shape
        arguments, auxiliaries, missing = self._outputs._input_shapes(shapes)
        names = [*self._outputs.list_arguments(), *self._outputs.list_auxiliary_states()]
        for name, shape in zip(names, [*arguments, *auxiliaries], strict=True):
            if name in self._params and name not in missing:
                self._params[name].shape = shape

    def infer_shape(self, *args: Any) -> None:
        """Infers the shapes of parameters from inputs (arrays)."""
        flat: list[Any] = []
        flatten_arguments(args, flat)
        self._set_shapes(flat)

    def forward(self, x: Any, *args: Any) -> Any:
        """Runs the graph on arrays, or composes it with Symbols."""
        scope = _tracing.current()
        flat: list[Any] = []
        flatten_arguments((x, *args), flat)
        if scope is None and all(isinstance(a, NDArray) for a in flat):
            return self._call_cached_op(*flat)
        if len(flat) != len(self._inputs):
            raise ParamError(f"Invalid input format: {len(self._inputs)} inputs expected", given=str(len(flat)))
        return self._put_on(scope, flat)

    def _put_on(self, scope: _tracing.Scope | None, flat: Sequence[Symbol]) -> Any:
        feeds: dict[str, Symbol] = {str(v.name): value for v, value in zip(self._inputs, flat, strict=False)}
        if scope is not None:
            feeds.update({name: scope.variable(param) for name, param in self._params.items()})
        used = set(self._outputs.list_inputs())
        out = self._outputs(**{name: value for name, value in feeds.items() if name in used})
        count = len(self._outputs.list_outputs())  # a traced array cannot be iterated
        return nests.restore(
            self._out_nest, [out] if count == 1 else [_core.symbol_output(out, i) for i in range(count)]
        )

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError("SymbolBlock runs its graph; it has no hybrid_forward()", fix="call the block")

    def cast(self, dtype: Any) -> None:
        """Converts parameters to another element type; with float16, those of batch norms stay float32."""
        super().cast(dtype)
        if np.dtype(dtype).name != "float16":
            return
        names = set(self._params.keys())
        for name in names:
            for ending, mean in (("running_var", "running_mean"), ("moving_var", "moving_mean")):
                if name.endswith(ending):
                    stem = name[: -len(ending)]
                    group = [stem + part for part in (ending, mean, "gamma", "beta")]
                    if names.issuperset(group):
                        for member in group:
                            self._params[member].cast("float32")
