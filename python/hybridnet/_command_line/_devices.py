"""The device of a command: --ctx."""

from __future__ import annotations

import argparse

from ..context import Context, cpu, gpu, num_gpus
from ..errors import ParamError, UnsupportedError
from ..runtime import why_no_gpu

__all__ = ["add_context_argument", "context_of"]


def add_context_argument(parser: argparse.ArgumentParser) -> None:
    """Adds --ctx."""
    parser.add_argument(
        "--ctx", default="cpu", metavar="cpu|gpu[:N]", help="the device that runs the model; default cpu"
    )


def context_of(options: argparse.Namespace) -> Context:
    """Returns the device of --ctx; the CPU for commands without it.

    Raises ParamError for text that names no device, UnsupportedError with the reason if the GPU does not exist.
    """
    text: str = getattr(options, "ctx", "cpu")
    kind, colon, number = text.partition(":")
    if kind not in ("cpu", "gpu") or (colon and not (kind == "gpu" and number.isdecimal())):
        raise ParamError(f"--ctx {text!r}", expected="cpu, gpu or gpu:N with the number of the GPU", given=repr(text))
    if kind == "cpu":
        return cpu()
    wanted, count = gpu(int(number or 0)), num_gpus()
    if wanted.device_id < count:
        return wanted
    if count:
        fix = f"give --ctx gpu:N with N below {count}"
        raise UnsupportedError(f"--ctx {text}", expected=f"one of {count} GPUs", given=str(wanted), fix=fix)
    raise UnsupportedError(f"--ctx {text}: there is no GPU", because=why_no_gpu(), fix="leave --ctx out")
