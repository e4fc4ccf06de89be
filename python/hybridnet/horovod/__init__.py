"""The API of ``horovod.mxnet``, on the processes of :mod:`mx.group <hybridnet.group>`.

A program for Horovod runs after a change of its import, or unchanged by ``hybridnet.as_mxnet``::

    import hybridnet.horovod as hvd                                          # was: import horovod.mxnet as hvd
    python -m hybridnet.launch -np 4 train.py                                # was: horovodrun -np 4 python train.py
    python -m hybridnet.launch -np 4 -m hybridnet.as_mxnet train.py          # the program as it is

Differences from Horovod:

- All processes must make the same calls in the same order; Horovod pairs calls by their names. A difference is a
  GroupError in all processes, where Horovod waits forever.
- Sums have a fixed order, so all runs give the same bits.
- ``allreduce`` has a gradient: the same reduction of the gradients of all processes.
- Objects travel as JSON, never as pickles.
- Process sets and Adasum are UnsupportedErrors.
"""

from .._public_names import dir_of
from ._calls import (
    Adasum,
    Average,
    Max,
    Min,
    Product,
    Sum,
    allgather,
    allreduce,
    allreduce_,
    alltoall,
    broadcast,
    broadcast_,
    grouped_allreduce,
    grouped_allreduce_,
)
from ._objects import allgather_object, broadcast_object
from ._processes import (
    ProcessSet,
    add_process_set,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    remove_process_set,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
)
from ._training import Compression, DistributedOptimizer, DistributedTrainer, broadcast_parameters

__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DistributedOptimizer",
    "DistributedTrainer",
    "Max",
    "Min",
    "ProcessSet",
    "Product",
    "Sum",
    "add_process_set",
    "allgather",
    "allgather_object",
    "allreduce",
    "allreduce_",
    "alltoall",
    "broadcast",
    "broadcast_",
    "broadcast_object",
    "broadcast_parameters",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "grouped_allreduce",
    "grouped_allreduce_",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]

__dir__ = dir_of(__name__)
