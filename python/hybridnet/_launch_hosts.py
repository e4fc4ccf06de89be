"""The machines of a job: the entries of -H, and copies of the program's folder on them."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterable, Sequence

__all__ = ["copy_folder", "hosts_of", "is_plain_path", "own_address"]

# HOST, HOST:PROCESSES, "HOST slots=PROCESSES"; addresses of IPv6 stand in brackets.
_ENTRY = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^\[\]:\s]+))(?::(?P<count>[1-9][0-9]*))?")
_COPY_SECONDS = 600.0


class _CopyError(OSError):
    """The files of a program could not be copied to another machine."""


def _host_lines(hosts: str) -> list[str]:
    """Returns the entries of -H: a list, as for horovodrun, or a file, as for MXNet's launch.py."""
    if not os.path.isfile(hosts):
        return hosts.split(",")
    with open(hosts, encoding="utf-8") as file:
        return [text for line in file if (text := line.partition("#")[0].strip())]


def _is_this_machine(host: str) -> bool:
    name = socket.gethostname()
    return host in {"localhost", "127.0.0.1", "::1", name, name.partition(".")[0]} or host == socket.getfqdn()


def own_address(host: str, port: int = 9) -> str:
    """The address from which this machine reaches a host. Raises OSError."""
    family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(place)  # sends nothing
        return str(probe.getsockname()[0])


def hosts_of(hosts: str | None, processes: int) -> tuple[list[str], str | None]:
    """Returns the host of each process, "" being this machine, and the reason if -H cannot be used."""
    if hosts is None:
        return [""] * processes, None
    found: list[str] = []
    for entry in _host_lines(hosts):
        parts = _ENTRY.fullmatch(entry.replace(" slots=", ":").strip())
        if parts is None:
            hint = "; write an address of IPv6 in brackets: [::1]:2" if entry.count(":") > 1 else ""
            return [], f"-H: {entry!r} is not HOST or HOST:PROCESSES{hint}"
        host = parts["six"] or parts["host"]
        found += ["" if _is_this_machine(host) else host] * int(parts["count"] or processes)
    if len(found) < processes:
        return [], f"-H has {len(found)} slots, fewer than the {processes} processes of -n"
    return found[:processes], None


def is_plain_path(path: str) -> bool:
    """Whether a path means the same for every remote shell: it has no characters that shells treat specially."""
    return re.fullmatch(r"/[\w./+-]*", path) is not None


def copy_folder(shell: str, hosts: Iterable[str], target: str) -> None:
    """Copies the files of the current folder into a folder on the hosts, by tar through the remote shell.

    Raises OSError with the host and the exit code of a copy that failed.
    """
    for host in dict.fromkeys(filter(None, hosts)):
        words = [word.replace("{host}", host) for word in shlex.split(shell)]
        _run([*words, "mkdir", "-p", target], host)
        with subprocess.Popen(["tar", "-czf", "-", "."], stdout=subprocess.PIPE) as files:
            try:
                _run([*words, "tar", "-xzf", "-", "-C", target], host, files.stdout)
            finally:
                files.kill()
        if files.returncode > 0:
            raise _CopyError(files.returncode, "tar cannot read the files of this folder")


def _run(command: Sequence[str], host: str, source: object = subprocess.DEVNULL) -> None:
    try:
        code = subprocess.run(command, stdin=source, timeout=_COPY_SECONDS, check=False).returncode  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        raise _CopyError(1, f"copying files to {host} took more than {_COPY_SECONDS:.0f} s") from None
    if code != 0:
        raise _CopyError(code, f"files cannot be copied to {host}: {shlex.join(command)} ended with {code}")
