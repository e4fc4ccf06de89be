"""Ray itself: whether it is installed, and whether its machines have room for the processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import GroupError, UnsupportedError
from ..errors import ImportError as HybridNetImportError

__all__ = ["check_room", "import_ray"]

_INSTALL = 'pip install "ray[train]>=2.51"'


def import_ray() -> Any:
    """Returns the module ray, with ray.train. Raises ImportError, UnsupportedError for Ray Train V1."""
    try:
        import ray
        import ray.train
    except ImportError as error:
        raise HybridNetImportError(
            "hybridnet.ray.Trainer needs Ray Train", because=str(error).partition("\n")[0], fix=_INSTALL
        ) from error
    if not hasattr(ray.train, "WorkerGroupError"):
        off = os.environ.get("RAY_TRAIN_V2_ENABLED")
        raise UnsupportedError(
            "hybridnet.ray.Trainer needs Ray Train V2",
            given=f"ray {ray.__version__}" + (f" with RAY_TRAIN_V2_ENABLED={off}" if off else ""),
            fix="unset RAY_TRAIN_V2_ENABLED" if off else _INSTALL,
        )
    return ray


def check_room(nodes: Iterable[Mapping[str, Any]], workers: int, resources: Mapping[str, float]) -> None:
    """Raises GroupError if the machines of a cluster (ray.nodes()) could not hold the processes even when idle."""
    alive = [node["Resources"] for node in nodes if node.get("Alive", True)]
    room = sum(_room(node, resources) for node in alive)
    if room >= workers:
        return
    has = {name: sum(node.get(name, 0) for node in alive) for name in resources}
    raise GroupError(
        f"hybridnet.ray.Trainer: num_workers={workers}, each with {_listed(resources)}",
        expected=f"at most {room}" if room else "less for each worker",
        given=f"a cluster of {len(alive)} machine{'s' * (len(alive) != 1)} with {_listed(has)}",
        fix="pass fewer num_workers or smaller resources_per_worker, or add machines; start_timeout=SECONDS waits for "
        "machines that the cluster adds on demand",
    )


def _room(node: Mapping[str, float], resources: Mapping[str, float]) -> int:
    """The number of processes that a machine can hold."""
    needed = [(node.get(name, 0), amount) for name, amount in resources.items() if amount > 0]
    # Ray counts in units of 1/10,000.
    return min((round(has * 10_000) // max(1, round(amount * 10_000)) for has, amount in needed), default=1 << 30)


def _listed(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in resources.items())
