"""The launcher: options of MXNet's launch.py, addresses of IPv6, processes that are stopped."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import sys
import time

import pytest
from hybridnet._launch_hosts import hosts_of
from launched import launch, lines_of, needs_gloo, run

# A remote shell for tests: it drops the name of the host and runs the rest here.
SHELL = """#!/bin/sh
shift
exec "$@"
"""


@pytest.fixture
def shell(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "shell.sh"
    path.write_text(SHELL)
    path.chmod(0o755)
    return f"{path} {{host}}"


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


HOSTS = {
    "a:2,b:1": ["a", "a", "b"],
    "[fe80::1]:2,b": ["fe80::1", "fe80::1", "b"],
    "[::1]:1,[2001:db8::7]:2": ["", "2001:db8::7", "2001:db8::7"],
    "a slots=2,localhost": ["a", "a", ""],
}


@pytest.mark.parametrize("text", HOSTS)
def test_entries_of_hosts(text: str) -> None:
    assert hosts_of(text, 3) == (HOSTS[text], None)


@pytest.mark.parametrize("text", ["::1:2,b", "[::1:2", "[]:2", "a:-1", "a:1:2"])
def test_wrong_entries_of_hosts_are_named(text: str) -> None:
    found, problem = hosts_of(text, 2)
    assert found == [] and problem is not None and "is not HOST or HOST:PROCESSES" in problem


@needs_gloo
@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_processes_meet_and_connect_by_ipv6(shell: str, tmp_path: pathlib.Path) -> None:
    # Another spelling of ::1, so that the launcher takes it for another machine.
    program = "print(os.environ['HYBRIDNET_GROUP_STORE'], group.sum(mx.nd.ones((2,))).asnumpy().tolist())"
    done = launch(2, program, tmp_path, "-H", "[0:0:0:0:0:0:0:1]:2", "--remote-shell", shell, "--timeout", "20")
    assert done.returncode == 0, done.stderr
    assert [lines_of(done, rank)[0].startswith("tcp://[::1]:") for rank in (0, 1)] == [True, True]
    assert done.stdout.count("[2.0, 2.0]") == 2


@needs_gloo
def test_the_dialect_of_mxnets_launch_py(shell: str, tmp_path: pathlib.Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "train.py").write_text(
        "import os, mxnet as mx\n"
        "kv = mx.kv.create('dist_sync')\n"
        "names = ('DMLC_ROLE', 'DMLC_NUM_WORKER', 'DMLC_NUM_SERVER', 'HERE', 'GIVEN')\n"
        "print('place', kv.rank, kv.num_workers, os.getcwd(), *map(os.environ.get, names), flush=True)\n"
    )
    (source / "hosts").write_text("127.0.0.2\n")
    options = ("-s", "2", "--launcher", "ssh", "-H", "hosts", "--remote-shell", shell, "--sync-dst-dir", str(target))
    before = os.getcwd()
    os.chdir(source)
    try:
        done = run(
            2, *options, "--env-worker", "GIVEN:3", "--env", "HERE", "--env-server", "X:1",
            sys.executable, "-m", "hybridnet.as_mxnet", "train.py", HERE="7",
        )  # fmt: skip
    finally:
        os.chdir(before)
    assert done.returncode == 0, done.stderr
    words = sorted(" ".join(lines_of(done, rank)) for rank in (0, 1))
    assert words == [f"place {rank} 2 {target} worker 2 2 7 3" for rank in (0, 1)]
    assert "-s 2 has no effect" in done.stderr
    shutil.rmtree(target)


def test_a_failed_copy_names_the_machine(tmp_path: pathlib.Path) -> None:
    done = launch(
        2, "print('started')", tmp_path, "-H", "far:2", "--remote-shell", "false {host}", "--sync-dst-dir", "/tmp/x"
    )
    assert done.returncode == 127
    assert "files cannot be copied to far: false far mkdir -p /tmp/x ended with 1" in done.stderr
    assert "started" not in done.stdout


def test_a_process_that_stays_stopped_after_all_others_is_named(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal\nif os.environ['HYBRIDNET_GROUP_RANK'] == '1':\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    begin = time.monotonic()
    done = run(2, "--timeout", "1", str(program), limit=30)
    assert done.returncode == 128 + 9
    assert "rank 1 (pid " in done.stderr and "is stopped (state T) for 1 s; all others have ended" in done.stderr
    assert time.monotonic() - begin < 15


@pytest.mark.slow
def test_a_process_that_is_continued_in_time_is_no_failure(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, subprocess\n"
        "if os.environ['HYBRIDNET_GROUP_RANK'] == '1':\n"
        "    subprocess.Popen(['sh', '-c', f'sleep 0.5; kill -CONT {os.getpid()}'])\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    assert run(2, "--timeout", "5", str(program), limit=30).returncode == 0


@pytest.mark.slow
def test_the_launcher_says_that_it_needs_no_mpi(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('started')")
    done = run(1, "--launcher", "mpi", str(program))
    assert done.returncode == 0 and "MPI is not needed" in done.stderr and "started" in done.stdout
