"""``mx.group``: the processes that train together, and sums over them.

Start a program several times with ``python -m hybridnet.launch -n 4 train.py``; it needs two changes::

    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="dist_sync")
    part = gluon.data.SplitSampler(len(dataset), mx.group.size(), mx.group.rank())
    loader = gluon.data.DataLoader(dataset, batch_size, sampler=part)

All processes must make the same calls in the same order. Calls return at once, like operators; the engine runs them
in the order of the program. A process that dies, stops or makes another call becomes a
:class:`~hybridnet.errors.GroupError` in all of them. Without a launcher the group has one process, and every sum is the
array itself.
"""

from __future__ import annotations

import atexit
import copy
import os
import pathlib
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _core, symbol
from ._lazy_names import names_from
from ._public_names import dir_of
from ._user_line import in_one_line, user_line
from .errors import GroupError
from .errors import TypeError as HybridNetTypeError
from .ndarray import NDArray, array

if TYPE_CHECKING:
    from ._meeting_server import MeetingServer
    from .gluon._checkpoints import load_checkpoint as load_checkpoint
    from .gluon._checkpoints import save_checkpoint as save_checkpoint

__all__ = [
    "GroupError",
    "barrier",
    "broadcast",
    "counters",
    "from_mpi4py",
    "gather",
    "init",
    "is_initialized",
    "leave",
    "own_shards",
    "rank",
    "reduce",
    "size",
    "sum",
    "sum_into",
    "virtual_shards",
]


def init(
    rank: int | None = None,
    size: int | None = None,
    meeting: str | None = None,
    *,
    token_file: str = "",
    virtual_shards: int = 0,
    address: str = "127.0.0.1",
    engine: str | None = None,
    name: str = "0",
    timeout: float = 60.0,
) -> None:
    """Joins a group; returns when all processes have come. Without a place: the group that the launcher describes.

    Parameters
    ----------
    rank, size : int
        The number of this process, from 0, and the number of processes.
    meeting : str
        Where the processes find each other: ``folder:/PATH``, a folder of this user's that all of them see, with
        mode 0700, new for each job; or ``tcp://HOST:PORT``, where process 0 or the launcher serves. Processes of MPI
        need none.
    token_file : str
        File with the secret of the job, at least 32 bytes, mode 0600.
    virtual_shards : int, default 0
        Number of parts of a batch, at least size. With the same number, training gives the same bits with every number
        of processes (``Trainer.add_shard``). 0: one for each process.
    address : str, default '127.0.0.1'
        Address of this machine at which the other processes can reach it.
    engine : str, optional
        Library that moves the bytes: ``gloo``, or ``mpich`` or ``openmpi`` in programs that mpirun has started.
        Default: that of the launcher, else ``gloo``.
    name : str, default '0'
        Distinguishes the groups that meet in one place, one after the other.
    timeout : float, default 60.0
        Seconds that a process waits for another one before that is an error.

    Raises GroupError if a process does not come or differs in version, size or token, and if this process is in a group
    already; UnsupportedError if the library of the engine is missing.
    """
    if rank is None and size is None and meeting is None:
        if engine is not None or virtual_shards != 0:
            _core.group_join_as_launched(engine or "", int(virtual_shards))
        _place()
        return
    _serve(int(rank or 0), meeting or "", token_file)
    _core.group_join(
        int(rank or 0), int(size or 1), int(virtual_shards), meeting or "", token_file, address, engine or "gloo", name,
        timeout,
    )  # fmt: skip
    _place()


def from_mpi4py(comm: Any = None, *, virtual_shards: int = 0, name: str = "0", timeout: float = 60.0) -> None:
    """Joins the group of the processes of an mpi4py communicator; returns when all of them have called it.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, optional
        Default: ``MPI.COMM_WORLD``. Ranks are those of the communicator, which may be freed afterwards. Another one
        with other processes cannot follow it in the same program.
    virtual_shards, name, timeout
        As in :func:`init`; name differs from those of earlier groups of this program.

    mpi4py starts and ends MPI: with the thread level MPI_THREAD_MULTIPLE, its default.

    Raises TypeError for other objects; GroupError if a process does not come, if MPI has ended or was started with
    another thread level, and if this process is in a group already; ImportError without mpi4py.
    """
    from mpi4py import MPI

    comm = MPI.COMM_WORLD if comm is None else comm
    if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
        raise HybridNetTypeError(
            "group.from_mpi4py", expected="an intracommunicator of mpi4py", given=getattr(comm, "name", repr(comm))
        )
    engine = "openmpi" if "Open MPI" in MPI.Get_library_version() else "mpich"
    _core.group_join(
        comm.Get_rank(), comm.Get_size(), int(virtual_shards), "", "", "127.0.0.1", engine, name, timeout,
        MPI._handleof(comm),
    )  # fmt: skip
    _place()


_watches_exit = False
_server: MeetingServer | None = None


def _serve(rank: int, meeting: str, token_file: str) -> None:
    """Process 0 serves the meeting at its address, unless another process does already."""
    global _server
    if rank != 0 or not meeting.startswith("tcp://") or not token_file:
        return
    from ._meeting_server import MeetingServer

    host, _, port = meeting.removeprefix("tcp://").rpartition(":")
    try:
        token = pathlib.Path(token_file).read_bytes()
        _server = MeetingServer(token, host.strip("[]"), int(port))
    except (OSError, ValueError):  # it is served elsewhere; joining says what is wrong with the arguments
        return


