#!/usr/bin/env python3
"""Checks a built wheel: it is small enough, and it imports and computes after it is unpacked in another folder.

Usage: check_wheel.py dist/hybridnet-….whl
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

OTHERS = ("libdnnl", "libscipy_openblas")
MAX_OWN_BYTES = 20_000_000  # everything except oneDNN and OpenBLAS
MAX_ALL_BYTES = 105_000_000
WANTED = (
    "libhybridnet.so",
    "libhnteam.so",
    "libdnnl.so.3",
    "libscipy_openblas.so",
    "libscipy_openblas.LICENSE.txt",
    "libinfo.py",
    "as_mxnet/_import_path/mxnet.py",
    "as_mxnet/_import_path/horovod.py",
    "include/hybridnet/c_api.h",
    "cmake/hybridnet-config.cmake",
)
PROGRAM = """
import hybridnet as mx
a = mx.nd.ones((2, 3))
assert (a + a).asnumpy().tolist() == [[2.0] * 3] * 2
assert mx.np.linalg.det(4 * mx.np.eye(64, dtype="float64")).item() == 4.0**64
assert mx.libinfo.find_include_path() and mx.libinfo.find_cmake_path()
print(mx.__file__)
"""


def problems_of(wheel: Path) -> list[str]:
    """The problems of the wheel, as sentences; empty if there are none."""
    problems = []
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        package = Path(folder) / "hybridnet"
        problems += [f"hybridnet/{name} is missing" for name in WANTED if not (package / name).exists()]

        sizes = {file: file.stat().st_size for file in package.rglob("*") if file.is_file()}
        everything = sum(sizes.values())
        own = sum(size for file, size in sizes.items() if not file.name.startswith(OTHERS))
        packed = wheel.stat().st_size
        print(f"{wheel.name}: {packed / 1e6:.1f} MB; installed {everything / 1e6:.1f} MB, {own / 1e6:.1f} of them own")
        if own > MAX_OWN_BYTES:
            problems.append(
                f"without oneDNN and OpenBLAS it takes {own / 1e6:.1f} MB; the budget is {MAX_OWN_BYTES / 1e6:.0f} MB"
            )
        if everything > MAX_ALL_BYTES:
            problems.append(f"installed it takes {everything / 1e6:.1f} MB; the budget is {MAX_ALL_BYTES / 1e6:.0f} MB")

        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=folder, env={"PYTHONPATH": folder}, capture_output=True, text=True
        )
        if run.returncode != 0:
            problems.append(f"it does not run where it was unpacked:\n{run.stderr}")
        elif not run.stdout.startswith(folder):
            problems.append(f"the test ran {run.stdout.strip()}, not the wheel")
    return problems


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = problems_of(Path(sys.argv[1]))
    for problem in found:
        print(f"check_wheel: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
