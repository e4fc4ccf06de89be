"""A process that dies, stops or disagrees is a named error in every other one, in time, and nothing is left behind."""

import pathlib
import subprocess
import time

import pytest
from launched import LIMITED_NETWORK, launch, lines_of, needs_gloo, needs_limited_network

pytestmark = needs_gloo

# Rank 1 of three does `fault` before the third sum. The others print their error and how long it took.
FAULTY = """
print("pid", os.getpid(), flush=True)
x = mx.nd.ones((50_000,))
for step in range(3):
    if step == 2 and rank == 1:
        fault()
    begin = time.monotonic()
    try:
        group.sum_into(x, name=f"gradients of step {step}")
        mx.nd.waitall()
    except mx.errors.GroupError as error:
        print("took", round(time.monotonic() - begin, 2))
        print("error", " ".join(str(error).split()), flush=True)
        sys.exit(7)
"""

FAULTS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "has ended", 2.0),
    "exception": (
        "raise ValueError('a wrong shape somewhere')",
        "rank 1 said: ValueError: a wrong shape somewhere",
        2.0,
    ),
    "left without a word": ("os._exit(0)", "has ended", 2.0),
    "left": ("sys.exit(0)", "rank 1 said: the program ended", 2.0),
    "stopped": (
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "stopped answering; the sum of gradients of step 2 (call 3)",
        5.0,
    ),
    "other shape": (
        "group.sum_into(mx.nd.ones((7,)), name='gradients of step 2'); mx.nd.waitall()",
        "disagree in",
        2.0,
    ),
    "other dtype": (
        "group.sum_into(x.astype('int32'), name='gradients of step 2'); mx.nd.waitall()",
        "disagree in",
        2.0,
    ),
    "other call": ("group.broadcast(x); mx.nd.waitall()", "disagree in call 3", 2.0),
    "one call more": ("group.barrier()", "disagree in call 3", 2.0),
    "another name": ("group.sum_into(x, name='bias'); mx.nd.waitall()", "rank 1 calls the sum of bias", 2.0),
}


def alive(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_one_process_is_named_by_the_others(name: str, tmp_path: pathlib.Path) -> None:
    fault, text, seconds = FAULTS[name]
    program = f"def fault():\n    {fault}\n" + FAULTY
    done = launch(3, program, tmp_path, "--timeout", "2", "--grace", "3")
    assert done.returncode != 0
    pids = []
    for rank in (0, 2):
        lines = lines_of(done, rank)
        words = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines if " " in line}
        assert "error" in words, (name, done.stdout, done.stderr)
        assert text in words["error"], words["error"]
        assert "rank 1" in words["error"]
        assert "program.py" in words["error"], "the user's line"
        assert float(words["took"]) < seconds + 2, words
        pids.append(int(words["pid"]))
    assert not any(map(alive, pids))


def test_all_ranks_give_the_same_cause(tmp_path: pathlib.Path) -> None:
    program = "def fault():\n    os.kill(os.getpid(), signal.SIGKILL)\n" + FAULTY
    done = launch(4, program, tmp_path, "--timeout", "5")
    errors = {line.partition(" At: ")[0] for rank in (0, 2, 3) for line in lines_of(done, rank) if "error" in line}
    assert len(errors) == 1, errors


CONTINUED = """
import subprocess
x = mx.nd.ones((1000,))
if rank == 1:
    subprocess.Popen(["sh", "-c", f"sleep 1.2; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)
group.sum_into(x)
assert (x.asnumpy() == size).all()
print("fine")
"""


def test_a_process_that_continues_before_the_deadline_is_no_fault(tmp_path: pathlib.Path) -> None:
    done = launch(2, CONTINUED, tmp_path, "--timeout", "10")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2