def _place() -> tuple[int, int, int, int, int]:
    """Returns (rank, size, shards, first and end of the own shards); joins the launcher's group at the first call."""
    global _watches_exit
    if not _core.group_is_joined():
        from . import _dmlc  # not needed by programs without a group

        _dmlc.join()
        environ = os.environ.get
        _serve(
            int(environ("HYBRIDNET_GROUP_RANK") or 0),
            environ("HYBRIDNET_GROUP_STORE", ""),
            environ("HYBRIDNET_GROUP_TOKEN_FILE", ""),
        )
    place: tuple[int, int, int, int, int] = _core.group_place()
    if place[1] > 1 and not _watches_exit:
        _watches_exit = True
        _watch_exit()
    return place


def _watch_exit() -> None:
    """Lets the other processes know why this one ends: an exception, or the end of the program."""
    show = sys.excepthook

    def leave_and_show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> Any:
        if not issubclass(kind, GroupError):
            leave(in_one_line(error))
        return show(kind, error, traceback)

    sys.excepthook = leave_and_show
    atexit.register(_leave_at_exit)


def _leave_at_exit() -> None:
    try:
        _core.wait_all()
    except Exception:  # it was or will be raised where the program waits
        _core.group_leave("the program ended after an error")
    _core.group_leave("the program ended")


def is_initialized() -> bool:
    """Whether this process has joined a group."""
    return _core.group_is_joined()


def rank() -> int:
    """The number of this process in its group, from 0."""
    return _place()[0]


def size() -> int:
    """The number of processes of the group; 1 without a launcher."""
    return _place()[1]


def virtual_shards() -> int:
    """The number of parts of a sum: ``init(virtual_shards=)``, else :func:`size`."""
    return _place()[2]


def own_shards() -> tuple[int, int]:
    """The virtual shards of this process: (first, end), as for range()."""
    return _place()[3:]


def leave(reason: str = "it left the group") -> None:
    """Leaves the group. Processes that still need this one get a GroupError with the reason."""
    _core.group_leave(reason)


def counters() -> dict[str, int]:
    """The number of finished calls, and of bytes of values that this process has sent."""
    _place()
    calls, sent = _core.group_counters()
    return {"calls": calls, "bytes_sent": sent}


def _arrays(value: Any, call: str) -> list[NDArray]:
    arrays = list(value) if isinstance(value, (list, tuple)) else [value]
    for each in arrays:
        if not isinstance(each, NDArray):
            raise HybridNetTypeError(f"group.{call}", expected="NDArrays", given=type(each).__name__)
    return arrays


def sum(array: NDArray, name: str = "") -> NDArray:
    """Returns the sum of an array over all processes, in a fixed order: the same bits in each of them and in every run.

    The gradient is the sum of the gradients of all processes. In a hybridized block it is an operator of the graph,
    which runs on the thread that calls the block. name: names the array in errors. Raises TypeError, UnsupportedError
    for sparse arrays; differences between the processes are a GroupError where the result is read.
    """
    _place()
    if isinstance(array, symbol.Symbol):
        return symbol._internal._group_sum(array, label=name, line="" if name else user_line())
    (given,) = _arrays(array, "sum")
    return _core.group_sum(given, name)


def sum_into(
    arrays: NDArray | Sequence[NDArray],
    out: NDArray | Sequence[NDArray] | None = None,
    name: str = "",
    priority: int = 0,
) -> None:
    """Overwrites out (default: the arrays) by the sums over all processes, in one message for all arrays of one dtype.

    Raises TypeError, DTypeError if dtypes differ, ShapeError if out differs.
    """
    _place()
    given = _arrays(arrays, "sum_into")
    _core.group_sum_into(given, given if out is None else _arrays(out, "sum_into"), name, priority)


def gather(array: NDArray, name: str = "") -> NDArray:
    """Returns the arrays of all processes, joined along a new leading axis of length :func:`size`. Not differentiable.

    Raises TypeError, UnsupportedError for sparse arrays, GradientError while recording.
    """
    _place()
    (given,) = _arrays(array, "gather")
    return _core.group_gather(given, name)


def broadcast(arrays: NDArray | Sequence[NDArray], root: int = 0, name: str = "") -> None:
    """Overwrites the arrays, all of one dtype, by those of the process root. Raises TypeError, ValueError for root."""
    _place()
    _core.group_broadcast(_arrays(arrays, "broadcast"), int(root), name)


def reduce(metric: Any) -> Any:
    """Returns a copy of a metric (mx.metric) with the sums and counts of all processes.

    Its value is that of a metric that was updated with the batches of all processes. Metrics that average over batches
    (MSE, F1 with average='macro') still do.

    Raises UnsupportedError for metrics whose value does not follow from sums, such as PearsonCorrelation.
    """
    _place()
    total = copy.deepcopy(metric)
    for one in getattr(total, "metrics", [total]):
        counts = array(one._counts(), dtype="float64")
        one._take_counts(sum(counts, f"metric {one.name}").asnumpy())
    return total


def barrier() -> None:
    """Returns when all processes have called it."""
    _place()
    _core.group_barrier()


# Imported on first use: they need Gluon.
__getattr__, __dir__ = names_from(__name__, {"gluon._checkpoints": "load_checkpoint save_checkpoint"})
__dir__ = dir_of(__name__, __dir__)
