"""Version, and locations of the shared library, the C and C++ headers and the CMake package.

``python -m hybridnet.libinfo --cmakedir`` prints the folder for CMake's ``-Dhybridnet_DIR=``;
``c++ -std=c++20 main.cc $(python -m hybridnet.libinfo --cflags --libs)`` compiles without CMake.
This module imports nothing of the package: the build reads ``__version__`` from it.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path

from ._public_names import dir_of

__version__ = "0.2.0"
__all__ = [
    "__version__",
    "compile_flags",
    "find_cmake_path",
    "find_include_path",
    "find_lib_path",
    "find_pkgconfig_path",
    "link_flags",
]

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
    """Returns the paths of ``libhybridnet.so``, best first. Raises RuntimeError if it was not built."""
    return [str(_first_with("libhybridnet.so", _PACKAGE) / "libhybridnet.so")]


def find_include_path() -> str:
    """Returns the folder for the compiler's ``-I``, with ``hybridnet/c_api.h`` and ``hybridnet/cpp/``."""
    return str(_first_with("hybridnet/c_api.h", _PACKAGE / "include", _PACKAGE.parents[1] / "include"))


def find_cmake_path() -> str:
    """Returns the folder of ``hybridnet-config.cmake``, for ``find_package(hybridnet)``."""
    return str(_first_with("hybridnet-config.cmake", _PACKAGE / "cmake", _PACKAGE.parents[1] / "cmake"))


def find_pkgconfig_path() -> str:
    """Returns the folder of ``hybridnet.pc``, for ``pkg-config``."""
    return str(_first_with("hybridnet.pc", _PACKAGE))


def compile_flags() -> list[str]:
    """Returns the compiler flags for the headers. The C++ headers need C++20."""
    return [f"-I{find_include_path()}"]


def link_flags() -> list[str]:
    """Returns the linker flags, with which the program finds the library at its current location."""
    folder = Path(find_lib_path()[0]).parent
    return [f"-L{folder}", "-lhybridnet", f"-Wl,-rpath,{folder}", f"-Wl,-rpath-link,{folder}"]


def main(arguments: list[str] | None = None) -> None:
    """Prints the requested values on one line, flags quoted for a shell."""
    parser = argparse.ArgumentParser(prog="python -m hybridnet.libinfo", description=__doc__)
    answers: list[tuple[str, str, Callable[[], list[str]]]] = [
        ("--version", "version of the library", lambda: [__version__]),
        ("--cmakedir", "folder of the CMake package", lambda: [find_cmake_path()]),
        ("--pkgconfigdir", "folder of hybridnet.pc, for PKG_CONFIG_PATH", lambda: [find_pkgconfig_path()]),
        ("--include", "folder of the headers", lambda: [find_include_path()]),
        ("--lib", "path of libhybridnet.so", lambda: [find_lib_path()[0]]),
        ("--cflags", "flags for the compiler", compile_flags),
        ("--libs", "flags for the linker", link_flags),
    ]
    for option, text, answer in answers:
        parser.add_argument(option, action="append_const", dest="wanted", const=answer, help=text)
    wanted = parser.parse_args(arguments).wanted
    if not wanted:
        parser.error("give at least one of " + ", ".join(option for option, _, _ in answers))
    print(shlex.join(word for answer in wanted for word in answer()))


if __name__ == "__main__":
    main()

__dir__ = dir_of(__name__)
