"""Starts the processes of a group on this machine: ``python -m hybridnet.launch -n 4 train.py [arguments]``.

A program that is no .py file is run as it is. Each process finds its place in the environment (HYBRIDNET_GROUP_*) and
joins by ``mx.group`` or ``kvstore="dist_sync"``. If one fails, the others are stopped; ``--max-restarts`` starts all
again. The exit code is that of the process that failed first; 128 + N if signal N ended it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ._launch_hosts import copy_folder, hosts_of, is_plain_path, own_address
from ._launch_output import Reader
from ._meeting_server import MeetingServer
from ._public_names import dir_of
from ._remote_member import start_remote

__all__ = ["main"]

_POLL_SECONDS = 0.02
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_END_SECONDS = 5.0  # between SIGTERM and SIGKILL
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl


@dataclass
class _Job:
    """One attempt: its secret, its meeting, and the host of each process ("": this machine)."""

    folder: str
    token: bytes
    hosts: list[str]
    server: MeetingServer | None


@dataclass
class _Member:
    rank: int
    process: subprocess.Popen[bytes]
    readers: list[Reader]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hybridnet.launch",
        description=__doc__.partition("\n\n")[0] if __doc__ else None,
        epilog="The options of the program follow its name.",
    )
    parser.add_argument(
        *("-n", "-np", "--processes", "--num-proc", "--num-workers"), dest="processes", type=int, required=True,
        help="number of processes",
    )  # fmt: skip
    parser.add_argument(
        "-H", "--hosts", "--hostfile", help="machines: HOST:PROCESSES,HOST:PROCESSES, or a file of such lines"
    )
    parser.add_argument("--launcher", default="local", help="local, or ssh (mpi): the other machines of -H by ssh")
    parser.add_argument(
        "--sync-dst-dir", help="folder on the other machines that gets a copy of this one's files first"
    )
    parser.add_argument("--env", action="append", default=[], help="variable for the other machines, or NAME=VALUE")
    parser.add_argument("--env-worker", action="append", default=[], help="NAME:VALUE, a variable of the processes")
    parser.add_argument("--env-server", action="append", default=[], help="accepted for scripts of MXNet, as -s")
    parser.add_argument("--remote-shell", help="command that reaches a machine (default with ssh: 'ssh {host}')")
    parser.add_argument("--remote-python", default=sys.executable, help="Python on the other machines")
    parser.add_argument("--address", help="address of this machine for the others (default: the one that reaches them)")
    parser.add_argument(
        "-s", "--num-servers", type=int, default=0, help="accepted for scripts of MXNet: no servers are started"
    )
    parser.add_argument("--max-restarts", type=int, default=0, help="how often all are started again after a failure")
    parser.add_argument("--timeout", type=int, help="seconds that a process waits for another one (default 60)")
    parser.add_argument("--virtual-shards", type=int, default=0, help="parts of sums (default: one for each process)")
    parser.add_argument("--threads", type=int, help="cores of each process (default: those of the machine, shared)")
    parser.add_argument("--grace", type=float, default=5.0, help="seconds for the others to end after a failure")
    parser.add_argument("--no-prefix", action="store_true", help="print output without the rank before each line")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is the name of a Python module")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _problem(options: argparse.Namespace) -> str | None:
    """Returns the reason why the options cannot be used; None if they can."""
    if options.processes < 1 or options.max_restarts < 0 or options.grace < 0:
        return "-n must be positive, --max-restarts and --grace not negative"
    if options.timeout is not None and not 1 <= options.timeout <= 1_000_000:
        return "--timeout must be from 1 to 1000000 seconds"
    if options.threads is not None and options.threads < 1:
        return "--threads must be positive"
    if options.virtual_shards != 0 and options.virtual_shards < options.processes:
        return "--virtual-shards must be at least the number of processes"
    if (
        options.program.endswith(".py")
        and not options.module
        and not options.hosts
        and not os.path.isfile(options.program)
    ):
        return f"there is no file {options.program}"
    if options.launcher not in ("local", "ssh", "mpi"):
        return f"--launcher: {options.launcher} is not local, ssh or mpi"
    if options.sync_dst_dir is not None and not is_plain_path(options.sync_dst_dir):
        return (
            f"--sync-dst-dir: {options.sync_dst_dir!r} is no absolute path of letters, digits and the signs . _ - + /"
        )
    for given in (*options.env, *options.env_worker):
        if not re.match(r"[A-Za-z_]\w*([=:]|$)", given):
            return f"--env: {given!r} is not NAME, NAME=VALUE or NAME:VALUE"
    hosts, problem = hosts_of(options.hosts, options.processes)
    if problem:
        return problem
    if any(hosts) and options.launcher == "local" and options.remote_shell is None:
        return f"-H: {next(filter(None, hosts))!r} is not this machine: add --launcher ssh"
    return None


def _command(options: argparse.Namespace) -> list[str]:
    program = [options.program, *options.arguments]
    if options.module:
        return [sys.executable, "-m", *program]
    return [sys.executable, *program] if options.program.endswith(".py") else program


def _say(text: str) -> None:
    print(f"hybridnet.launch: {text}", file=sys.stderr, flush=True)


def _end_with_parent() -> None:
    """Runs in each process before its program: it ends if the launcher is killed."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _variables(options: argparse.Namespace) -> dict[str, str]:
    """The variables that the options name, with their values."""
    found: dict[str, str] = {}
    for given in (*options.env, *options.env_worker):
        name, sign, value = re.match(r"(\w+)([=:]?)(.*)", given, re.DOTALL).groups()  # type: ignore[union-attr]
        if sign or name in os.environ:
            found[name] = value if sign else os.environ[name]
    return found


