"""Processes that MXNet's launchers start meet by their variables: scheduler, servers and workers run one program."""

from __future__ import annotations

import os
import pathlib
import secrets
import socket
import subprocess
import sys
import threading
import time

import pytest
from hybridnet._meeting_client import enter_meeting
from hybridnet._meeting_server import MeetingServer
from hybridnet.errors import GroupError
from launched import HEAD, needs_gloo

# The same program runs in all roles; only workers print.
WORKER = """
store = mx.kv.create("dist_sync")
store.init(3, mx.nd.ones((4,)) * (store.rank + 5))
store.push(3, mx.nd.ones((4,)) * (store.rank + 1))
out = mx.nd.zeros((4,))
store.pull(3, out=out)
print("rank", store.rank, "of", store.num_workers, "has", out.asnumpy().tolist(), flush=True)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def token(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "token"
    path.write_bytes(secrets.token_bytes(32))
    path.chmod(0o600)
    return str(path)


class Job:
    """Starts the processes of a job as MXNet's tools/launch.py does."""

    def __init__(self, folder: pathlib.Path, program: str, workers: int, command: tuple[str, ...] = ()) -> None:
        self.path = folder / "train.py"
        self.path.write_text(program)
        self.command = command
        self.common = {
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": "1",
            "DMLC_PS_ROOT_URI": "127.0.0.1",
            "DMLC_PS_ROOT_PORT": str(free_port()),
            "HYBRIDNET_GROUP_TIMEOUT": "20",
        }

    def start(self, role: str, **more: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HYBRIDNET_GROUP_")}
        return subprocess.Popen(
            [sys.executable, *self.command, str(self.path)],
            env={**environment, **self.common, "DMLC_ROLE": role, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def ends(process: subprocess.Popen[str], limit: float = 60.0) -> tuple[int, str, str]:
    try:
        out, error = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, error


@needs_gloo
@pytest.mark.parametrize("numbered", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_three_roles_of_one_program_train_together(numbered: bool, token: str, tmp_path: pathlib.Path) -> None:
    job = Job(tmp_path, HEAD + WORKER, 3)
    secret = {"HYBRIDNET_GROUP_TOKEN_FILE": token}
    workers = [job.start("worker", **secret, **({"DMLC_WORKER_ID": str(i)} if numbered else {})) for i in (2, 0, 1)]
    others = [job.start("server"), job.start("scheduler", **secret)]
    done = [ends(process) for process in (*workers, *others)]
    assert [code for code, _, _ in done] == [0] * 5, done
    lines = [out.split() for _, out, _ in done[:3]]
    assert sorted(line[1] for line in lines) == ["0", "1", "2"]
    assert {tuple(line[2:]) for line in lines} == {("of", "3", "has", "[6.0,", "6.0,", "6.0,", "6.0]")}
    if numbered:
        assert [line[1] for line in lines] == ["2", "0", "1"]
    assert [out for _, out, _ in done[3:]] == ["", ""]
    assert "there are no servers" in done[3][2]
    assert "serves the meeting of 3 workers" in done[4][2]


@needs_gloo
def test_an_old_program_meets_by_as_mxnet(token: str, tmp_path: pathlib.Path) -> None:
    program = (
        "import mxnet as mx\nkv = mx.kvstore.create('dist_device_sync')\nprint('place', kv.rank, kv.num_workers)\n"
    )
    job = Job(tmp_path, program, 2, ("-m", "hybridnet.as_mxnet"))
    started = [
        job.start(role, HYBRIDNET_GROUP_TOKEN_FILE=token) for role in ("worker", "worker", "server", "scheduler")
    ]
    done = [ends(process) for process in started]
    assert [code for code, _, _ in done] == [0] * 4, done
    assert sorted(out for _, out, _ in done) == ["", "", "place 0 2\n", "place 1 2\n"]


@needs_gloo
@pytest.mark.slow
def test_the_scheduler_ends_after_workers_that_were_killed(token: str, tmp_path: pathlib.Path) -> None:
    program = (
        HEAD + "print('joined', flush=True)\nif rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\ngroup.barrier()\n"
    )
    job = Job(tmp_path, program, 2)
    started = [job.start(role, HYBRIDNET_GROUP_TOKEN_FILE=token) for role in ("worker", "worker", "scheduler")]
    codes = [ends(process)[0] for process in started]
    assert sorted(codes[:2]) == [-9, 1]
    assert codes[2] == 0


@needs_gloo
def test_a_secret_is_required_and_the_error_says_how_to_make_one(token: str, tmp_path: pathlib.Path) -> None:
    job = Job(tmp_path, HEAD + WORKER, 2)
    for role in ("worker", "scheduler"):
        code, _, error = ends(job.start(role))
        assert code == 1
        assert "have no common secret" in error
        assert "head -c 32 /dev/urandom > token; chmod 600 token" in error
    os.chmod(token, 0o640)
    code, _, error = ends(job.start("worker", HYBRIDNET_GROUP_TOKEN_FILE=token))
    assert code == 1 and "may be read by others" in error


@needs_gloo
@pytest.mark.slow
def test_workers_that_do_not_come_are_counted(token: str, tmp_path: pathlib.Path) -> None:
    job = Job(tmp_path, HEAD, 3)
    job.common["HYBRIDNET_GROUP_TIMEOUT"] = "4"
    started = [job.start(role, HYBRIDNET_GROUP_TOKEN_FILE=token) for role in ("scheduler", "worker", "worker")]
    done = [ends(process) for process in started]
    assert [code for code, _, _ in done] == [1, 1, 1], done
    assert "1 of 3 workers did not come to the meeting" in done[0][2]
    assert "rank 2 of 3 did not come to the meeting" in done[1][2] + done[2][2]


VARIABLES = {
    "no address": ({"DMLC_PS_ROOT_URI": ""}, "does not know where to meet the others"),
    "no port": ({"DMLC_PS_ROOT_PORT": ""}, "DMLC_PS_ROOT_PORT"),
    "wrong role": ({"DMLC_ROLE": "master"}, "expected worker, server, scheduler, got 'master'"),
    "wrong count": ({"DMLC_NUM_WORKER": "two"}, "DMLC_NUM_WORKER"),
    "wrong number": ({"DMLC_WORKER_ID": "2"}, "expected a number from 0 to 1, got '2'"),
    "no scheduler": ({"HYBRIDNET_GROUP_TIMEOUT": "1"}, "did not answer within 1 s"),
}


@needs_gloo
@pytest.mark.parametrize(
    "name", ["no address", *(pytest.param(name, marks=pytest.mark.slow) for name in VARIABLES if name != "no address")]
)
def test_wrong_variables_are_named(name: str, token: str, tmp_path: pathlib.Path) -> None:
    changed, text = VARIABLES[name]
    job = Job(tmp_path, "import hybridnet as mx\nmx.kv.create('dist_sync')\n", 2)
    code, _, error = ends(job.start("worker", HYBRIDNET_GROUP_TOKEN_FILE=token, **changed))
    assert code == 1 and text in " ".join(error.split()), error


def test_one_worker_alone_needs_no_meeting(tmp_path: pathlib.Path) -> None:
    job = Job(tmp_path, HEAD + WORKER, 1)
    assert [ends(job.start(role))[:2] for role in ("worker", "scheduler")] == [
        (0, "rank 0 of 1 has [1.0, 1.0, 1.0, 1.0]\n"),
        (0, ""),
    ]


def test_places_are_given_once() -> None:
    secret = b"t" * 32
    server = MeetingServer(secret, members=3)
    try:
        first = enter_meeting(secret, server.address, server.port, 1, 5)
        anywhere = [enter_meeting(secret, server.address, server.port, -1, 5) for _ in range(2)]
        assert [first[0], *(place for place, _ in anywhere)] == [1, 0, 2]
        with pytest.raises(GroupError, match="the number 1 is taken"):
            enter_meeting(secret, server.address, server.port, 1, 5)
        with pytest.raises(GroupError, match="all numbers are taken"):
            enter_meeting(secret, server.address, server.port, -1, 5)
        with pytest.raises(GroupError, match="another token"):
            enter_meeting(b"u" * 32, server.address, server.port, -1, 5)
        assert server.members.wait_for_all(0) == []
        waiting = threading.Thread(target=server.members.wait_for_end)
        waiting.start()
        for _, connection in (first, *anywhere):
            assert waiting.is_alive()
            connection.close()
        waiting.join(timeout=5)
        assert not waiting.is_alive()
    finally:
        server.close()


def test_a_program_that_is_no_meeting_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        answer = threading.Thread(target=lambda: other.accept()[0].sendall(b"HTTP/1.1 400 Bad Request " * 4))
        answer.start()
        begin = time.monotonic()
        with pytest.raises(GroupError, match="another program answers there"):
            enter_meeting(b"t" * 32, "127.0.0.1", other.getsockname()[1], -1, 30)
        assert time.monotonic() - begin < 5
        answer.join()
