"""Join: steps of processes that have unequal numbers of batches."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from .. import group, ndarray
from ..errors import ParamError

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["Join"]


class _Step(NamedTuple):
    """The next step of a process, as numbers that it sends."""

    has_batch: float = 0.0
    batch_size: float = 0.0
    scale: float = 0.0  # the factor of its gradients
    ignores_stale: float = 0.0
    has_shards: float = 0.0  # whether it has called add_shard()


class Join:
    """The context of Trainer.join(). A process that leaves it takes part in the steps of the others until the last."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def __enter__(self) -> Join:
        if self._trainer._join is not None:
            raise ParamError("Trainer.join: the trainer is in a join() already", fix="leave the outer one first")
        self._trainer._join = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._trainer._join = None
        while kind is None and (step := self._agree(_Step())) is not None:
            self._trainer._step_without_batch(
                step.batch_size, step.scale, bool(step.ignores_stale), bool(step.has_shards)
            )

    def begin_step(self, batch_size: float, scale: float, ignores_stale: bool, has_shards: bool) -> None:
        """Announces a step of this process to those without batches."""
        self._agree(_Step(1.0, float(batch_size), scale, ignores_stale, has_shards))

    @staticmethod
    def _agree(own: _Step) -> _Step | None:
        """Returns the step of the processes that have a batch; None if there are none.

        Raises ParamError in all processes if their steps differ.
        """
        if group.size() == 1:
            return own if own.has_batch else None
        message = ndarray.array([own], dtype="float64")
        rows = group.gather(message, "numbers of batches left (Trainer.join)").asnumpy()[:, 0].tolist()
        steps = {rank: _Step(*row) for rank, row in enumerate(rows) if row[0]}
        if not steps:
            return None
        first, *others = steps
        for rank in others:
            if steps[rank] != steps[first]:
                raise ParamError(
                    f"Trainer.join: the steps of rank {first} and rank {rank} differ",
                    expected="the same arguments of step(), and add_shard() in all processes or in none",
                    given=f"{_text(steps[first])} and {_text(steps[rank])}",
                    because="each process divides the same sum",
                    fix="pass the number of samples of all processes in a full step, such as 32 * mx.group.size()",
                )
        return steps[first]


def _text(step: _Step) -> str:
    size = f"step({step.batch_size:g}{', ignore_stale_grad=True' if step.ignores_stale else ''})"
    return f"{size} after add_shard()" if step.has_shards else size