def _environment(options: argparse.Namespace, folder: str, attempt: int) -> dict[str, str]:
    environment = {
        **os.environ,
        **_variables(options),
        # Programs of MXNet read these.
        "DMLC_ROLE": "worker",
        "DMLC_NUM_WORKER": str(options.processes),
        "DMLC_NUM_SERVER": str(options.num_servers),
        "HYBRIDNET_GROUP_SIZE": str(options.processes),
        "HYBRIDNET_GROUP_STORE": f"folder:{folder}",
        "HYBRIDNET_GROUP_TOKEN_FILE": os.path.join(folder, ".token"),
        "HYBRIDNET_GROUP_NAME": str(attempt),
        "HYBRIDNET_GROUP_SHARDS": str(options.virtual_shards),
    }
    if options.threads:
        environment["HYBRIDNET_NUM_THREADS"] = str(options.threads)
    if options.timeout:
        environment["HYBRIDNET_GROUP_TIMEOUT"] = str(options.timeout)
    return environment


def _start(options: argparse.Namespace, job: _Job, attempt: int) -> list[_Member]:
    environment = _environment(options, job.folder, attempt)
    if job.server is not None:
        host = f"[{job.server.address}]" if ":" in job.server.address else job.server.address
        environment["HYBRIDNET_GROUP_STORE"] = f"tcp://{host}:{job.server.port}"
        environment["HYBRIDNET_GROUP_ADDRESS"] = str(job.server.address)
    members: list[_Member] = []
    pipe = None if options.no_prefix else subprocess.PIPE
    try:
        for rank, host in enumerate(job.hosts):
            place = {
                "HYBRIDNET_GROUP_RANK": str(rank),
                "DMLC_WORKER_ID": str(rank),
                "HYBRIDNET_GROUP_LOCAL_RANK": str(job.hosts[:rank].count(host)),
                "HYBRIDNET_GROUP_LOCAL_SIZE": str(job.hosts.count(host)),
            }
            if not environment.get("HYBRIDNET_NUM_THREADS"):  # other machines have as many cores as this one, probably
                place["HYBRIDNET_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // job.hosts.count(host)))
            if host:
                names = ("HYBRIDNET_", "DMLC_", "OMP_", "PYTHONPATH", "PYTHONUNBUFFERED")
                sent = {key: value for key, value in environment.items() if key.startswith(names)}
                sent |= _variables(options)
                sent |= {**place, "HYBRIDNET_GROUP_ADDRESS": host}
                command = [options.remote_python if word == sys.executable else word for word in _command(options)]
                folder = options.sync_dst_dir or os.getcwd()
                process = start_remote(
                    options.remote_shell, host, options.remote_python, sent, job.token, folder, command, pipe
                )
            else:
                process = subprocess.Popen(
                    _command(options),
                    env={**environment, **place},
                    stdin=None if rank == 0 else subprocess.DEVNULL,
                    stdout=pipe,
                    stderr=pipe,
                    preexec_fn=_end_with_parent,
                )
            readers = [
                Reader(source, target, f"[{rank}] ".encode())
                for source, target in ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer))
                if source is not None
            ]
            members.append(_Member(rank, process, readers))
    except OSError:
        _end(members)
        raise
    return members


def _wait(members: Sequence[_Member], seconds: float) -> bool:
    """Waits until all have ended, at most so long."""
    end = time.monotonic() + seconds
    while any(member.process.poll() is None for member in members):
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _seconds_of(options: argparse.Namespace) -> float:
    """How long a process may wait for another one."""
    given = os.environ.get("HYBRIDNET_GROUP_TIMEOUT", "")
    return float(options.timeout or (int(given) if given.isdecimal() else 0) or 60)


