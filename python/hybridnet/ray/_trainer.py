"""Trainer: runs a function of the user in a group of processes that Ray starts."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import ValueError as HybridNetValueError
from ._cluster import check_room, import_ray
from ._failures import failure_of, start_failure

__all__ = ["Trainer"]

# Ray's control process looks at the workers so often: a death is found, and a report is taken, after that time.
_POLL_SECONDS = 0.5
_START_SECONDS = 60.0


class Trainer:
    """Runs a function in processes of Ray, which form a group: ``kvstore="dist_sync"`` and ``mx.group`` work in it.

    Parameters
    ----------
    train_function : function
        Takes config, or nothing. It begins with ``ray.train.get_checkpoint()`` (None at first) and gives checkpoints
        to ``ray.train.report``, which all processes call.
    num_workers : int, default 1
    config : dict, optional
        Argument of the function.
    resources_per_worker : dict, default {'CPU': 1}
        What a process reserves of its machine, in Ray's names. It uses as many cores as it reserves CPUs.
    max_restarts : int, default 0
        How often all processes are started again, from the last checkpoint, after one of them has failed.
    folder : str, default '~/ray_results'
        Where the checkpoints are kept: on a disk that all machines see, or an address such as s3://BUCKET/PATH.
    name : str, optional
        Name of this training in the folder. With the name of an earlier one it continues from its last checkpoint.
        Default: a new name.
    checkpoints_to_keep : int, optional
        Default: all.
    virtual_shards : int, default 0
        As for ``mx.group.init``: with the same number, training gives the same bits with every number of processes.
    timeout : float, default 60.0
        Seconds that a process waits for another one before that is an error.
    start_timeout : float, optional
        Seconds to wait for machines with room for the processes. By default it is an error at once if the machines of
        the cluster are too few or too small; for those that are busy it waits 60 s.
    run_config : ray.train.RunConfig, optional
        Further settings of Ray. The arguments above come first.

    Raises ImportError if Ray is not installed, UnsupportedError for Ray Train V1, ValueError for wrong arguments.
    """

    def __init__(
        self,
        train_function: Callable[..., Any],
        *,
        num_workers: int = 1,
        config: Mapping[str, Any] | None = None,
        resources_per_worker: Mapping[str, float] | None = None,
        max_restarts: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        name: str | None = None,
        checkpoints_to_keep: int | None = None,
        virtual_shards: int = 0,
        timeout: float = 60.0,
        start_timeout: float | None = None,
        run_config: Any = None,
    ) -> None:
        _check("num_workers", num_workers, num_workers >= 1, "at least 1")
        _check("max_restarts", max_restarts, max_restarts is None or max_restarts >= 0, "at least 0")
        _check(
            "virtual_shards", virtual_shards, virtual_shards == 0 or virtual_shards >= num_workers,
            "0, or at least num_workers",
        )  # fmt: skip
        _check("timeout", timeout, timeout > 0, "more than 0")
        _check("start_timeout", start_timeout, start_timeout is None or start_timeout > 0, "more than 0, or None")
        self._ray = import_ray()
        self._function = train_function
        self._config = dict(config or {})
        self._num_workers = num_workers
        self._resources = {"CPU": 1.0, **(resources_per_worker or {})}
        self._virtual_shards, self._timeout, self._start_timeout = virtual_shards, timeout, start_timeout
        self._run_config = self._settings_of_run(run_config, max_restarts, folder, name, checkpoints_to_keep)

    def _settings_of_run(
        self, given: Any, max_restarts: int | None, folder: Any, name: str | None, checkpoints_to_keep: int | None
    ) -> Any:
        train = self._ray.train
        settings = copy.copy(given) if given is not None else train.RunConfig()
        if name is not None:
            settings.name = name
        if folder is not None:
            path = os.fspath(folder)
            settings.storage_path = path if "://" in path else os.path.abspath(path)
        if max_restarts is not None or given is None:
            count = max_restarts or 0
            settings.failure_config = train.FailureConfig(max_failures=count, controller_failure_limit=count)
        if checkpoints_to_keep is not None:
            settings.checkpoint_config = train.CheckpointConfig(num_to_keep=checkpoints_to_keep)
        environment = dict(settings.worker_runtime_env or {})
        threads = {"HYBRIDNET_NUM_THREADS": str(max(1, int(self._resources["CPU"])))}
        environment["env_vars"] = {**threads, **environment.get("env_vars", {})}
        settings.worker_runtime_env = environment
        return settings

    def fit(self) -> Any:
        """Trains; returns Ray's result: ``metrics`` and ``checkpoint`` of the last report, ``return_value`` of rank 0.

        Starts Ray on this machine if the program is not connected to a cluster.

        Raises GroupError if a process has failed and max_restarts is used up, with the exception of the process as
        __cause__; if the cluster has no room for the processes, or they do not find each other.
        """
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

        from ._backend import GroupConfig

        ray = self._ray
        if not ray.is_initialized():
            ray.init()
        nodes = ray.nodes()
        if self._start_timeout is None:
            check_room(nodes, self._num_workers, self._resources)
        with _settings(self._start_timeout or _START_SECONDS, len(nodes)), _own_interrupt():
            try:
                return DataParallelTrainer(
                    self._function,
                    train_loop_config=self._config,
                    backend_config=GroupConfig(self._virtual_shards, self._timeout),
                    scaling_config=ray.train.ScalingConfig(
                        num_workers=self._num_workers,
                        use_gpu=self._resources.get("GPU", 0) > 0,
                        resources_per_worker=self._resources,
                    ),
                    run_config=self._run_config,
                ).fit()
            except ray.train.TrainingFailedError as error:
                found = failure_of(error, self._num_workers, self._run_config.failure_config.max_failures)
            except ray.exceptions.RayError as error:  # its control process has failed
                found = start_failure(error)
        raise found


def _check(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise HybridNetValueError(f"hybridnet.ray.Trainer: {name}", expected=expected, given=repr(value))


@contextlib.contextmanager
def _settings(start_seconds: float, machines: int) -> Iterator[None]:
    """Sets variables that the control process of Ray Train reads from the environment, if the user has not."""
    settings = {
        "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": str(_POLL_SECONDS),
        "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": str(start_seconds),
    }
    if machines == 1:  # no machine can be taken away; the process that watches for it would delay each start
        settings["RAY_TRAIN_ENABLE_PREEMPTION_WATCHER"] = "0"
    added = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _own_interrupt() -> Iterator[None]:
    """Puts back the program's handler of Ctrl-C, which Ray Train replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
