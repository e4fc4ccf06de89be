"""``python -m hybridnet.as_mxnet``: runs a program in which ``import mxnet`` imports HybridNet."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path

from ..errors import HybridNetError
from ._installation import install, uninstall


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m hybridnet.as_mxnet",
        usage="%(prog)s [-h] (program.py | -m module | --install | --uninstall) [argument ...]",
        description="Runs a program written for MXNet 1.9.1 with HybridNet: `import mxnet` gives HybridNet's modules.",
    )
    parser.add_argument("--install", action="store_true", help="do so in all programs of this environment")
    parser.add_argument("--uninstall", action="store_true", help="take that back")
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, help="run a module, with the arguments behind it"
    )
    parser.add_argument("program", nargs="?", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the program, sys.argv[1:]")
    given = parser.parse_args(words)
    wanted = [given.install, given.uninstall, given.module is not None, given.program is not None]
    if sum(wanted) != 1 or given.module == []:
        parser.error("expected one of: a program, -m with a module, --install, --uninstall")
    if given.program is not None and not Path(given.program).exists():
        parser.error(f"there is no file {given.program!r}")
    return given


def main(words: list[str]) -> None:
    """Executes the command line; the program runs as ``__main__``."""
    given = _arguments(words)
    if given.install or given.uninstall:
        try:
            print(install() if given.install else uninstall())
        except HybridNetError as problem:
            sys.exit(str(problem))
    elif given.module is not None:
        sys.argv = given.module
        sys.path[0] = os.getcwd()
        runpy.run_module(given.module[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [given.program, *given.arguments]
        sys.path[0] = str(Path(given.program).resolve().parent)
        runpy.run_path(given.program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
