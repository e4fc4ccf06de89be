"""Version, and where the shared library, the C and C++ headers and the CMake package lie.

``python -m hybridnet.libinfo --cmakedir`` prints the folder to give CMake as ``-Dhybridnet_DIR=``.
This module imports nothing of the package: the build reads ``__version__`` from it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

__version__ = "0.1.0"
__all__ = ["__version__", "find_cmake_path", "find_include_path", "find_lib_path"]

_PACKAGE = Path(__file__).resolve().parent


def _first_with(file: str, *folders: Path) -> Path:
    for folder in folders:
        if (folder / file).exists():
            return folder
    from .errors import HybridNetError

    tried = ", ".join(str(folder) for folder in folders)
    raise HybridNetError(
        f"hybridnet: expected {file} in one of: {tried}",
        because="the package was not built or was copied without it",
        fix="run `pip install .` or, in a source tree, `tools/dev build`",
    )


def find_lib_path() -> list[str]:
    """Paths of ``libhybridnet.so``, best first. Raises RuntimeError if it was not built."""
    return [str(_first_with("libhybridnet.so", _PACKAGE) / "libhybridnet.so")]


def find_include_path() -> str:
    """Folder to give the compiler as ``-I``: it holds ``hybridnet/c_api.h`` and ``hybridnet/cpp/``."""
    return str(_first_with("hybridnet/c_api.h", _PACKAGE / "include", _PACKAGE.parents[1] / "include"))


def find_cmake_path() -> str:
    """Folder of ``hybridnet-config.cmake``, for ``find_package(hybridnet)``."""
    return str(_first_with("hybridnet-config.cmake", _PACKAGE / "cmake", _PACKAGE.parents[1] / "cmake"))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m hybridnet.libinfo", description=__doc__)
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--version", action="store_const", dest="answer", const=lambda: __version__)
    wanted.add_argument("--cmakedir", action="store_const", dest="answer", const=find_cmake_path)
    wanted.add_argument("--include", action="store_const", dest="answer", const=find_include_path)
    wanted.add_argument("--lib", action="store_const", dest="answer", const=lambda: find_lib_path()[0])
    print(parser.parse_args(arguments).answer())


if __name__ == "__main__":
    main()
