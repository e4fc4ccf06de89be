"""HybridBlock: a block whose forward can be traced to a graph.

There are two forms of forward: ``hybrid_forward(self, F, x, **params)`` and plain ``forward(self, x)``. If not
hybridized, forward runs on arrays. After ``hybridize()`` the first call traces it; later calls run the graph as one
compiled step.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core, _tracing, autograd, errors, ndarray, symbol
from .._control_flow import nests
from .._control_flow.nests import Nest
from .._keywords import check_hybridize_keywords, precision_text, remat_text
from .._query_words import joined_query, listed_words
from ..context import is_default
from ..errors import HybridNetError, TraceError
from ..errors import ValueError as HybridNetValueError
from ..ndarray import NDArray
from ..symbol import Symbol
from ._baked_attributes import MACHINERY, STRUCTURE, forget_readers, note_call, register_reads
from ._block_errors import add_block_path
from ._checksums import add_checksums
from ._constructor_calls import wrong_call
from ._decisions import note_in_file
from ._donation import Donation, parameters_of
from ._formats import format_of
from ._imperative_fallback import warn_imperative, warn_of_decisions
from ._input_specs import record_inputs
from ._numpy_border import as_classic, as_numpy, converts, is_numpy
from ._op_hooks import ObservedGraph
from ._parameter_dict import ParameterDict
from ._program_trace import TRACE_LOCK, no_array_error, trace_program, trace_unless_imperative
from ._traced_graph import CheckedGraph, TracedGraph, Variants
from .block import Block
from .parameter import DeferredInitializationError, Parameter

if TYPE_CHECKING:
    from ..context import Context

__all__ = ["HybridBlock"]

HybridBlockT = TypeVar("HybridBlockT", bound="HybridBlock")

# Backends of other builds of MXNet whose optimizations the default pipeline includes.
_KNOWN_BACKENDS = {None, "", "default", "MKLDNN", "ONEDNN"}


def _converted(method: Callable[..., Any]) -> Callable[..., Any]:
    from ..autograph import converted_method

    return converted_method(method)


def flatten_arguments(args: tuple[Any, ...], arrays: list[Any]) -> Nest:
    """Appends the arrays among a block's arguments to arrays and returns the nesting of the arguments."""
    try:
        return nests.flatten(args, arrays, constants=True)
    except nests.NotANest as error:
        place = (nests.path_to(error.value, args) or "[0]").replace("[", "", 1).replace("]", "", 1)
        raise no_array_error(f"argument {place}", error.value, "pass mx.nd.array(x)") from None


