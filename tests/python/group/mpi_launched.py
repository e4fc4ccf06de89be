"""Runs a program in several processes by the mpirun of MPICH and of Open MPI, as ``tools/dev`` installs them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import hybridnet as mx
import pytest
from launched import HEAD

_PACKAGE = pathlib.Path(mx.__file__).parent
_LIBRARIES = {"mpich": "libhybridnet_mpi_mpich.so", "openmpi": "libhybridnet_mpi_ompi.so"}
# More processes than cores, and tests that run as root.
_VARIABLES = {
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PYTHONUNBUFFERED": "",  # the words of a line arrive together
}
ENGINES = tuple(_LIBRARIES)


def mpirun_of(engine: str) -> pathlib.Path:
    """The command of an engine; skips the test if it or the library for it is missing."""
    command = pathlib.Path(sys.prefix) / "mpi" / engine / "bin" / "mpirun"
    if not command.exists():
        pytest.skip(f"no {engine}: {command} does not exist (tools/dev installs it)")
    if not (_PACKAGE / _LIBRARIES[engine]).exists():
        pytest.skip(f"the build found no headers of {engine}")
    return command


def mpirun(
    engine: str,
    processes: int,
    program: str,
    folder: pathlib.Path,
    *arguments: str,
    head: str = HEAD,
    limit: float = 120.0,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Runs the head and the program."""
    path = folder / "program.py"
    path.write_text(head + program)
    command = [str(mpirun_of(engine)), "-n", str(processes), sys.executable, str(path), *arguments]
    return subprocess.run(
        command,
        env={**os.environ, **_VARIABLES, **environment},
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
