"""BaseRNNCell: the base of symbolic cells. RNNParams: their variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import ndarray, symbol
from ..errors import ParamError, not_overridden
from ..gluon.rnn._sequences import format_sequence
from ..symbol import Symbol

__all__ = ["BaseRNNCell", "RNNParams"]


class RNNParams:
    """Variables by name, created on first use; cells with a common RNNParams share weights.

    prefix: prepended to all names.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """Returns the variable prefix + name; kwargs are passed to mx.sym.Variable."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = symbol.Variable(name, **kwargs)
        return self._params[name]


class BaseRNNCell:
    """Base of cells. ``output, states = cell(input, states)`` runs one step, unroll several.

    prefix: of the names of nodes and variables; params: RNNParams with shared weights.
    """

    _cells: Sequence[BaseRNNCell] = ()

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        self._own_params = params is None
        self._params = RNNParams(prefix) if params is None else params
        self._prefix = prefix
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Resets the step counter; unroll calls it."""
        self._init_counter = -1
        self._counter = -1
        for cell in self._cells:
            cell.reset()

    def __call__(self, inputs: Symbol, states: list[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Runs one step: returns (output, next states)."""
        raise not_overridden(self, "__call__()")

    @property
    def params(self) -> RNNParams:
        """The cell's variables."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape (0 for inferred sizes) and layout of each state."""
        raise not_overridden(self, "state_info()")

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """The shape of each state."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> Sequence[str]:
        return ()

    def _check_not_modified(self) -> None:
        if self._modified:
            raise ParamError(
                f"{type(self).__name__}: After applying modifier cells (e.g. ZoneoutCell) the base cell cannot be "
                "called directly. Call the modifier cell instead."
            )

    def begin_state(self, func: Callable[..., Symbol] = symbol.zeros, **kwargs: Any) -> list[Symbol]:
        """Returns the initial states, made by func(name=, shape=, ...): mx.sym.zeros, mx.sym.Variable, ..."""
        self._check_not_modified()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**kwargs, **(info or {})}))
        return states

    def _step_name(self) -> str:
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    def unpack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Returns a copy of args with one array per gate instead of joined ones: 'lstm_i2h_f_weight', ..."""
        args = dict(args)
        gates = self._gate_names
        for group in ("i2h", "h2h") if gates else ():
            for kind in ("weight", "bias"):
                whole = args.pop(f"{self._prefix}{group}_{kind}")
                rows = whole.shape[0] // len(gates)
                for i, gate in enumerate(gates):
                    args[f"{self._prefix}{group}{gate}_{kind}"] = whole[i * rows : (i + 1) * rows].copy()
        return args

    def pack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Reverses unpack_weights."""
        args = dict(args)
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                parts = [args.pop(f"{self._prefix}{group}{gate}_{kind}") for gate in self._gate_names]
                args[f"{self._prefix}{group}_{kind}"] = ndarray.concat(*parts, dim=0)
        return args

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Any, list[Symbol]]:
        """Runs length steps.

        Parameters
        ----------
        length : int
        inputs : Symbol in layout, or a list of one Symbol (N, C) per step
        begin_state : list of Symbol, optional
        layout : 'NTC' or 'TNC'
        merge_outputs : bool, optional
            True: one Symbol in layout; False: a list; None: the form that needs no conversion.

        Returns (outputs, states).
        """
        self.reset()
        inputs = format_sequence(length, inputs, layout, False)[0]
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for i in range(length):
            output, states = self(inputs[i], states)
            outputs.append(output)
        return format_sequence(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
        if isinstance(activation, str):
            return symbol.Activation(inputs, act_type=activation, **kwargs)  # type: ignore[arg-type]  # it checks the name
        return activation(inputs, **kwargs)
