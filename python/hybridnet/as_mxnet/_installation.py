"""Installs HybridNet as ``mxnet`` for every program of the environment, and uninstalls it."""

from __future__ import annotations

import importlib.metadata
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path

from ..errors import FileError
from ..errors import ImportError as HybridNetImportError
from . import IMPORT_PATH

__all__ = ["install", "uninstall"]


def _path_file() -> Path:
    """Returns the file that extends sys.path of all programs of this environment."""
    return Path(sysconfig.get_path("purelib")) / "hybridnet_as_mxnet.pth"


def _real_mxnet() -> str | None:
    """Returns the place of another installed mxnet; None if there is none."""
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    spec = PathFinder.find_spec("mxnet", folders)
    if spec is not None and spec.origin:
        return spec.origin
    for distribution in importlib.metadata.distributions(path=folders):
        name = distribution.metadata["Name"] or ""
        if name == "mxnet" or name.startswith("mxnet-cu"):
            return f"{name} {distribution.version} in {distribution.locate_file('')}"
    return None


def install() -> str:
    """Writes the file; returns a text about the change. Raises ImportError if MXNet itself is installed."""
    real = _real_mxnet()
    if real is not None:
        raise HybridNetImportError(
            "as_mxnet --install: MXNet itself is installed in this environment",
            because=f"it was found as {real}, and programs would get that one",
            fix="`pip uninstall mxnet`, or use another environment, or run single programs by "
            "`python -m hybridnet.as_mxnet program.py`",
        )
    file = _path_file()
    try:
        file.write_text(f"{IMPORT_PATH}\n", encoding="utf-8")
    except OSError as problem:
        raise FileError(
            f"as_mxnet --install: cannot write {str(file)!r}",
            because=problem.strerror or str(problem),
            fix="make a virtual environment with `python -m venv`, where you may write",
        ) from None
    return f"`import mxnet` gives HybridNet in this environment now: {file}"


def uninstall() -> str:
    """Removes the file; returns a text about the change."""
    file = _path_file()
    try:
        file.unlink()
    except FileNotFoundError:
        return f"nothing to remove: there is no {file}"
    except OSError as problem:
        raise FileError(f"as_mxnet --uninstall: cannot remove {str(file)!r}", because=problem.strerror) from None
    return f"removed {file}"