def _is_stopped(member: _Member) -> bool:
    """Whether a signal has stopped the process; not for one on another machine, or in a debugger."""
    try:
        with open(f"/proc/{member.process.pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"T"]
    except OSError:
        return False


def _first_failure(members: Sequence[_Member], seconds: float) -> _Member | None:
    """Waits until all have ended with 0, then returns None; or until one has failed.

    A process that is stopped for so long after all others have ended has failed, and is killed: no process waits for it
    that would name it.
    """
    stopped_since: float | None = None
    while True:
        running = [member for member in members if member.process.poll() is None]
        failed = next((member for member in members if member.process.returncode), None)
        if failed is not None or not running:
            return failed
        if len(running) == len(members) or not all(map(_is_stopped, running)):
            stopped_since = None
        elif stopped_since is None:
            stopped_since = time.monotonic()
        elif time.monotonic() - stopped_since > seconds:
            pid = running[0].process.pid
            _say(f"rank {running[0].rank} (pid {pid}) is stopped (state T) for {seconds:.0f} s; all others have ended")
            running[0].process.kill()
            running[0].process.wait(_END_SECONDS)
        time.sleep(_POLL_SECONDS)


def _end(members: Sequence[_Member], grace: float = 0.0) -> None:
    """Ends all processes: after the grace by SIGTERM, then by SIGKILL; stopped ones, too."""
    if _wait(members, grace):
        return
    for member in members:
        if member.process.poll() is None:
            member.process.send_signal(signal.SIGTERM)
            member.process.send_signal(signal.SIGCONT)
    if not _wait(members, _END_SECONDS):
        for member in members:
            if member.process.poll() is None:
                member.process.kill()
        _wait(members, _END_SECONDS)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was killed by signal {-code} ({known.get(-code, 'a real-time signal')})"


def _run(options: argparse.Namespace, attempt: int) -> int:
    """Runs the program once; returns 0, or the exit code of the process that failed first."""
    folder = tempfile.mkdtemp(prefix="hybridnet-group-")  # mode 0700
    begin = time.monotonic()
    members: list[_Member] = []
    server: MeetingServer | None = None
    try:
        descriptor = os.open(os.path.join(folder, ".token"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        job = _Job(folder, secrets.token_bytes(32), hosts_of(options.hosts, options.processes)[0], None)
        with os.fdopen(descriptor, "wb") as file:
            file.write(job.token)
        if remote := next(filter(None, job.hosts), None):
            job.server = server = MeetingServer(job.token, options.address or own_address(remote))
        members = _start(options, job, attempt)
        failed = _first_failure(members, _seconds_of(options))
        if failed is None:
            return 0
        _say(
            f"rank {failed.rank} (pid {failed.process.pid}) {_how_it_ended(failed.process.returncode)} after "
            f"{time.monotonic() - begin:.1f} s; the others are stopped"
        )
        code = failed.process.returncode
        _end(members, options.grace)
        return code if code > 0 else 128 - code
    finally:
        for number in _STOPS:  # a second signal must not interrupt this
            signal.signal(number, signal.SIG_IGN)
        _end(members)
        for member in members:
            for reader in member.readers:
                reader.finish()
        if server is not None:
            server.close()
        shutil.rmtree(folder, ignore_errors=True)
        for number in _STOPS:
            signal.signal(number, _stop)


class _StoppedError(KeyboardInterrupt):
    """The launcher got this signal."""


def _stop(number: int, frame: object) -> None:
    raise _StoppedError(number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if problem := _problem(options):
        parser.error(problem)
    if options.num_servers > 0:
        _say(f"-s {options.num_servers} has no effect: there are no servers, each process updates its parameters")
    if options.launcher == "mpi":
        _say("--launcher mpi: MPI is not needed; other machines are reached as by --launcher ssh")
    options.remote_shell = options.remote_shell or "ssh {host}"
    for number in _STOPS:
        signal.signal(number, _stop)
    attempt = 0
    try:
        if options.sync_dst_dir is not None:
            try:
                copy_folder(options.remote_shell, hosts_of(options.hosts, options.processes)[0], options.sync_dst_dir)
            except OSError as error:
                _say(error.strerror or str(error))
                return 127
        while True:
            try:
                code = _run(options, attempt)
            except OSError as error:
                _say(f"cannot start {options.program}: {error.strerror}")
                return 127
            if code == 0 or attempt == options.max_restarts:
                return code
            attempt += 1
            _say(f"restart {attempt} of {options.max_restarts}")
    except KeyboardInterrupt as stopped:
        number = stopped.args[0] if stopped.args else signal.SIGINT
        return 128 + int(number)


__dir__ = dir_of(__name__)

if __name__ == "__main__":
    sys.exit(main())
