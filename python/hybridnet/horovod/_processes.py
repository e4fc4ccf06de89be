"""Joining the processes of a program, their ranks, and queries about the build."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .. import group, ndarray
from ..errors import GroupError, UnsupportedError
from ..errors import ValueError as HybridNetValueError

_LOCAL_VARIABLES = ("HYBRIDNET_GROUP_LOCAL_RANK", "HYBRIDNET_GROUP_LOCAL_SIZE")
_LOCAL_VARIABLES_OF_MPI = (  # Open MPI, MPICH
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)


@dataclass(frozen=True)
class _Place:
    """The place of this process. A machine has local_size processes; cross_* count machines by their local ranks."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int
    is_homogeneous: bool


_joined: _Place | None = None
_has_left = False  # a group of several processes


def _place() -> _Place:
    if _joined is None:
        raise HybridNetValueError("Horovod has not been initialized", fix="call hvd.init() first")
    return _joined


def _local_place(rank: int, size: int) -> tuple[int, int]:
    """Returns the rank and number of processes on this machine, from the environment; default: all are here."""
    for names in (_LOCAL_VARIABLES, *_LOCAL_VARIABLES_OF_MPI):
        texts = [os.environ.get(name, "") for name in names]
        if any(texts):
            break
    else:
        return rank, size
    values = [int(text) if text.isdecimal() else -1 for text in texts]
    if not 0 <= values[0] < values[1] <= size:
        raise HybridNetValueError(
            f"hvd.init: {names[0]} and {names[1]}",
            expected=f"a rank and a number of processes on this machine, at most {size}",
            given=f"{texts[0]!r} and {texts[1]!r}",
            fix="set both, or neither",
        )
    return values[0], values[1]


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Joins the processes that the launcher started; returns when all have called it. A second call does nothing.

    Without a launcher there is one process, of rank 0. Raises UnsupportedError for a communicator, a list of ranks or
    process sets; GroupError if a process does not come, and after shutdown() of several processes; ValueError for wrong
    HYBRIDNET_GROUP_LOCAL_* variables.
    """
    global _joined
    if comm is not None and comm != [] and comm != 0:
        raise UnsupportedError(
            "hvd.init: comm",
            because="the processes are those of the launcher; there are no MPI communicators and no groups of ranks",
            fix="call hvd.init()",
        )
    if process_sets:
        raise _no_process_sets("hvd.init: process_sets")
    if _joined is not None:
        return
    if _has_left:
        raise GroupError(
            "hvd.init: this process has left its group by hvd.shutdown()",
            because="a process joins the group of its launcher once",
            fix="call hvd.shutdown() once, at the end of the program",
        )
    group.init()
    rank, size = group.rank(), group.size()
    local_rank, local_size = _local_place(rank, size)
    places = [(local_rank, local_size)]
    if size > 1:
        own = ndarray.array([local_rank, local_size], dtype="int32")
        places = [(int(place[0]), int(place[1])) for place in group.gather(own, "the places of hvd.init").asnumpy()]
    peers = [other for other, place in enumerate(places) if place[0] == local_rank]
    _joined = _Place(
        rank=rank,
        size=size,
        local_rank=local_rank,
        local_size=local_size,
        cross_rank=peers.index(rank),
        cross_size=len(peers),
        is_homogeneous=len({count for _, count in places}) == 1,
    )


def shutdown() -> None:
    """Leaves the other processes, after all calls so far have finished. Later calls of hvd raise ValueError."""
    global _joined, _has_left
    if _joined is None:
        return
    try:
        ndarray.waitall()
    finally:
        if _joined.size > 1:
            _has_left = True
            group.leave("it called hvd.shutdown()")
        _joined = None


def is_initialized() -> bool:
    """Whether init() was called, and shutdown() was not."""
    return _joined is not None


def rank() -> int:
    """The number of this process, from 0. Raises ValueError before init(), as the next functions do."""
    return _place().rank


def size() -> int:
    """The number of processes."""
    return _place().size


def local_rank() -> int:
    """The number of this process on its machine: HYBRIDNET_GROUP_LOCAL_RANK, else rank()."""
    return _place().local_rank


def local_size() -> int:
    """The number of processes on this machine: HYBRIDNET_GROUP_LOCAL_SIZE, else size()."""
    return _place().local_size


def cross_rank() -> int:
    """The number of this machine, among those that have a process of this local rank."""
    return _place().cross_rank


def cross_size() -> int:
    """The number of machines that have a process of this local rank."""
    return _place().cross_size


def is_homogeneous() -> bool:
    """Whether all machines have equally many processes."""
    return _place().is_homogeneous


# --- the build --------------------------------------------------------------------------------------------------------


def gloo_built() -> bool:
    """Whether the library that sends by Gloo is there."""
    return (Path(__file__).parents[1] / "libhybridnet_gloo.so").exists()


def gloo_enabled() -> bool:
    """Whether several processes would send by Gloo: gloo_built(), as nothing else sends so far."""
    return gloo_built()


def mpi_threads_supported() -> bool:
    """False: MPI is not used, so it cannot be mixed with mpi4py."""
    _place()
    return False


def mpi_enabled() -> bool:
    """False: MPI is not used."""
    return False


def mpi_built() -> bool:
    """False: MPI is not used."""
    return False


def nccl_built() -> int:
    """0: NCCL is not used; arrays on a GPU travel through the memory of the CPU."""
    return 0


def ddl_built() -> bool:
    """False: DDL is not used."""
    return False


def ccl_built() -> bool:
    """False: oneCCL is not used."""
    return False


def cuda_built() -> bool:
    """False: the calls here do not run on a GPU. ``mx.num_gpus()`` counts GPUs for layers."""
    return False


def rocm_built() -> bool:
    """False: ROCm is not used."""
    return False


# --- parts that do not exist ------------------------------------------------------------------------------------------


def _no_process_sets(call: str) -> UnsupportedError:
    return UnsupportedError(
        call,
        because="every call runs on all processes",
        fix="leave process sets out; hvd.global_process_set is the set of all processes",
    )


class ProcessSet:
    """A part of the processes. Only ``hvd.global_process_set`` exists: the constructor raises UnsupportedError."""

    process_set_id: int | None = None

    def __init__(self, ranks_or_comm: Any) -> None:
        raise _no_process_sets("hvd.ProcessSet")


class _AllProcesses(ProcessSet):
    process_set_id = 0

    def __init__(self) -> None:
        pass

    def __repr__(self) -> str:
        return "ProcessSet(all processes)"

    @property
    def ranks(self) -> list[int]:
        return list(range(_place().size))

    def rank(self) -> int:
        return _place().rank

    def size(self) -> int:
        return _place().size

    def included(self) -> bool:
        return True


global_process_set: ProcessSet = _AllProcesses()


def check_process_set(call: str, process_set: Any) -> None:
    """Raises UnsupportedError for any set but global_process_set."""
    if process_set is not global_process_set:
        raise _no_process_sets(f"{call}: process_set")


def add_process_set(process_set: Any) -> NoReturn:
    """Raises UnsupportedError."""
    raise _no_process_sets("hvd.add_process_set")


def remove_process_set(process_set: Any) -> NoReturn:
    """Raises UnsupportedError."""
    raise _no_process_sets("hvd.remove_process_set")


def start_timeline(file_path: str, mark_cycles: bool = False) -> NoReturn:
    """Raises UnsupportedError."""
    raise _no_timeline("hvd.start_timeline")


def stop_timeline() -> NoReturn:
    """Raises UnsupportedError."""
    raise _no_timeline("hvd.stop_timeline")


def _no_timeline(call: str) -> UnsupportedError:
    return UnsupportedError(
        call,
        because="there is no separate timeline of communication",
        fix="mx.profiler shows the calls beside the operators",
    )
