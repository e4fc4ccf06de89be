"""Processes that mpirun starts form a group without any setting, with the bits of Gloo's, and name what goes wrong."""

import os
import pathlib
import re
import subprocess
import sys
import time

import pytest
from launched import LIBRARY, launch
from mpi_launched import ENGINES, mpirun, mpirun_of
from test_faults import FAULTS, FAULTY, alive
from test_training import TRAINING

slow = pytest.mark.slow

# Whole arrays, arrays in parts, values of more than one message, and nothing.
CALLS = """
import hashlib
rng = np.random.default_rng(rank)
values = []
for count in (1, 1000, 4096, 4097, 70_001):
    x = mx.nd.array(rng.standard_normal(count).astype("float32"))
    values.append(group.sum(x))
    values.append(group.sum(x.astype("float16")).astype("float32"))
    values.append(group.gather(x))
    group.broadcast(x, root=size - 1)
    values.append(x)
group.barrier()
assert group.sum(mx.nd.zeros((0, 3))).shape == (0, 3)
digest = hashlib.sha256(b"".join(value.asnumpy().tobytes() for value in values)).hexdigest()
print("digest", digest)
"""


def digests_of(done: subprocess.CompletedProcess[str], processes: int) -> set[str]:
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"digest (\w+)", done.stdout)
    assert len(found) == processes, done.stdout
    return set(found)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=slow), pytest.param(4, marks=slow)])
def test_calls_have_the_bits_of_gloo(engine: str, processes: int, tmp_path: pathlib.Path) -> None:
    found = digests_of(mpirun(engine, processes, CALLS, tmp_path), processes)
    assert len(found) == 1
    if LIBRARY.exists():
        assert digests_of(launch(processes, CALLS, tmp_path), processes) == found


@slow
@pytest.mark.parametrize("engine", ENGINES)
def test_training_has_the_bits_of_gloo_with_every_number_of_processes(engine: str, tmp_path: pathlib.Path) -> None:
    arguments = ("mlp", "hybridized", "adam")
    places = {"HYBRIDNET_GROUP_SHARDS": "4", "HYBRIDNET_NUM_THREADS": "1"}
    found = set.union(
        *(digests_of(mpirun(engine, n, TRAINING, tmp_path, *arguments, **places), n) for n in (1, 2, 4)),
        *(
            digests_of(launch(n, TRAINING, tmp_path, "--virtual-shards", "4", "--threads", "1", arguments=arguments), n)
            for n in (1, 4)
            if LIBRARY.exists()
        ),
    )
    assert len(found) == 1


# mpirun may end the others before they have said why, after a signal has killed one.
MAY_BE_CUT_OFF = {"mpich": {"killed"}, "openmpi": {"killed", "left without a word"}}
QUICK = {("mpich", "left without a word")}
CASES = [
    pytest.param(engine, name, marks=() if (engine, name) in QUICK else slow) for engine in ENGINES for name in FAULTS
]


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_a_fault_of_one_process_is_named_by_the_others(engine: str, name: str, tmp_path: pathlib.Path) -> None:
    fault, text, seconds = FAULTS[name]
    program = f"def fault():\n    {fault}\n" + FAULTY.replace('print("error", ', 'print("error", "of", rank, ')
    begin = time.monotonic()
    done = mpirun(engine, 3, program, tmp_path, HYBRIDNET_GROUP_TIMEOUT="4", limit=60)
    assert time.monotonic() - begin < 30
    assert done.returncode != 0, "a job of which a process is missing has not succeeded"
    errors = dict(re.findall(r"error of (\d) (.*)", done.stdout))
    if name not in MAY_BE_CUT_OFF[engine]:
        assert {"0", "2"} <= set(errors), done.stdout + done.stderr
        assert all(float(took) < seconds + 4 for took in re.findall(r"took ([\d.]+)", done.stdout))
    elif not errors:
        assert "rank 1" in done.stderr, done.stderr
    for error in errors.values():
        assert text in error, done.stdout + done.stderr
        assert "rank 1" in error
        assert "program.py" in error, "the user's line"
    pids = [int(pid) for pid in re.findall(r"pid (\d+)\b", done.stdout)]
    time.sleep(0.2)
    assert not any(map(alive, pids))


OPPOSITE = """
first, second = mx.nd.ones((1000,)), mx.nd.zeros((1000,))
names = ("first", "second") if rank == 0 else ("second", "first")
try:
    for name in names:
        group.sum_into(first if name == "first" else second, name=name)
    mx.nd.waitall()
    raise SystemExit("a wrong sum")
except mx.errors.GroupError as error:
    assert "disagree in call 1" in str(error), error
    print("named by", rank)
group.leave()
"""


@slow
@pytest.mark.parametrize("engine", ENGINES)
def test_sums_in_opposite_order_are_an_error(engine: str, tmp_path: pathlib.Path) -> None:
    done = mpirun(engine, 2, OPPOSITE, tmp_path)
    assert {"named by 0", "named by 1"} <= set(done.stdout.splitlines()), done.stdout + done.stderr


