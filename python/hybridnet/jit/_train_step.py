"""train_step: forward, loss, backward and update of a training loop compiled as one plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _core, autograd, errors, ndarray
from .._control_flow import nests
from .._keywords import precision_text, remat_text
from ..contrib.amp.loss_scaler import LossScaler
from ..gluon._hybrid_block import flatten_arguments
from ..gluon.parameter import Parameter
from ..gluon.trainer import Trainer
from ..optimizer._graph_updates import rule_of
from ._step_graph import Forward, StepGraph

if TYPE_CHECKING:
    from ..gluon import HybridBlock
    from ..ndarray import NDArray

__all__ = ["TrainStep", "train_step"]


def train_step(
    net: HybridBlock,
    loss: Callable[..., Any] | None,
    trainer: Trainer,
    *,
    outputs: bool = False,
    clip_global_norm: float | None = None,
    ignore_stale_grad: bool = False,
    passes: str = "",
    remat: str | int = "auto",
    precision: str = "float32",
) -> TrainStep:
    """Compiles a training step: the body of this loop, as one plan that writes parameters in place::

        step = mx.jit.train_step(net, loss_fn, trainer)
        for data, label in batches:
            l = step(data, label)         # with record(): l = loss_fn(net(data), label); l.backward(); trainer.step(n)

    Gradients are not kept: each parameter is updated as soon as its gradient is complete, and ``param.grad()`` is
    unchanged (except with grad_req='add', where gradients accumulate in it, as in the loop). Learning rates, weight
    decays, batch size and the step number are inputs of the plan. The trainer's optimizer, states and counts are used,
    so ``trainer.step``, ``save_states`` and ``load_states`` may be mixed with steps.

    Parameters
    ----------
    net : HybridBlock
        The network, initialized or waiting for the first batch. It need not be hybridized.
    loss : HybridBlock, callable or None
        ``loss(output, label)`` returns the loss, or a list of losses whose sum is minimized. None: net returns the
        loss.
    trainer : gluon.Trainer
        A trainer on one context, with kvstore='dist_sync' or another store of several processes, or without a
        key-value store object. Its optimizer is one of mx.optimizer's, not a subclass. Over several processes,
        gradients are summed while the rest is computed; each process has one virtual shard.
    outputs : bool, default False
        Whether steps return ``(loss, outputs of net)``.
    clip_global_norm : float, optional
        Bound of the 2-norm of all gradients together, after division by the batch size. With it, all gradients are kept
        until the norm is known.
    ignore_stale_grad : bool, default False
        Whether parameters of the trainer that net and loss do not use are skipped instead of raising UserWarning.
    passes : str, default ''
        Rewrites to run, see HybridBlock.hybridize.
    remat : 'auto', 'none' or int, default 'auto'
        Values that are recomputed for gradients instead of being kept, see HybridBlock.hybridize. A number of bytes
        bounds the memory of live values at the peak of the plan.
    precision : {'float32', 'bfloat16', 'float16'}, default 'float32'
        Type in which products of float32 arrays compute, see HybridBlock.hybridize. Parameters and their updates stay
        in float32. With 'float16' the loss has a dynamic scale: that of ``contrib.amp.init_trainer``, or a new one.

    Raises UnsupportedError for optimizers written in Python (it lists the supported ones), several contexts, row_sparse
    gradients, key-value stores that do not sum over processes, and several virtual shards in a process; TypeError if
    net is not a HybridBlock; ParamError for a bound that is not positive. The first step raises TraceError if net or
    loss cannot be traced.
    """
    return TrainStep(net, loss, trainer, outputs, clip_global_norm, ignore_stale_grad, passes, remat, precision)


class TrainStep:
    """The result of train_step: call it with a batch. Properties describe its plan."""

    def __init__(
        self,
        net: HybridBlock,
        loss: Callable[..., Any] | None,
        trainer: Trainer,
        outputs: bool,
        clip_global_norm: float | None,
        ignore_stale_grad: bool,
        passes: str,
        remat: str | int,
        precision: str,
    ) -> None:
        if not isinstance(trainer, Trainer):
            raise errors.TypeError("train_step: trainer", expected="a gluon.Trainer", given=type(trainer).__name__)
        if clip_global_norm is not None and not clip_global_norm > 0:
            raise errors.ParamError("train_step: clip_global_norm must be positive", given=str(clip_global_norm))
        rule_of(trainer.optimizer)
        trainer._check_can_compile()
        _core.check_passes(passes)
        self._forward = Forward(net, loss, outputs)
        self._trainer = trainer
        self._limit = clip_global_norm
        self._ignore_stale = ignore_stale_grad
        self._passes = passes
        self._remat = remat_text(remat)
        self._precision = precision_text(precision)
        if self._precision == "float16" and getattr(trainer, "_amp_loss_scaler", None) is None:
            LossScaler().attach(trainer)
        self._graphs: dict[Any, StepGraph] = {}
        self._last: StepGraph | None = None

    def __call__(self, data: Any, label: Any = None, batch_size: float | None = None) -> Any:
        """Trains on one batch and returns the loss in the form of ``loss(net(data), label)``.

        Parameters
        ----------
        data : NDArray, or tuple or list of arguments of net
        label : NDArray, or tuple or list of further arguments of loss, optional
        batch_size : float, optional
            Divisor of the gradients, as in trainer.step; default: the size of the first axis of the first array, times
            the number of processes over which the trainer sums.

        Raises ShapeError and DTypeError for batches that net does not accept; UserWarning for parameters of the trainer
        that are not used (see ignore_stale_grad); HybridNetError after a step that failed halfway.
        """
        self._check_usable()
        flat: list[Any] = []
        args = (data,) if label is None else (data, label)
        key = flatten_arguments(args, flat)
        if not flat:
            raise errors.ValueError("train_step: there is no array among the arguments")
        if any(not isinstance(a, ndarray.NDArray) for a in flat):
            raise errors.TypeError("train_step: arguments", expected="NDArrays", given="a Symbol")
        self._forward._check_one_context(flat)
        trainer: Any = self._trainer
        trainer._be_ready()
        trainer._check_can_compile()
        scaler = getattr(trainer, "_amp_loss_scaler", None)
        trainer.optimizer._set_current_context(flat[0].context.device_id)
        with autograd.pause(train_mode=True):
            with autograd.record():  # a step counts as recorded: forward may query it
                traced = self._forward._find_graph(key, flat)
            graph = self._graph_for(traced, scaler is not None)
            if scaler is not None:
                trainer._scale = trainer._amp_original_scale / scaler.loss_scale
            size = batch_size if batch_size is not None else (flat[0].shape or (1,))[0] * self._num_processes()
            trainer._check_and_rescale_grad(trainer._scale_for(size))
            return self._run(graph, flat, scaler, size)

    def _num_processes(self) -> int:
        trainer: Any = self._trainer
        return int(trainer._store.num_workers) if trainer._sums_over_processes() else 1

    def _check_usable(self) -> None:
        if not any(op.is_torn for graph in self._graphs.values() for op in graph.ops):
            return
        raise errors.HybridNetError(
            "train_step: the parameters are inconsistent",
            because="an earlier step failed when some of them were updated and some were not",
            fix="load saved parameters and states, then call reset()",
        )

    def reset(self) -> None:
        """Marks parameters and states as consistent again after a step that failed halfway."""
        for graph in self._graphs.values():
            for op in graph.ops:
                op.forget_torn()

    def _graph_for(self, traced: Any, scaled: bool) -> StepGraph:
        trainer = self._trainer
        optimizer = trainer.optimizer
        rule = rule_of(optimizer)
        params = [param for param in traced.params if isinstance(param, Parameter)]
        requests = tuple((param._grad_req, param._data[0].dtype) for param in params)  # type: ignore[index]
        indices = [trainer._param2idx[param.name] for param in params if param.name in trainer._param2idx]
        key = (id(traced), type(optimizer), rule.key(optimizer, indices), requests, scaled)
        graph = self._graphs.get(key)
        if graph is None:
            known = {id(one) for variants in self._forward._variants.values() for one in variants.table.values()}
            for other in [other for other in self._graphs if other[0] not in known]:
                del self._graphs[other]  # its traced graph was dropped
            graph = StepGraph(
                traced,
                trainer,
                rule,
                ignore_stale=self._ignore_stale,
                clips=self._limit is not None,
                scaled=scaled,
                passes=self._passes,
                remat=self._remat,
                precision=self._precision,
            )
            self._graphs[key] = graph
        self._last = graph
        return graph

    def _run(self, graph: StepGraph, flat: Sequence[NDArray], scaler: Any, batch_size: float) -> Any:
        optimizer = self._trainer.optimizer
        rule = rule_of(optimizer)
        before = {} if scaler is None else rule.progress(optimizer)
        results = graph.run(flat, self._limit, None if scaler is None else scaler.loss_scale, batch_size)
        if scaler is not None and scaler._note(bool(results.pop().asscalar())):
            # Like in trainer.step, steps with overflow do not count.
            rule.set_progress(optimizer, before)
        return nests.restore(graph.traced.out_nest, results)

    def export(self, path: str, epoch: int = 0) -> tuple[str, str]:
        """Writes the step of the last batch as ``path-symbol.json`` and ``path-0000.params``, for C++ programs.

        The files contain the current parameters and optimizer states. The loaded graph takes the batch and
        ``step_rates``, a float64 array with a row per parameter: learning rate, weight decay and rescale_grad in the
        form of the optimizer's operators (the first column of Adam is corrected for bias), then the step number if the
        optimizer has a column for it; with ``clip_global_norm`` also ``step_norm_limit``, the bound over rescale_grad.
        Each run in training mode is a step. Returns the two names; raises HybridNetError before the first step.
        """
        self._ops()
        with autograd.pause(train_mode=True):
            return self._last.export(path, epoch)  # type: ignore[union-attr]

    # -- the plan -----------------------------------------------------------------------------------------------------

    def _ops(self) -> list[Any]:
        if self._last is None:
            raise errors.HybridNetError("train_step has no graph yet", fix="call the step with a batch first")
        return self._last.ops

    @property
    def num_plans(self) -> int:
        """The number of plans: one for all sizes that share the same instructions.

        With a store of several processes a step has two: gradients, and updates from their sums.
        """
        return sum(op.num_plans for graph in self._graphs.values() for op in graph.ops)

    def plan_text(self) -> str:
        """Returns the plan of the last step, instruction by instruction (docs/debugging.md)."""
        return "\n".join(str(op.plan_text()) for op in self._ops())

    def pass_report(self) -> str:
        """Returns plans, their memory, and counts of fired rewrites."""
        return "\n".join(str(op.summary()) for op in self._ops())