class HybridBlock(Block):
    """Base of layers and models that can be hybridized.

    Define one of::

        def hybrid_forward(self, F, x, weight):      # F is mx.nd or mx.sym, own parameters arrive by name
            return F.dot(x, weight)

        def forward(self, x):                        # data() returns the values
            return mx.nd.dot(x, self.weight.data())

    After ``hybridize()`` the first call runs forward once on abstract arrays, which have shape and dtype but no values;
    the resulting graph is optimized and run from then on. if, while and for statements that depend on values of arrays
    become branches and loops of the graph (docs/python-control-flow.md). Code that cannot be converted raises an error
    that names the line; an overridden forward then runs imperatively, with a warning, see hybridize.

    Parameters
    ----------
    prefix, params
        See Block.
    """

    _plain_forward = False  # whether the class defines forward instead of hybrid_forward

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._plain_forward = inspect.unwrap(cls.forward) is not HybridBlock.forward

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None, **unknown: Any) -> None:
        super().__init__(prefix=prefix, params=params, **unknown)
        self._active = False
        self._flags: dict[str, Any] = {}
        self._variants: dict[Any, Variants] = {}
        self._last_graph: TracedGraph | None = None
        self._last_inputs: tuple[Any, list[tuple[tuple[int, ...], Any]]] | None = None
        self._callback: Callable[..., None] | None = None
        self._monitor_all = False
        self._strict = False
        self._converts = True
        self._donation: Donation | None = None
        self._needs_conversion = False  # whether a trace has met a decision that depends on values of arrays
        self._untraceable: TraceError | None = (
            None  # the reason why a hybridized block with an overridden forward runs imperatively
        )

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, HybridBlock):
            self._clear_cached_op()
        elif isinstance(value, Parameter):
            forget_readers(self, STRUCTURE)

    # -- attributes that MXNet's clients read -----------------------------------------------------------------------

    @property
    def _cached_graph(self) -> Any:
        """(inputs, outputs) of the most recent graph, or ()."""
        graph = self._last_graph
        return () if graph is None else (graph.inputs, graph.outputs)

    @property
    def _cached_op(self) -> Any:
        return None if self._last_graph is None else self._last_graph.op

    @property
    def _cached_op_args(self) -> list[tuple[bool, Any]]:
        return [] if self._last_graph is None else self._last_graph.sources

    @property
    def _in_format(self) -> Any:
        """The nesting of the arguments of the last graph (see _formats); None before there is one."""
        if self._last_inputs is None:
            return None
        key = self._last_inputs[0]
        return [0] * key if isinstance(key, int) else format_of(key)

    @property
    def _out_format(self) -> Any:
        """The nesting of the results of the last graph; None before there is one."""
        return None if self._last_graph is None else format_of(self._last_graph.out_nest)

    def _get_graph(self, *args: Any) -> tuple[list[Symbol], Symbol]:
        """Returns (inputs, outputs) of the graph for these arguments."""
        flat: list[Any] = []
        graph = self._find_graph(flatten_arguments(args, flat), flat)
        return graph.inputs, graph.outputs

    def _clear_cached_op(self) -> None:
        """Drops all graphs; the next call traces again."""
        state = self.__dict__
        if state["_variants"] or state["_last_graph"] is not None or state["_untraceable"] is not None:
            state.update(_variants={}, _last_graph=None, _untraceable=None, _needs_conversion=False)

    # -- settings ---------------------------------------------------------------------------------------------------

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Adds a child block. Raises ValueError unless it is a HybridBlock."""
        if not isinstance(block, HybridBlock):
            raise HybridNetValueError(
                f"Children of HybridBlock must also be HybridBlock, but {block.name} is a {type(block).__name__}. If "
                "you are using Sequential, please try HybridSequential instead.",
                fix=f"derive {type(block).__name__} from gluon.HybridBlock, or this block from gluon.Block",
            )
        super().register_child(block, name)
        self._clear_cached_op()
        forget_readers(self, STRUCTURE)

    def hybridize(
        self,
        active: bool = True,
        backend: str | None = None,
        clear: bool = True,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        passes: Any = "",
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        require: Iterable[str] = (),
        strict: bool = False,
        remat: str | int = "auto",
        precision: str = "float32",
        autograph: bool = True,
        exact: bool = False,
        donate: Iterable[str | int] = (),
        **kwargs: Any,
    ) -> None:
        """Turns tracing on or off for this block and all descendants.

        A block whose overridden forward reads a value outside of conditions and loops, or draws random numbers of
        Python or NumPy, cannot become a graph.
        It then runs imperatively, like in MXNet, with the blocks inside it hybridized; a warning names the line.

        Parameters
        ----------
        active : bool, default True
        backend : str, optional
            Name of a backend (mx.rewrite.partition), which runs the supported parts of this block's graphs. The names
            of oneDNN are accepted and have no effect, because it is always used. Raises ValueError for others.
        clear : bool, default True
            Whether existing graphs are dropped; they always are if other rewrites are selected.
        static_alloc : bool, default False
            Whether memory is kept between calls.
        static_shape : bool, default False
            Has no effect; accepted as in MXNet. Plans are always found by shape.
        passes : str or mx.rewrite.Query, default ''
            Rewrites to run: words as in ``"fast_run,-fusion"`` (docs/graph-passes.md); '' is the default pipeline.
            Raises ParamError for unknown words.
        include, exclude, require : iterable of str
            Further words: lists of names and tags.
        strict : bool, default False
            Whether a block that cannot be traced raises TraceError.
        remat : 'auto', 'none' or int, default 'auto'
            Values that training recomputes in the backward run instead of keeping them, with the same bits: 'auto'
            drops values that are very cheap to recompute (dropout masks, activations, normalizations), 'none' drops
            nothing, and a number of bytes drops the cheapest values first, products last, until at most that many bytes
            are kept. Raises ParamError for other values, and in the first training call if the number cannot be
            reached. ``pass_report()`` shows the kept values.
        precision : {'float32', 'bfloat16', 'float16'}, default 'float32'
            Type in which products of float32 arrays compute; norms, softmax, exponents, long sums and losses stay in
            float32, other operators take the type of their inputs. Parameters, gradients, inputs and outputs keep
            their types (docs/precision.md). Raises ParamError for other values.
        autograph : bool, default True
            Whether if, for and while statements that depend on values of arrays are converted to branches and loops of
            the graph (docs/python-control-flow.md).
        exact : bool, default False
            Whether rewrites whose results differ by rounding are left out, so that operators compute the bits that they
            compute in imperative mode (docs/numerics.md). Same as the word "-rounding" of passes.
        donate : iterable of str or int, default ()
            Arguments of forward, by name or position (the name of ``*args`` means all of them), whose memory calls may
            write results into: a step that returns a new cache writes its new rows only. Each array in a donated
            argument, also in a list or dict, must not be read after the call: that raises ValueError. Arrays with other
            readers are never overwritten (docs/functions.md). Holds for calls of this block by a program, not for its
            children. Raises ParamError for a name or a position that forward does not have.
        inline_limit, forward_bulk_size, backward_bulk_size
            Have no effect; accepted as in MXNet. Graphs always run as one step.

        Raises ParamError for other keywords, naming the nearest known one.
        """
        if backend not in _KNOWN_BACKENDS:
            from ..rewrite import backends

            if backend not in backends():
                raise HybridNetValueError(
                    f"hybridize: unknown backend {backend!r}",
                    expected=", ".join(backends()) or None,
                    because="mx.rewrite.partition() registers a backend under its name",
                    fix="register it first, or leave backend out: the default pipeline uses oneDNN",
                )
            passes = joined_query(passes or "fast_run", [backend])
        check_hybridize_keywords(kwargs)
        if exact:
            passes, exclude = passes or "fast_run", [*listed_words(exclude), "rounding"]
        passes = joined_query(passes, include, exclude, require)
        _core.check_passes(passes)
        flags = {
            "static_alloc": static_alloc,
            "passes": passes,
            "remat": remat_text(remat),
            "precision": precision_text(precision),
        }
        donation = self._donation_of(donate)
        before = {"passes": "", "remat": "auto", "precision": "float32", **self._flags}
        clear = clear or any(before[name] != flags[name] for name in ("passes", "remat", "precision"))
        clear = clear or self._converts != autograph or bool(donation or self._donation)
        self._take_settings(active, flags, strict, clear)
        self.__dict__["_donation"] = donation
        self.apply(lambda block: block._set_conversion(bool(autograph)) if isinstance(block, HybridBlock) else None)
        self._hybridize_children(
            active,
            {**flags, "remat": "auto"},
            strict,
            {
                "static_alloc": static_alloc,
                "static_shape": static_shape,
                "inline_limit": inline_limit,
                "forward_bulk_size": forward_bulk_size,
                "backward_bulk_size": backward_bulk_size,
                "passes": passes,
                "strict": strict,
                **({} if precision == "float32" else {"precision": precision}),
                **({} if autograph else {"autograph": False}),
            },
        )

    def _take_settings(self, active: bool, flags: dict[str, Any], strict: bool, clear: bool) -> None:
        state = self.__dict__  # none is a block or a parameter, so __setattr__ is not needed
        state["_active"], state["_flags"], state["_strict"], state["_donation"] = active, flags, strict, None
        if clear:
            self._clear_cached_op()
        if active and (self._forward_hooks or self._forward_pre_hooks):
            warnings.warn(
                f'"{self}" is being hybridized while still having forward hook/pre-hook. If "{self}" is a child of '
                "HybridBlock, the hooks will not take effect.",
                stacklevel=3,
            )

    def _donation_of(self, donate: Iterable[str | int]) -> Donation | None:
        if not isinstance(donate, int) and not donate:
            return None
        return Donation(f"hybridize of {self.name!r}", *self._parameters_of_forward(), donate)

    def _parameters_of_forward(self) -> tuple[list[str], str | None]:
        """Returns the names of the arguments of a call, and the name of *args if there is one."""
        if self._plain_forward:
            return parameters_of(self.forward)
        names, rest = parameters_of(self.hybrid_forward, 1)
        return [name for name in names if name not in self._reg_params], rest

    def _set_conversion(self, active: bool) -> None:
        self.__dict__["_converts"] = active

    def _hybridize_children(self, active: bool, flags: dict[str, Any], strict: bool, keywords: dict[str, Any]) -> None:
        """Applies hybridize(active, **keywords) to the children; flags and strict: the validated keywords."""
        for child in self._children.values():
            if type(child).hybridize is HybridBlock.hybridize:
                child._take_settings(active, dict(flags), strict, clear=True)
                if child._children:
                    child._hybridize_children(active, flags, strict, keywords)
            else:
                child.hybridize(active, **keywords)

    def optimize_for(
        self,
        x: Any,
        *args: Any,
        backend: str | None = None,
        clear: bool = False,
        static_alloc: bool = False,
        static_shape: bool = False,
        inline_limit: int = 2,
        forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Hybridizes and traces for the given inputs without running the graph. Arguments: see hybridize; backend is
        required.
        given.
        """
        if not backend:
            raise HybridNetValueError('Must specify "backend" to optimize_for')
        self.hybridize(
            True,
            backend,
            clear,
            static_alloc,
            static_shape,
            inline_limit,
            forward_bulk_size,
            backward_bulk_size,
            autograph=self._converts,
        )
        flat: list[Any] = []
        key = flatten_arguments((x, *args), flat)
        if not flat:
            raise HybridNetValueError("In HybridBlock, there must be one NDArray or one Symbol in the input.")
        self._find_graph(key, flat)

    def traced_decisions(self) -> list[str]:
        """Lists the decisions that Python made during the last trace and that are fixed in the graph, one line each:
        attributes of blocks of the program's own classes that forward read, with their values, and the lines in which
        it read shapes or values of arrays or drew random numbers. In Python, the block is traced again when such an
        attribute is set or an input has another shape; in a file that export() writes, these decisions are fixed.

        Raises RuntimeError before the first hybridized call.
        """
        self._executable("traced_decisions")
        return [] if self._last_graph is None else self._last_graph.decisions.listed()

    def pass_report(self) -> str:
        """Describes the plans of the last graph: memory, estimated time, and count and time of each rewrite.

        Raises RuntimeError before the first hybridized call.
        """
        return str(self._executable("pass_report").summary())

    def plan_text(self) -> str:
        """The plan of the last call, instruction by instruction (docs/debugging.md).

        Each line names the operator, its chosen implementation, the memory that it reads and writes, the node, the
        block and the line of the program; bodies of loops and branches follow their instruction.
        Raises RuntimeError before the first hybridized call.
        """
        return str(self._executable("plan_text").plan_text())

    def graph(self, train: bool = False) -> Any:
        """Returns the traced graph of the last hybridized call, before any rewrite, as a separate mx.rewrite.Graph.

        train : bool, default False
            Whether operators such as Dropout are in training mode.

        Raises RuntimeError before the first hybridized call.
        """
        from ..rewrite import graph as rewritable_graph

        self._executable("graph")
        traced = self._last_graph
        _, specs = self._last_inputs  # type: ignore[misc]
        known: dict[str, Any] = {str(variable.name): spec for variable, spec in zip(traced.inputs, specs, strict=True)}  # type: ignore[union-attr]
        known.update({param.name: (param.shape, param.dtype) for param in traced.params})  # type: ignore[union-attr]
        used = [name for name in traced.outputs.list_inputs() if name in known]  # type: ignore[union-attr]
        shapes = {name: known[name][0] for name in used}
        return rewritable_graph(traced.outputs, shapes, {name: known[name][1] for name in used}, train)  # type: ignore[union-attr]

    def _executable(self, method: str) -> Any:
        graph = self._last_graph
        if self._untraceable is not None:
            raise self._untraceable
        if graph is None or graph.op is None:
            raise HybridNetError(
                f"Block '{self.name}' has no graph yet. Fix: call hybridize(), then the block, before {method}()"
            )
        return graph.op

    def cast(self, dtype: Any) -> None:
        """Converts parameters to another element type; graphs are traced again."""
        self._clear_cached_op()
        super().cast(dtype)

    def share_parameters(self, shared: Any) -> HybridBlock:
        """See Block.share_parameters; graphs are traced again."""
        super().share_parameters(shared)
        self.apply(lambda block: block._clear_cached_op() if isinstance(block, HybridBlock) else None)
        return self

    def compiled_copy(
        self: HybridBlockT, share_memory: bool = True, delete_updates: bool = False, name: str | None = None
    ) -> HybridBlockT:
        """Returns a block with the same parameters, children and graphs, for use beside this one.

        Parameters
        ----------
        share_memory : bool, default True
            Whether intermediate values of both blocks share memory, with ``hybridize(static_alloc=True)`` also between
            calls. Calls of the two then run one at a time, in any threads.
        delete_updates : bool, default False
            Whether the copy never updates running statistics and other states, even in training mode.
        name : str, optional
            Name for messages and profiles.

        Graphs that are traced later, for other structures of inputs, are compiled by each block separately.
        Raises RuntimeError before the first hybridized call.
        """
        self._executable("compiled_copy")
        made = copy.copy(self)
        for key, value in vars(self).items():
            if isinstance(value, (dict, list)) and key not in ("_params", "_scope"):
                object.__setattr__(made, key, copy.copy(value))
        if name is not None:
            object.__setattr__(made, "_name", name)
        made._variants = {}
        for key, variants in self._variants.items():
            made._variants[key] = variants.mapped(
                lambda graph: graph.copied(share_memory=share_memory, delete_updates=delete_updates, name=made.name)
            )
            for graph in made._variants[key].table.values():
                register_reads(made, graph.attributes)
            if self._last_graph is not None and (place := variants.place_of(self._last_graph)) is not None:
                made._last_graph = made._variants[key].table[place]
        return made

    def register_op_hook(self, callback: Callable[..., None], monitor_all: bool = False) -> None:
        """Calls ``callback(name, op name, array)`` for the outputs (with monitor_all, inputs too) of each operator.

        Takes effect once hybridized. The graph then runs without rewrites, operator by operator.
        """
        self.apply(lambda block: block._set_op_hook(callback, monitor_all) if isinstance(block, HybridBlock) else None)

    def _set_op_hook(self, callback: Callable[..., None], monitor_all: bool) -> None:
        self._callback = callback
        self._monitor_all = monitor_all
        self._clear_cached_op()

    # -- tracing ----------------------------------------------------------------------------------------------------

    def _learn_shapes(self, scope: _tracing.Trace) -> None:
        """Initializes parameters with inferred shapes."""
        for param, variable in scope.variables.items():
            if param._data is None:
                param._take_traced_shape(variable)
                param._finish_deferred_init()

    def _compile(self, graph: TracedGraph, arguments: Nest) -> None:
        if self._callback is not None:
            graph.op = ObservedGraph(graph.outputs, self._callback, self._monitor_all)
            return
        donated = [] if self._donation is None else graph.donated(self._donation.of_arrays(arguments))
        graph.op = _core.CachedOp(graph.outputs, name=self.name, numpy=graph.numpy, donated=donated, **self._flags)

    def _find_graph(self, key: Any, flat: Sequence[Any]) -> TracedGraph:
        variants = self._variants.get(key)
        if variants is None:
            variants = self._variants[key] = Variants()
        graph = variants.find(flat)
        if graph is not None:
            self._last_graph = graph
            return graph
        with TRACE_LOCK:
            graph, scope, reads = trace_unless_imperative(self, key, flat)
            self._learn_shapes(scope)
            for i in graph.unused:
                warnings.warn(
                    f"The {i}-th input to HybridBlock is not used by any computation. Is this intended?", stacklevel=4
                )
            self._compile(graph, key)
            register_reads(self, graph.attributes)
            warn_of_decisions(self, graph.decisions)
            variants.add(flat, graph, reads)
            if not variants.reads and graph.decisions.must_be_checked:
                variants.only = CheckedGraph(graph, self, key)
            self._last_graph = graph
            self._last_inputs = (key, [(a.shape, a.dtype) for a in flat])
        return graph

    def _call_cached_op(self, *args: Any) -> Any:
        """Runs the graph for these arguments, tracing it first if needed."""
        for arg in args:
            if not isinstance(arg, NDArray):
                break
        else:
            # Fast path of the usual case: only arrays.
            variants = self._variants.get(len(args))
            if variants is not None and variants.only is not None:
                return variants.only.run(args)
            if variants is None:
                self._variants[len(args)] = self._variants.setdefault(nests.tuple_of(len(args)), Variants())
        flat: list[Any] = []
        key = flatten_arguments(args, flat)
        if any(isinstance(a, Symbol) for a in flat):
            return self._compose(args, {})
        self._check_one_context(flat)
        return self._find_graph(key, flat).run(flat)

    def _check_one_context(self, flat: Sequence[NDArray]) -> None:
        contexts = {a.context for a in flat}
        if len(contexts) > 1:
            raise HybridNetValueError(
                "Find multiple contexts in the input, After hybridized, the HybridBlock only supports one input "
                f"context. Find all contexts = {contexts}"
            )

    # -- calling ----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs hooks and forward: on arrays, or, if hybridized, the traced graph."""
        if self._forward_pre_hooks:
            for hook in tuple(self._forward_pre_hooks.values()):
                hook(self, args)
        try:
            scope = _tracing.current()
            if scope is not None:
                out = self._call_in_scope(scope, args, kwargs)
            elif self._active and self._untraceable is None:
                # Inlined: each Python frame takes a twentieth of the time of a small call.
                reason = None
                try:
                    out = self._call_cached_op(*(self._positional(args, kwargs) if kwargs else args))
                except TraceError as error:
                    reason = self._reason_for_no_graph(error)
                if reason is not None:
                    warn_imperative(self, reason)
                    out = self._call_plain(args, kwargs)
            elif self._plain_forward:
                out = self._call_plain(args, kwargs)
            else:
                out = self.forward(*args, **kwargs)
        except HybridNetError as error:
            add_block_path(error, self)
            raise
        except TypeError:
            if explained := wrong_call(self, args, kwargs):
                raise explained from None
            raise
        if self._forward_hooks:
            for hook in tuple(self._forward_hooks.values()):
                hook(self, args, out)
        return out

    def _reason_for_no_graph(self, error: TraceError) -> TraceError:
        """Returns the error if it means that forward runs imperatively; else raises it."""
        if error is not self._untraceable:
            raise error
        if self._strict:
            self._untraceable = None  # the next call must report it again
            raise error
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)  # tracebacks would keep the arrays of all frames

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Returns positional arguments in the order of forward's signature; omitted ones in between get defaults."""
        import inspect

        function = self.forward if self._plain_forward else self.hybrid_forward
        skip = () if self._plain_forward else (symbol,)
        bound = inspect.signature(function).bind_partial(*skip, *args, **kwargs)
        if named := [name for name in kwargs if name in bound.kwargs]:
            raise errors.TypeError(
                f"{self.name}: {function.__name__} of a hybridized block takes {named[0]!r} by keyword only",
                because="a graph has positional inputs",
                fix=f"let {function.__name__} take it as a positional parameter, or give it to the constructor",
            )
        bound.apply_defaults()
        return bound.args[len(skip) : len(skip) + len(args) + len(kwargs)]

    def _call_plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls forward(self, x) on arrays; a trace finds parameters of unknown shape beforehand."""
        for arg in args:
            if isinstance(arg, Symbol):
                return self._compose(args, kwargs)
        for param in self._reg_params.values():
            if param._data is None and param._deferred_init:
                self._deferred_infer_shape(*args)
                break
        return self.forward(*args, **kwargs)

    def _compose(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Composes the block with plain Symbols: creates nodes; parameters are ordinary variables."""
        with _tracing.Composition() as scope:
            return self._call_in_scope(scope, args, kwargs)

    def _call_in_scope(self, scope: _tracing.Scope, args: Any, kwargs: dict[str, Any]) -> Any:
        token = scope.enter_block(self)
        note_call(self)
        try:
            if not self._plain_forward:
                return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
            forward = _converted(self.forward) if scope.converts else self.forward
            if type(self).infer_shape is not HybridBlock.infer_shape and any(
                param._data is None and param._deferred_init for param in self._reg_params.values()
            ):
                self.infer_shape(*args)
            with self.name_scope():
                return forward(*args, **kwargs)
        finally:
            scope.leave_block(token)

    def forward(self, x: Any, *args: Any) -> Any:
        """Calls hybrid_forward with F and the block's own parameters. Blocks with plain forward override it."""
        scope = _tracing.current()
        if scope is None:
            if isinstance(x, NDArray):
                if self._active:
                    return self._call_cached_op(x, *args)
                device = x.context
                return self._forward_arrays(device, device if self._several_contexts() else None, x, args)
            return self._forward_other(x, args)
        own = self._reg_params
        params = {name: scope.variable(param) for name, param in own.items()} if own else {}
        with self.name_scope():
            if scope.converts:
                return self._run_hybrid_forward(symbol, x, args, params, _converted(self.hybrid_forward))
            return self._run_hybrid_forward(symbol, x, args, params)

    def _run_hybrid_forward(
        self, F: Any, x: Any, args: tuple[Any, ...], params: dict[str, Any], function: Callable[..., Any] | None = None
    ) -> Any:
        function = function or self.hybrid_forward
        if not self._children and is_numpy(x) and converts(type(self)):  # type: ignore[arg-type]  # a class is hashable
            values = {name: value.as_nd_ndarray() for name, value in params.items()}
            return as_numpy(function(F, as_classic(x), *as_classic(args), **values))
        if not params and not args:
            return function(F, x)
        return function(F, x, *args, **params)

    def _forward_other(self, x: Any, args: tuple[Any, ...]) -> Any:
        """Handles calls whose first argument is not an array: Symbols, or nested or later arrays."""
        flat: list[Any] = []
        flatten_arguments((x, *args), flat)
        has_symbol = any(isinstance(a, Symbol) for a in flat)
        arrays = [a for a in flat if isinstance(a, NDArray)]
        if has_symbol and arrays:
            raise HybridNetValueError(
                "In HybridBlock, we do not support mixed NDArrays and Symbols types for the input. Please check the "
                "type of the args.\n"
            )
        if has_symbol:
            return self._compose((x, *args), {})
        if not arrays:
            raise HybridNetValueError(
                "In HybridBlock, there must be one NDArray or one Symbol in the input. Please check the type of the "
                "args",
                given=", ".join(type(a).__name__ for a in (x, *args)),
                fix="pass mx.nd.array(values)",
            )
        if self._active:
            return self._call_cached_op(x, *args)
        device = arrays[0].context
        return self._forward_arrays(device, device, x, args)

    def _several_contexts(self) -> bool:
        for param in self._reg_params.values():
            if param._data is not None:
                return len(param._data) > 1
            return bool(param._deferred_init) and len(param._deferred_init[1]) > 1
        return False

    def _forward_arrays(self, device: Context, ctx: Context | None, x: Any, args: tuple[Any, ...]) -> Any:
        """Calls hybrid_forward on arrays of a device; ctx: where parameters are looked up, if they are in several."""
        own, params = self._reg_params, {}
        if own:
            try:
                params = {name: param._used_data(ctx) for name, param in own.items()}
            except DeferredInitializationError:
                self._deferred_infer_shape(x, *args)
                params = {name: param._used_data(ctx) for name, param in own.items()}
        if is_default(device):
            return self._run_hybrid_forward(ndarray, x, args, params)
        with device:  # F.zeros and the like make arrays there, as in a graph
            return self._run_hybrid_forward(ndarray, x, args, params)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the outputs with F (mx.nd or mx.sym); own parameters are passed by name. Subclasses override it."""
        raise errors.not_overridden(self, "hybrid_forward() or forward()")

    # -- shapes and types of parameters -----------------------------------------------------------------------------

    def _deferred_infer_shape(self, *args: Any) -> None:
        """Infers the unknown shapes of own parameters from a batch and initializes them."""
        if type(self).infer_shape is not HybridBlock.infer_shape:
            self.infer_shape(*args)
        else:
            try:
                self._infer_from_trace(args)
            except TraceError:
                raise
            except HybridNetError as error:
                add_block_path(error, self)
                raise
        for param in self._reg_params.values():
            param._finish_deferred_init()

    def _infer_from_trace(self, args: tuple[Any, ...]) -> _tracing.Trace:
        flat: list[Any] = []
        key = flatten_arguments(args, flat)
        _, scope, _ = trace_program(self, key, flat)
        for param, variable in scope.variables.items():
            param._take_traced_shape(variable)
        return scope

    def infer_shape(self, *args: Any) -> None:
        """Infers the shapes of parameters from inputs (arrays). Blocks with plain forward may override it."""
        self._infer_from_trace(args)

    def infer_type(self, *args: Any) -> None:
        """Infers the element types of parameters from those of the inputs."""
        flat: list[Any] = []
        key = flatten_arguments(args, flat)
        graph, scope, _ = trace_program(self, key, flat)
        known = {str(variable.name): a.dtype for variable, a in zip(graph.inputs, flat, strict=False)}
        args_types, _, aux_types = graph.outputs.infer_type(**known)
        names = [*graph.outputs.list_arguments(), *graph.outputs.list_auxiliary_states()]
        found = dict(zip(names, [*(args_types or ()), *(aux_types or ())], strict=False))
        for param, variable in scope.variables.items():
            dtype = found.get(str(variable.name))
            if dtype is not None:
                param.dtype = dtype

    # -- export -----------------------------------------------------------------------------------------------------

    def _graph_to_export(self) -> TracedGraph:
        if self._untraceable is not None:
            raise self._untraceable
        if self._last_graph is None:
            raise HybridNetError(
                "Please first call block.hybridize() and then run forward with this block at least once before calling "
                "export.",
                fix="call net.hybridize(), then net(data) with one batch",
            )
        if not self._last_graph.trained or self._last_inputs is None:
            return self._last_graph
        key, specs = self._last_inputs
        if not any(v.by_mode for v in self._variants.values()):
            return self._last_graph
        # forward branches on its caller's mode: the exported graph is the one for inference.
        with autograd.pause(train_mode=False):
            return trace_program(self, key, [ndarray.zeros(shape, dtype=dtype) for shape, dtype in specs])[0]

    def export(
        self, path: str, epoch: int = 0, remove_amp_cast: bool = True, checksum: bool = False
    ) -> tuple[str, str]:
        """Writes graph and parameters for SymbolBlock.imports, C++, Java and MXNet.

        Parameters
        ----------
        path : str
            Files are ``path-symbol.json`` and ``path-0000.params``. Inputs are named data, or data0, data1, ...
        epoch : int, default 0
            The number in the name of the parameter file.
        remove_amp_cast : bool, default True
            Whether casts inserted by mixed precision are left out.
        checksum : bool, default False
            Whether the first file contains the SHA-256 of both, which SymbolBlock.imports(verify=True) and
            ``hybridnet verify`` check.

        The decisions that Python made during the trace (``traced_decisions()``) are stored in the first file, in the
        attribute ``hybridnet_traced_with`` of the graph; a warning is issued if forward read the shape of an array,
        because the file may fit inputs of that shape only. The names, dtypes and shapes of the inputs are stored in
        the attribute ``hybridnet_inputs``, with a name such as free0 for each size that may vary (docs/formats.md).

        Returns the two file names. Raises RuntimeError unless hybridized and called once, TraceError if the block runs
        imperatively although it is hybridized.
        """
        graph = self._graph_to_export()
        graph.check_export()
        symbol_file, params_file = f"{path}-symbol.json", f"{path}-{epoch:04d}.params"
        graph.outputs._write(symbol_file, remove_amp_cast)
        note_in_file(symbol_file, graph.decisions)
        record_inputs(symbol_file, graph, self._last_inputs)
        if limit := graph.decisions.of_shapes():
            warnings.warn(f"export of {self.name}: {limit}; others may give wrong results or errors.", stacklevel=2)
        auxiliary = set(graph.outputs.list_auxiliary_states())
        arrays = {}
        for name, (is_input, param) in zip(graph.outputs.list_inputs(), graph.sources, strict=False):
            if not is_input:
                value = param._reduce() if isinstance(param, Parameter) else param
                arrays[f"{'aux' if name in auxiliary else 'arg'}:{name}"] = value
        arrays.update({f"arg:{name}": value for name, value in _core.symbol_constants(graph.outputs).items()})
        ndarray.save(params_file, arrays)
        if checksum:
            add_checksums(symbol_file, params_file)
        return symbol_file, params_file


MACHINERY.update(vars(HybridBlock(prefix="machinery_")))