NAN = """
net = gluon.nn.Dense(2, in_units=2)
net.initialize(mx.init.One())
trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_sync")
x = mx.nd.ones((1, 2)) * (np.nan if rank == 1 else 1)
with autograd.record():
    loss = net(x).sum()
loss.backward()
trainer.step(1)
assert np.isnan(net.weight.data().asnumpy()).all()  # in every process
print("fine")
"""


def test_nan_of_one_process_reaches_all(tmp_path: pathlib.Path) -> None:
    done = launch(3, NAN, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 3


FORKED = """
group.barrier()
child = os.fork()
if child == 0:
    try:
        group.sum(mx.nd.ones((2,))).asnumpy()
        os._exit(1)
    except mx.errors.GroupError as error:
        os._exit(0 if "forked" in str(error) else 2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert group.sum(mx.nd.ones((2,))).asnumpy().tolist() == [size, size]
# A child that ends as a program does must not close the connections of its parent.
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for _ in range(20):
    assert group.sum(mx.nd.ones((100_000,))).asnumpy().max() == size
print("fine")
"""


def test_a_forked_child_is_no_member(tmp_path: pathlib.Path) -> None:
    done = launch(2, FORKED, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("fine") == 2


INTERRUPTED = """
print("ready", flush=True)
if rank == 1:
    time.sleep(30)
group.sum(mx.nd.ones((2,))).asnumpy()
"""


def test_ctrl_c_ends_a_wait(tmp_path: pathlib.Path) -> None:
    import os
    import signal
    import sys

    from launched import HEAD

    path = tmp_path / "program.py"
    path.write_text(HEAD + INTERRUPTED)
    command = [sys.executable, "-m", "hybridnet.launch", "-n", "2", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as launcher:
        assert launcher.stdout is not None
        for _ in range(2):
            assert b"ready" in launcher.stdout.readline()
        time.sleep(0.5)
        begin = time.monotonic()
        os.killpg(launcher.pid, signal.SIGINT)
        launcher.wait(timeout=20)
        assert time.monotonic() - begin < 8
        assert launcher.returncode == 130


RESTARTED = """
attempt = int(os.environ["HYBRIDNET_GROUP_NAME"])
group.barrier()
if attempt == 0 and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
assert group.sum(mx.nd.ones((1,))).asscalar() == size
print("fine", attempt)
"""


def test_the_launcher_starts_all_again_after_a_failure(tmp_path: pathlib.Path) -> None:
    done = launch(2, RESTARTED, tmp_path, "--max-restarts", "1", "--timeout", "5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine 1") == 2
    assert "was killed by signal 9 (SIGKILL)" in done.stderr


def test_the_exit_code_is_that_of_the_first_failure(tmp_path: pathlib.Path) -> None:
    assert launch(2, "sys.exit(3 if rank else 0)", tmp_path).returncode == 3
    assert launch(2, "os.kill(os.getpid(), signal.SIGKILL)", tmp_path).returncode == 128 + 9
    assert launch(1, "print('alone')", tmp_path).returncode == 0


def test_a_killed_launcher_leaves_no_process(tmp_path: pathlib.Path) -> None:
    import signal
    import sys

    from launched import HEAD

    path = tmp_path / "program.py"
    path.write_text(HEAD + "os.write(1, b'%d\\n' % os.getpid())\ntime.sleep(60)")
    command = [sys.executable, "-m", "hybridnet.launch", "-n", "2", "--no-prefix", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        pids = [int(launcher.stdout.readline()) for _ in range(2)]
        launcher.send_signal(signal.SIGKILL)
    for _ in range(100):
        if not any(map(alive, pids)):
            break
        time.sleep(0.05)
    assert not any(map(alive, pids))


# Both processes fail while calls are on their way: neither may hold up its own end.
FAILING = """
y = mx.nd.ones((300_000,))
group.barrier()
for _ in range(3):
    group.sum_into(y)
raise ValueError("of both")
"""


def test_processes_that_fail_during_a_call_end_at_once(tmp_path: pathlib.Path) -> None:
    for _ in range(4):
        begin = time.monotonic()
        done = launch(2, FAILING, tmp_path, "--grace", "20")
        assert done.returncode == 1
        assert "ValueError: of both" in done.stderr
        assert time.monotonic() - begin < 8


LEFT = """
assert group.sum(mx.nd.ones((1,))).asscalar() == size
group.leave("it has finished")
try:
    group.rank()
    raise SystemExit(5)
except mx.errors.GroupError as error:
    assert "has left its group" in str(error), error
print("fine")
"""


def test_a_process_that_has_left_does_not_go_on_alone(tmp_path: pathlib.Path) -> None:
    done = launch(2, LEFT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("fine") == 2


def test_all_output_arrives_however_slow_its_reader_is(tmp_path: pathlib.Path) -> None:
    import sys

    from launched import HEAD

    path = tmp_path / "program.py"
    path.write_text(HEAD + "for i in range(5000):\n    print('line', i, 'x' * 50)")
    command = [sys.executable, "-m", "hybridnet.launch", "-n", "2", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        time.sleep(4)
        assert launcher.stdout is not None
        lines = launcher.stdout.readlines()
        assert launcher.wait(timeout=30) == 0
    assert len(lines) == 10_000


def test_a_second_signal_leaves_no_process_and_no_token(tmp_path: pathlib.Path) -> None:
    import signal
    import sys

    from launched import HEAD

    path = tmp_path / "program.py"
    path.write_text(
        "import signal\nfor number in (signal.SIGINT, signal.SIGTERM):\n    signal.signal(number, signal.SIG_IGN)\n"
        + HEAD
        + "group.barrier()\nprint(os.getpid(), os.environ['HYBRIDNET_GROUP_TOKEN_FILE'], flush=True)\ntime.sleep(60)"
    )
    command = [sys.executable, "-m", "hybridnet.launch", "-n", "2", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        words = [launcher.stdout.readline().split() for _ in range(2)]
        for _ in range(3):
            launcher.send_signal(signal.SIGTERM)
            time.sleep(0.3)
        assert launcher.wait(timeout=30) == 128 + signal.SIGTERM
    assert not any(alive(int(pid)) for _, pid, _ in words)
    assert not pathlib.Path(words[0][2]).parent.exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--virtual-shards", "1"), "--virtual-shards must be at least"),
        (("--threads", "-2"), "--threads must be positive"),
        (("--timeout", "999999999999"), "--timeout must be from 1"),
        (("--grace", "-1"), "--max-restarts and --grace not negative"),
    ],
)
def test_options_that_cannot_be_used_are_said_before_anything_starts(
    options: tuple[str, str], text: str, tmp_path: pathlib.Path
) -> None:
    done = launch(2, "print('never')", tmp_path, *options)
    assert done.returncode == 2
    assert text in done.stderr
    assert "never" not in done.stdout


def test_a_closed_output_ends_the_processes(tmp_path: pathlib.Path) -> None:
    import sys

    from launched import HEAD

    path = tmp_path / "program.py"
    path.write_text(HEAD + "while True:\n    print('x' * 1000, flush=True)")
    command = [sys.executable, "-m", "hybridnet.launch", "-n", "2", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as launcher:
        assert launcher.stdout is not None
        launcher.stdout.readline()
        launcher.stdout.close()
        assert launcher.wait(timeout=30) != 0


# Each process ends right after its last sum, whose values are still on their way.
LAST_SUM = """
x = mx.nd.ones((4_000_000,))
for _ in range(3):
    group.sum_into(x)
    x.wait_to_read()
print("finished", float(x[0].asscalar()))
"""


@needs_limited_network
def test_values_arrive_although_their_sender_has_ended(tmp_path: pathlib.Path) -> None:
    done = launch(2, LAST_SUM, tmp_path, "--threads", "1", "--timeout", "20", around=LIMITED_NETWORK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("finished 8.0") == 2
