"""Prints the paths of the build dependencies from PyPI, one ``NAME=path`` line each, for CMakeLists.txt.

Packages are looked up through their installation records, not through a prefix, so that virtual environments, user
installs and the isolated environments of ``pip install`` are all found.
"""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

ONEDNN = "onednn-devel-cpu-gomp"
ONEDNN_VERSION = "2023.2.0"
OPENBLAS = "scipy-openblas32"
WANTED = {  # CMake variable: (distribution, end of the file's path, levels to go up)
    "HYBRIDNET_PYBIND11_INCLUDE": ("pybind11", "pybind11/include/pybind11/pybind11.h", 2),
    "HYBRIDNET_JSON_INCLUDE": ("nlohmann-json", "include/nlohmann/json.hpp", 2),
    "HYBRIDNET_DNNL_INCLUDE": (ONEDNN, "include/dnnl.hpp", 1),
    "HYBRIDNET_DNNL_LIBRARY": ("onednn-cpu-gomp", "libdnnl.so.3", 0),
    "HYBRIDNET_OPENBLAS_LIBRARY": (OPENBLAS, "libscipy_openblas.so", 0),
    "HYBRIDNET_OPENBLAS_LICENSE": (OPENBLAS, "licenses/LICENSE.txt", 0),
}


def locate(distribution: str, suffix: str, levels_up: int) -> Path:
    """Absolute path of the distribution's file ending in suffix, or of its levels_up-th parent.

    Raises LookupError if the distribution is missing or has no such file.
    """
    try:
        record = importlib.metadata.distribution(distribution)
    except importlib.metadata.PackageNotFoundError:
        raise LookupError(f"Python package {distribution} is not installed") from None
    for file in record.files or []:
        if ("/" + file.as_posix()).endswith("/" + suffix):
            path = Path(str(record.locate_file(file))).resolve().parent / Path(suffix).name
            for _ in range(levels_up):
                path = path.parent
            return path
    raise LookupError(f"Python package {distribution} {record.version} holds no file {suffix}")


def main() -> int:
    missing = []
    for variable, (distribution, suffix, levels_up) in WANTED.items():
        try:
            print(f"{variable}={locate(distribution, suffix, levels_up)}")
        except LookupError as problem:
            missing.append(str(problem))
    if missing:
        print(
            "; ".join(missing)
            + f".\nFix: {sys.executable} -m pip install pybind11 nlohmann-json {ONEDNN}=={ONEDNN_VERSION} {OPENBLAS}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