STOPPED_INSIDE = """
import threading
x = mx.nd.ones((1_000_000,))
x.wait_to_read()
group.barrier()
if rank == 1:
    threading.Timer(float(sys.argv[1]), lambda: os.kill(os.getpid(), signal.SIGSTOP)).start()
try:
    for step in range(10_000):
        group.sum_into(x, name=f"step {step}")
        mx.nd.waitall()
except mx.errors.GroupError as error:
    print("error", " ".join(str(error).split()), flush=True)
    raise
"""


@slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("moment", ["0.02", "0.05", "0.3"])
def test_a_process_that_stops_while_values_move_is_named(engine: str, moment: str, tmp_path: pathlib.Path) -> None:
    done = mpirun(engine, 2, STOPPED_INSIDE, tmp_path, moment, HYBRIDNET_GROUP_TIMEOUT="4", limit=60)
    assert done.returncode != 0
    assert "rank 1 of 2" in done.stdout or "rank 1 stopped" in done.stderr, done.stdout + done.stderr


LATE = """
group.sum(mx.nd.ones((3,))).asnumpy()
if rank == 0:
    time.sleep(6)
"""


@slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_process_that_ends_early_waits_for_the_others(engine: str, tmp_path: pathlib.Path) -> None:
    done = mpirun(engine, 3, LATE, tmp_path, HYBRIDNET_GROUP_TIMEOUT="4")
    assert done.returncode == 0, done.stdout + done.stderr


WAITING = """
x = mx.nd.ones((10,))
group.barrier()
before = time.process_time()
if rank == 0:
    time.sleep(1.5)
group.sum(x).asnumpy()
assert rank == 0 or time.process_time() - before < 0.3, time.process_time() - before
"""


@slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_wait_needs_no_core(engine: str, tmp_path: pathlib.Path) -> None:
    done = mpirun(engine, 2, WAITING, tmp_path, HYBRIDNET_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr


@slow
def test_the_library_of_another_mpi_is_refused(tmp_path: pathlib.Path) -> None:
    program = "raise SystemExit('it has joined')"
    for engine, other in (("mpich", "openmpi"), ("openmpi", "mpich")):
        done = mpirun(engine, 2, program, tmp_path, HYBRIDNET_GROUP_ENGINE=other)
        assert done.returncode != 0
        assert "it has joined" not in done.stderr
        assert "was not found" in done.stderr, done.stderr


@slow
@pytest.mark.parametrize("engine", ENGINES)
def test_init_takes_the_place_from_mpirun(engine: str, tmp_path: pathlib.Path) -> None:
    program = f"mx.group.init(engine={engine!r}, virtual_shards=4)\n"
    program += "assert (mx.group.size(), mx.group.virtual_shards()) == (2, 4)\n"
    done = mpirun(engine, 2, program, tmp_path, head="import hybridnet as mx\n")
    assert done.returncode == 0, done.stderr


MPI4PY = """
from mpi4py import MPI
import numpy as np
import hybridnet as mx
world = MPI.COMM_WORLD
halves = world.Split(world.Get_rank() % 2, -world.Get_rank())  # ranks in reverse order
mx.group.from_mpi4py(halves)
assert (mx.group.rank(), mx.group.size()) == (halves.Get_rank(), 2)
x = mx.nd.array([world.Get_rank(), 1.0])
total = mx.group.sum(x).asnumpy()
assert (total == [2 + 2 * (world.Get_rank() % 2), 2]).all(), total
expected = halves.allreduce(np.asarray([world.Get_rank(), 1.0]))  # the program's own messages are others
assert (total == expected).all()
mx.group.leave()
try:
    mx.group.from_mpi4py(world.Split(world.Get_rank() // 2, world.Get_rank()), name="1")
    raise SystemExit("another communicator was taken")
except mx.errors.GroupError as error:
    assert "another communicator" in str(error), error
copy = halves.Dup()
halves.Free()
mx.group.from_mpi4py(copy, name="2", virtual_shards=4)
copy.Free()
assert mx.group.virtual_shards() == 4
assert mx.group.sum(x).asnumpy()[1] == 2
world.Barrier()
"""


@slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_communicator_of_mpi4py_is_a_group(engine: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("mpi4py")
    library = mpirun_of(engine).parents[1] / "lib"
    done = mpirun(
        engine, 4, MPI4PY, tmp_path, head="", limit=40.0, LD_LIBRARY_PATH=str(library), HYBRIDNET_NUM_THREADS="1"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_other_objects_than_communicators_are_refused() -> None:
    pytest.importorskip("mpi4py")
    code = "import hybridnet as mx\ntry:\n    mx.group.from_mpi4py(3)\nexcept TypeError as error:\n    print(error)\n"
    library = mpirun_of("mpich").parents[1] / "lib"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "expected an intracommunicator of mpi4py, got 3" in done.stdout
