"""Runs a program in several processes by ``python -m hybridnet.launch``."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence

import hybridnet as mx
import pytest

LIBRARY = pathlib.Path(mx.__file__).parent / "libhybridnet_gloo.so"
needs_gloo = pytest.mark.skipif(not LIBRARY.exists(), reason="the build found no Gloo (libgloo-dev)")

# A network of its own, whose loopback device has a limited rate and drops what exceeds its queue.
LIMITED_NETWORK = [
    "unshare",
    "-n",
    "sh",
    "-c",
    'ip link set lo up && tc qdisc add dev lo root tbf rate 1gbit burst 512kb latency 200ms && exec "$@"',
    "sh",
]


def _can_limit() -> bool:
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("unshare", "ip", "tc")):
        return False
    return subprocess.run([*LIMITED_NETWORK, "true"], capture_output=True, check=False).returncode == 0


needs_limited_network = pytest.mark.skipif(
    not _can_limit(), reason="limits of a network need root, unshare, ip and tc (iproute2)"
)

HEAD = """
import os, signal, sys, time
import numpy as np
import hybridnet as mx
from hybridnet import autograd, gluon, group
rank, size = group.rank(), group.size()
"""


def launch(
    processes: int,
    program: str,
    folder: pathlib.Path,
    *options: str,
    arguments: tuple[str, ...] = (),
    limit: float = 120.0,
    around: Sequence[str] = (),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs HEAD and the program; the launcher's options come before its name, the arguments after it."""
    path = folder / "program.py"
    path.write_text(HEAD + program)
    return run(processes, *options, str(path), *arguments, limit=limit, around=around, **environment)


def run(
    processes: int, *arguments: str, limit: float = 120.0, around: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs the launcher, by the command `around` if it is given."""
    command = [*around, sys.executable, "-m", "hybridnet.launch", "-n", str(processes), *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=limit, check=False
    )


def lines_of(done: subprocess.CompletedProcess[str], rank: int) -> list[str]:
    """The lines that a rank printed to either stream, without the prefix of the launcher."""
    prefix = f"[{rank}] "
    return [line[len(prefix) :] for line in (done.stdout + done.stderr).splitlines() if line.startswith(prefix)]
