"""Training checkpoints in one file: parameters, trainer states, random numbers, data position, and more.

The file is replaced atomically: if the program dies, either the previous or the new checkpoint is there. It is a file
of sections (_sections_file.py) that begins with ``HNTRAIN1``.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core, errors, random
from ..errors import FormatError, ParamError
from ._sections_file import read_sections, write_sections
from .block import Block
from .data import DataLoader
from .trainer import Trainer

__all__ = ["load_training", "save_training"]

_MAGIC = b"HNTRAIN1"


def _parameters(net: Block) -> bytes:
    """Returns the bytes that net.save_parameters writes."""
    arrays = net._arrays_to_save()
    return _core.save_to_buffer(list(arrays.values()), list(arrays), _core.is_np_shape())


def load_parameter_bytes(net: Block, content: bytes) -> None:
    """Loads through a temporary file whose arrays are mapped, so that values are not in memory twice."""
    with tempfile.TemporaryDirectory(prefix="hybridnet-training-") as folder:
        path = os.path.join(folder, "parameters")
        with open(path, "wb") as file:
            file.write(content)
        net.load_parameters(path)


def _python_value(value: Any) -> Any:
    """Returns a number or array of NumPy as Python's; raises TypeError for others, as json.dumps asks for."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise errors.TypeError(f"a {type(value).__name__} is no value of JSON")


def plain_extra(call: str, extra: Any) -> Any:
    """Returns the values that JSON keeps of extra. Raises ParamError for others."""
    try:
        return json.loads(json.dumps(extra, default=_python_value))
    except (TypeError, ValueError) as error:
        raise ParamError(
            f"{call}, extra: {error}",
            expected="an object that json.dumps accepts",
            fix="give numbers, texts, lists and dicts of these; of an NDArray its x.asnumpy()",
        ) from error


def scaler_state(trainer: Trainer | None) -> dict[str, Any] | None:
    """Returns the state of the loss scale (amp); None if there is none."""
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    return None if scaler is None else dict(vars(scaler))


def set_scaler_state(trainer: Trainer, state: dict[str, Any] | None) -> None:
    """Restores what scaler_state returned, if the trainer has a loss scale."""
    scaler = getattr(trainer, "_amp_loss_scaler", None)
    if scaler is not None and state is not None:
        vars(scaler).update({name: state.get(name, value) for name, value in vars(scaler).items()})


def save_training(
    path: str | os.PathLike[str],
    net: Block,
    trainer: Trainer | None = None,
    loader: DataLoader | None = None,
    extra: Any = None,
) -> None:
    """Saves a training between two steps, so that load_training() can resume it bit for bit.

    Parameters
    ----------
    path : str
        One file; an existing file is replaced atomically.
    net : Block
        The network; its parameters and running statistics are saved. Must be initialized.
    trainer : Trainer, optional
        Its states: momenta, update counts, settings, the learning-rate schedule, the loss scale (amp).
    loader : DataLoader, optional
        Its position, also in the middle of an epoch.
    extra : optional
        Any value that json.dumps takes, and numbers and arrays of NumPy, which load_training() returns as Python's
        numbers and lists: the number of the epoch, the best score so far.

    The state of random numbers (mx.random, numpy.random, random) is also saved. Gradients are not: with grad_req='add',
    save when they are zero.

    Raises FileError if the file cannot be written, ParamError if extra cannot be written as JSON.
    """
    sections = {"parameters": _parameters(net)}
    if trainer is not None:
        sections["trainer"] = trainer._states()
    header = {
        "random": random.get_state(),
        "loader": None if loader is None else loader.position(),
        "loss_scaler": scaler_state(trainer),
        "extra": plain_extra("save_training", extra),
    }
    write_sections(path, "save_training", _MAGIC, header, sections)


def load_training(
    path: str | os.PathLike[str],
    net: Block,
    trainer: Trainer | None = None,
    loader: DataLoader | None = None,
) -> Any:
    """Resumes a training that save_training() saved; returns its ``extra``.

    Create the network, trainer and loader as for the original training, with any initial values. Data of a trainer or
    loader that is not given is ignored. The next iteration over the loader starts after the batches that were read.

    Raises FileError if the file cannot be read; FormatError if it has another format or is damaged: then nothing was
    changed; ParamError if it holds no data for the trainer or loader; and the errors of load_parameters and
    load_states.
    """
    header, sections = _read(path)
    for name, given, held in (
        ("trainer", trainer, "trainer" in sections),
        ("loader", loader, header["loader"] is not None),
    ):
        if given is not None and not held:
            raise ParamError(f"load_training, {name}: '{os.fspath(path)}' was saved without a {name}")
    load_parameter_bytes(net, sections["parameters"])
    if trainer is not None:
        trainer._set_states(sections["trainer"])
        set_scaler_state(trainer, header["loss_scaler"])
    if loader is not None:
        loader.set_position(header["loader"])
    random.set_state(header["random"])
    return header["extra"]


def _is_in_order(header: dict[str, Any]) -> bool:
    loader, scaler = header["loader"], header["loss_scaler"]
    if loader is not None:
        kept = [*(loader["rollover"] or ()), loader["batches"]]
        if not all(isinstance(number, int) and number >= 0 for number in kept):
            return False
        if loader["numpy"] is not None and not isinstance(loader["numpy"], dict):
            return False
    return scaler is None or all(isinstance(value, (int, float)) for value in dict(scaler).values())


def check_header(header: dict[str, Any], names: Sequence[str], what: str, fix: str) -> None:
    """Raises FormatError unless a header has these names, and positions and scales that a training can have.

    what: says whose header it is and what does not write such a one, for the error.
    """
    try:
        missing = [name for name in ("random", *names) if name not in header]
        reason = f": it has no {missing[0]!r}" if missing else ""
        is_in_order = not missing and _is_in_order(header)
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{what}: {error!r}", fix=fix) from error
    if not is_in_order:
        raise FormatError(f"{what}{reason}", fix=fix)


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Returns header and sections, verified."""
    fix = "load another checkpoint, or start afresh"
    header, found = read_sections(path, "load_training", _MAGIC, "save_training()", fix)
    what = f"load_training: '{os.fspath(path)}' has a header that save_training() does not write"
    check_header(header, ["extra"], what, fix)
    if "parameters" not in found:
        raise FormatError(f"{what}: it has no parameters", fix=fix)
    return header, found
