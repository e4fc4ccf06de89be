"""Checkpoints of trainings in many processes: each process writes its part, and any number of processes loads them.

Each parameter and state that all processes have alike is in the part of one process. Each part also holds the values
of its process that no other has, such as running statistics of BatchNorm; the process r of a later run takes those of
the process r modulo the former number of processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _core, group, random
from .._user_line import warn
from ..errors import FileError, FormatError, ParamError
from ..kvstore._agreement import gather_bytes, in_all_processes
from ..libinfo import __version__
from ..ndarray import NDArray
from ..optimizer._state_parts import Extent, merged_states
from . import _checkpoint_files as files
from ._sections_file import read_sections, write_sections
from ._state_shards import balanced_owners, extents_from_json, extents_to_json
from ._training_file import check_header, load_parameter_bytes, plain_extra, scaler_state, set_scaler_state
from .block import Block
from .data import DataLoader
from .trainer import Trainer

__all__ = ["Checkpoint", "load_checkpoint", "save_checkpoint"]

_SAVE, _LOAD = "save_checkpoint", "load_checkpoint"


class Checkpoint(NamedTuple):
    """The result of load_checkpoint()."""

    step: int
    extra: Any
    path: str


# -- saving -------------------------------------------------------------------------------------------------------


def save_checkpoint(
    folder: str | os.PathLike[str],
    net: Block,
    trainer: Trainer | None = None,
    loader: DataLoader | None = None,
    *,
    step: int,
    extra: Any = None,
    keep: int = 2,
) -> str:
    """Saves a training between two steps; all processes of ``mx.group`` must call it. Returns the checkpoint's folder.

    Parameters
    ----------
    folder : str
        Folder that all processes see; it is made if it does not exist. Each checkpoint is a folder in it, with one part
        per process and a manifest, which is written last. A process that dies before leaves the former checkpoints.
    net : Block
        Its parameters and running statistics are saved. Must be initialized.
    trainer : Trainer, optional
        Its states: momenta, update counts, settings, the learning-rate schedule, the loss scale (amp).
    loader : DataLoader, optional
        The position of this process in its data.
    step : int
        Number of finished steps, from 0; load_checkpoint() returns it.
    extra : optional
        Any value that json.dumps takes, and numbers and arrays of NumPy. That of process 0 counts.
    keep : int, default 2
        Number of checkpoints that stay in the folder, at least 1.

    The states of random numbers (mx.random, numpy.random, random) are saved, too. Gradients are not.

    Raises in all processes, if it fails in one: FileError if a file cannot be written, such as on a full disk: the
    former checkpoints stay, and training may go on; ParamError for wrong arguments, and if the nets of the processes
    differ.
    """
    folder = os.fspath(folder)
    if not isinstance(step, (int, np.integer)) or isinstance(step, bool) or step < 0:
        raise ParamError("save_checkpoint: step", expected="an integer, 0 or more", given=repr(step))
    if keep < 1:
        raise ParamError("save_checkpoint: keep", expected="1 or more", given=repr(keep))
    if trainer is not None:
        trainer._finish_exchanges()
    arrays, extra = in_all_processes(_SAVE, lambda: (net._arrays_to_save(), plain_extra(_SAVE, extra)))
    equal = _equal_in_all_processes(arrays)
    path = _in_first(_SAVE, lambda: files.new_generation(folder, int(step), _SAVE))
    try:
        part = in_all_processes(_SAVE, lambda: _write_part(path, arrays, equal, trainer, loader))
        parts = [json.loads(each) for each in gather_bytes(json.dumps(part).encode(), f"parts of {_SAVE}")]
        content = {
            "library": __version__,
            "step": int(step),
            "processes": group.size(),
            "virtual_shards": group.virtual_shards(),
            "has_trainer": trainer is not None,
            "has_loader": loader is not None,
            "extra": extra,
            "parts": parts,
        }
        _in_first(_SAVE, lambda: _finish(folder, path, content, keep))
    except Exception:
        if group.rank() == 0:
            shutil.rmtree(path, ignore_errors=True)
        raise
    return path


def _in_first(call: str, work: Callable[[], str]) -> str:
    """Returns the text that work() returns in process 0; raises in all processes if it raises."""
    own = in_all_processes(call, work if group.rank() == 0 else str)
    return gather_bytes(own.encode("utf-8", "surrogateescape"), f"decision of {call}")[0].decode(
        "utf-8", "surrogateescape"
    )


def _finish(folder: str, path: str, content: dict[str, Any], keep: int) -> str:
    files.write_manifest(path, _SAVE, content)
    files.remove_others(folder, path, keep)
    return ""


def _equal_in_all_processes(arrays: dict[str, NDArray]) -> dict[str, bool]:
    """Whether each array has the same value everywhere. Raises ParamError if the processes have other names."""
    names = hashlib.sha256("\0".join(arrays).encode()).digest()
    digests = [hashlib.sha256(array.asnumpy().tobytes()).digest() for array in arrays.values()]
    tables = gather_bytes(b"".join([names, *digests]), f"digests of parameters ({_SAVE})")
    if any(table[:32] != tables[0][:32] for table in tables):
        raise ParamError(
            "save_checkpoint: net",
            because="its parameters have other names in other processes",
            fix="build the same net in all processes",
        )
    places = range(32, 32 * (1 + len(arrays)), 32)
    return {
        name: all(table[at : at + 32] == tables[0][at : at + 32] for table in tables)
        for name, at in zip(arrays, places, strict=True)
    }


def _write_part(
    path: str, arrays: dict[str, NDArray], equal: dict[str, bool], trainer: Trainer | None, loader: DataLoader | None
) -> dict[str, Any]:
    """Writes the part of this process; returns its line in the manifest."""
    if not os.path.isdir(path):
        raise FileError(
            f"save_checkpoint: there is no folder '{path}'",
            because="process 0 has made it, and this process does not see it",
            fix="save on a disk that all processes see",
        )
    shared = [name for name in arrays if equal[name]]
    owners = balanced_owners([arrays[name].size for name in shared], group.size())
    own = [name for name, owner in zip(shared, owners, strict=True) if owner == group.rank()]
    differing = [name for name in arrays if not equal[name]]
    sections = {"parameters": _parameter_bytes(arrays, own), "own_parameters": _parameter_bytes(arrays, differing)}
    header: dict[str, Any] = {
        "random": random.get_state(),
        "loader": None if loader is None else loader.position(),
        "loss_scaler": scaler_state(trainer),
    }
    if trainer is not None:
        sections["states"], extents, header["states_are_own"] = _own_states(trainer)
        header["extents"] = extents_to_json(extents)
    name = files.part_name(group.rank(), group.size())
    file = os.path.join(path, name)
    digest = write_sections(file, _SAVE, files.PART_MAGIC, header, sections)
    return {"file": name, "bytes": os.path.getsize(file), "header_sha256": digest}


def _parameter_bytes(arrays: dict[str, NDArray], names: Sequence[str]) -> bytes:
    return _core.save_to_buffer([arrays[name] for name in names], list(names), True) if names else b""


def _own_states(trainer: Trainer) -> tuple[bytes, dict[int, Extent], bool]:
    """The states that this process writes, the elements that they are for, and whether they are all of its states,
    which may differ between the processes.
    """
    trainer._be_ready()
    if trainer._state_shards is not None:
        return (*trainer._state_shards.own_states(), False)
    updater = trainer._updaters[0]
    extents = {}
    for index in updater.states:
        shape = tuple(trainer._params[index].shape)
        extents[index] = Extent(0, int(np.prod(shape)), shape)
    is_own = not trainer._sums_over_processes()
    if not is_own:
        indices = sorted(extents)
        owners = balanced_owners([extents[index].end for index in indices], group.size())
        extents = {i: extents[i] for i, owner in zip(indices, owners, strict=True) if owner == group.rank()}
    states = {index: updater.states[index] for index in extents}
    return updater.bytes_of(states, dump_optimizer=True), extents, is_own


# -- loading ------------------------------------------------------------------------------------------------------


def load_checkpoint(
    folder: str | os.PathLike[str],
    net: Block,
    trainer: Trainer | None = None,
    loader: DataLoader | None = None,
    *,
    required: bool = False,
) -> Checkpoint | None:
    """Continues from the newest finished checkpoint of save_checkpoint(); all processes of ``mx.group`` must call it.

    The number of processes may be another one. Create net, trainer and loader as for the original training, with any
    initial values. With as many processes, each continues with its own random numbers, running statistics and position;
    otherwise the process r takes those of the process r modulo their former number, and a loader cannot be continued.

    Returns step, extra and the checkpoint's folder; None if there is no finished checkpoint, unless it is required.

    Raises in all processes, if it fails in one: FileError if a file is missing; FormatError for parts and manifests
    that are damaged or of a later version: then nothing was changed; ParamError if there is no data for the trainer or
    loader; ParameterLoadError for another net.
    """
    folder = os.fspath(folder)
    path = _in_first(_LOAD, lambda: _newest(folder, required))
    if not path:
        return None
    if trainer is not None:
        trainer._finish_exchanges()  # gradients from before the checkpoint would change what it restores
    manifest = in_all_processes(_LOAD, lambda: files.read_manifest(path, _LOAD))
    parts = in_all_processes(_LOAD, lambda: _read_parts(path, manifest, trainer, loader))
    in_all_processes(_LOAD, lambda: _apply(parts, net, trainer, loader))
    return Checkpoint(manifest["step"], manifest["extra"], path)


def _newest(folder: str, required: bool) -> str:
    """The path of the newest finished checkpoint; an empty text if there is none."""
    found = files.generations(folder)
    finished = [one for one in found if one.is_finished]
    unfinished = [one.path for one in found if not one.is_finished and (not finished or one > finished[-1])]
    if required and not finished:
        raise FileError(
            f"load_checkpoint: there is no finished checkpoint in '{folder}'",
            because=f"'{unfinished[-1]}' has no manifest.json" if unfinished else "it holds no checkpoint at all",
            fix="see whether the folder is right; pass required=False to start afresh",
        )
    if unfinished:
        warn(f"load_checkpoint: '{unfinished[-1]}' was not finished: it has no manifest.json, and is left out")
    return finished[-1].path if finished else ""


def _read_parts(
    path: str, manifest: dict[str, Any], trainer: Trainer | None, loader: DataLoader | None
) -> list[tuple[dict[str, Any], dict[str, bytes]]]:
    """Header and sections of all parts, verified."""
    processes = manifest["processes"]
    for name, given in (("trainer", trainer), ("loader", loader)):
        if given is not None and not manifest[f"has_{name}"]:
            raise ParamError(f"load_checkpoint, {name}: '{path}' was saved without a {name}")
    if loader is not None and processes != group.size():
        raise ParamError(
            f"load_checkpoint, loader: '{path}' has the positions of {processes} processes",
            given=f"{group.size()} processes",
            because="each of them had its part of the samples",
            fix="start with as many processes; or save at the end of an epoch, and load without loader",
        )
    parts = []
    for rank, line in enumerate(manifest["parts"]):
        file = os.path.join(path, files.part_name(rank, processes))
        fix = f"copy the checkpoint again; or remove '{path}', then the one before it is loaded"
        size = os.path.getsize(file) if os.path.exists(file) else -1
        if size != line["bytes"]:
            what = "is missing" if size < 0 else f"has {size} bytes"
            raise (FileError if size < 0 else FormatError)(
                f"load_checkpoint: the part '{file}' {what}", expected=f"{line['bytes']} bytes", fix=fix
            )
        part = read_sections(file, _LOAD, files.PART_MAGIC, "save_checkpoint()", fix, digest=line["header_sha256"])
        needed = ["states_are_own", "extents"] if manifest["has_trainer"] else []
        what = f"load_checkpoint: the part '{file}' has a header that save_checkpoint() does not write"
        check_header(part[0], needed, what, fix)
        parts.append(part)
    return parts


def _apply(
    parts: list[tuple[dict[str, Any], dict[str, bytes]]],
    net: Block,
    trainer: Trainer | None,
    loader: DataLoader | None,
) -> None:
    header, sections = parts[group.rank() % len(parts)]
    contents = [part["parameters"] for _, part in parts] + [sections["own_parameters"]]
    arrays: dict[str, NDArray] = {}
    for content in contents:
        if content:
            _, names, values = _core.load_from_buffer(content, "checkpoint")
            arrays.update(zip(names, values, strict=True))
    names = list(arrays)
    states = b"" if trainer is None else _states_of(parts, header, sections)  # before anything is changed
    with _unsynchronized(net):
        load_parameter_bytes(net, _core.save_to_buffer([arrays[name] for name in names], names, True))
    if trainer is not None:
        trainer._set_states(states)
        set_scaler_state(trainer, header["loss_scaler"])
    if loader is not None:
        loader.set_position(header["loader"])
    random.set_state(header["random"])


def _states_of(
    parts: list[tuple[dict[str, Any], dict[str, bytes]]], header: dict[str, Any], sections: dict[str, bytes]
) -> bytes:
    """The states of a trainer, which are in the own part or in all of them."""
    if header["states_are_own"]:
        return sections["states"]
    return merged_states([(part["states"], extents_from_json(of_part["extents"])) for of_part, part in parts])


@contextlib.contextmanager
def _unsynchronized(net: Block) -> Iterator[None]:
    """While it lasts, new values of parameters are not replaced by those of process 0."""
    params = list(net.collect_params().values())
    kept = [param._synchronizer for param in params]
    for param in params:
        param._synchronizer = None
    try:
        yield
    finally:
        for param, synchronizer in zip(params, kept, strict=True):
            param._synchronizer = synchronizer
