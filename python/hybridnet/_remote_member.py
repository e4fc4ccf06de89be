"""Starts a process of a group on another machine, where ``python -m hybridnet._remote_member`` runs.

The launcher runs a remote shell (ssh) and writes one line of JSON to its input: environment, token, folder and command.
The other side starts the command and ends it when its input ends, that is when the launcher or the connection has died.
The token is no part of a command line.
"""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence

__all__ = ["main", "start_remote"]

_END_SECONDS = 5.0  # between SIGTERM and SIGKILL
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl
_FAILED = 127


def start_remote(
    shell: str,
    host: str,
    python: str,
    environment: Mapping[str, str],
    token: bytes,
    folder: str,
    command: Sequence[str],
    pipe: int | None,
) -> subprocess.Popen[bytes]:
    """Starts the command in a folder of a host by a remote shell, a text with {host}; its input stays open.

    Raises OSError.
    """
    words = [word.replace("{host}", host) for word in shlex.split(shell)]
    process = subprocess.Popen(
        [*words, python, "-m", "hybridnet._remote_member"], stdin=subprocess.PIPE, stdout=pipe, stderr=pipe
    )
    order = {
        "environment": dict(environment),
        "token": token.hex(),
        "folder": folder,
        "command": list(command),
    }
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:  # the shell has failed: its exit code and its output say why
        pass
    return process


def _end_when_input_ends(process: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1 << 10):  # no buffer, whose lock would hold up the end of the interpreter
        pass
    if process.poll() is not None:
        return
    process.terminate()
    process.send_signal(signal.SIGCONT)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def main() -> int:
    """Runs the command of the first line of the input; returns its exit code, 128 + N if signal N ended it."""
    with open(0, "rb", buffering=0, closefd=False) as lines:
        order = json.loads(lines.readline())
    parent = os.getpid()

    def end_with_parent() -> None:
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(_FAILED)

    with tempfile.NamedTemporaryFile(prefix="hybridnet-token-") as token:  # mode 0600
        token.write(bytes.fromhex(order["token"]))
        token.flush()
        environment = {**os.environ, **order["environment"], "HYBRIDNET_GROUP_TOKEN_FILE": token.name}
        try:
            process = subprocess.Popen(
                order["command"],
                env=environment,
                cwd=order["folder"],
                stdin=subprocess.DEVNULL,
                preexec_fn=end_with_parent,
            )
        except OSError as error:
            print(f"hybridnet.launch: cannot start {order['command'][0]}: {error.strerror}", file=sys.stderr)
            return _FAILED
        threading.Thread(target=_end_when_input_ends, args=(process,), daemon=True).start()
        code = process.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
