"""The two files of a model on a command line: either one, both in any order, or their prefix."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence

from ..errors import FileError, FormatError, ParamError
from ..ndarray._foreign_files import FOREIGN_ENDINGS

__all__ = ["GRAPH_ENDING", "find_files", "is_model_of_onnx", "parameter_files", "split_models"]

GRAPH_ENDING = "-symbol.json"
_PARAMETERS = re.compile(r"(?P<prefix>.*)-(?P<epoch>\d{4,})\.params")
_PARAMS_MAGIC = (0x112).to_bytes(8, "little")
_MOST_LISTED = 10
GRAPH, PARAMETERS, PREFIX, ONNX = "graph", "parameters", "prefix", "ONNX"


def is_model_of_onnx(words: Sequence[str]) -> bool:
    """Whether the words are a file of ONNX. Raises ParamError if there is another word beside it."""
    if not any(word.endswith(".onnx") for word in words):
        return False
    if len(words) > 1:
        raise ParamError(
            f"the model {' '.join(words)}", expected="one file of ONNX alone, which holds graph and parameters"
        )
    return True


def parameter_files(prefix: str) -> list[str]:
    """Returns the names of PREFIX-NNNN.params, sorted by epoch."""
    found = glob.glob(glob.escape(prefix) + "-[0-9][0-9][0-9][0-9]*.params")
    epochs = [(int(match["epoch"]), path) for path in found if (match := _PARAMETERS.fullmatch(path))]
    return [path for _, path in sorted(epochs)]


def find_files(words: Sequence[str], params: str | None = None, epoch: int | None = None) -> tuple[str, str | None]:
    """Returns the file of the graph and that of the parameters, None if it has none.

    words: one or two; params, epoch: choose the second file. Raises FileError, FormatError, ParamError.
    """
    kinds = {word: _kind_of(word) for word in words}
    graphs = [word for word, kind in kinds.items() if kind in (GRAPH, PREFIX)]
    arrays = [word for word, kind in kinds.items() if kind == PARAMETERS]
    if len(words) > 2 or len(graphs) > 1 or len(arrays) > 1:
        raise ParamError(
            f"the model {' '.join(words)}",
            expected="PREFIX, PREFIX-symbol.json, PREFIX-0000.params, or the last two",
            given=f"{len(graphs)} graphs and {len(arrays)} parameter files",
        )
    given = arrays[0] if arrays else params
    if (arrays and params is not None) or (given is not None and epoch is not None):
        raise ParamError(
            f"the model {' '.join(words)}", expected="one parameter file: a second file, --params or --epoch"
        )
    if given is not None and not os.path.exists(given):
        raise _missing_parameters(given)
    if not graphs:
        assert given is not None
        return _graph_of(given), given
    path = graphs[0] + GRAPH_ENDING if kinds[graphs[0]] == PREFIX else graphs[0]
    return path, _chosen_parameters(path, epoch) if given is None else given


def split_models(words: Sequence[str]) -> list[list[str]]:
    """Splits the words of two models: ["a-symbol.json", "a-0000.params", "b"] are [[a-..., a-...], [b]].

    Raises ParamError unless they are two models.
    """
    if len(words) == 2:
        if len({_prefix_of(word) for word in words}) == 1 and len({_kind_of(word) for word in words}) == 2:
            raise ParamError(f"the files {' and '.join(words)} are one model", fix="give the files of another one, too")
        return [[word] for word in words]
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault(_prefix_of(word), []).append(word)
    parts = list(groups.values())
    if len(parts) != 2 and len(words) == 4:  # names do not tell which files belong together, their order does
        parts = [list(words[:2]), list(words[2:])]
    if len(parts) != 2 or any(len(part) > 2 for part in parts):
        raise ParamError(
            f"the words {' '.join(words)}", expected="two models, each as PREFIX, one file, or graph and parameters"
        )
    return parts


def _prefix_of(word: str) -> str:
    match = _PARAMETERS.fullmatch(word)
    return match["prefix"] if match else word.removesuffix(GRAPH_ENDING)


def _kind_of(word: str) -> str:
    """Returns the kind of a word. Raises FileError, with names that exist, and FormatError."""
    if word.endswith(".onnx"):
        return ONNX
    if os.path.isdir(word):
        graphs = _listed(glob.glob(os.path.join(glob.escape(word), "*" + GRAPH_ENDING)))
        raise FileError(f"'{word}' is a folder", fix=f"give one of its models: {graphs}" if graphs else None)
    if os.path.exists(word):
        return _kind_of_content(word)
    if os.path.exists(word + GRAPH_ENDING):
        return PREFIX
    if word.endswith((".params", *FOREIGN_ENDINGS)):
        raise _missing_parameters(word)
    raise _missing_graph(word)


def _kind_of_content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror}") from error
    if head.startswith(_PARAMS_MAGIC) or path.endswith((".params", *FOREIGN_ENDINGS)):
        return PARAMETERS
    if head.lstrip()[:1] == b"{" or path.endswith(".json"):
        return GRAPH
    raise FormatError(f"'{path}'", expected="a graph (PREFIX-symbol.json), parameters (PREFIX-0000.params) or .onnx")


def _graph_of(parameter_file: str) -> str:
    """Returns the graph beside a parameter file. Raises FileError."""
    match = _PARAMETERS.fullmatch(parameter_file)
    prefix = match["prefix"] if match else os.path.splitext(parameter_file)[0]
    path = prefix + GRAPH_ENDING
    if os.path.exists(path):
        return path
    folder = os.path.dirname(parameter_file)
    others = _listed(glob.glob(os.path.join(glob.escape(folder), "*" + GRAPH_ENDING)))
    raise FileError(
        f"the graph of '{parameter_file}' is missing: there is no '{path}'",
        fix=f"give the graph, too; in its folder {_are(others)}" if others else "give the graph's file, too",
    )


def _chosen_parameters(graph_file: str, epoch: int | None) -> str | None:
    """Returns the parameters beside a graph: those of an epoch, else the last ones. Raises FileError."""
    prefix = graph_file.removesuffix(GRAPH_ENDING)
    existing = parameter_files(prefix) if graph_file.endswith(GRAPH_ENDING) else []
    if epoch is None:
        return existing[-1] if existing else None
    for path in existing:
        match = _PARAMETERS.fullmatch(path)
        if match and int(match["epoch"]) == epoch:
            return path
    raise _missing_parameters(f"{prefix}-{epoch:04d}.params")


def _missing_graph(word: str) -> FileError:
    path = word if word.endswith(".json") else word + GRAPH_ENDING
    folder, prefix = os.path.dirname(path), _prefix_of(path)
    alone = _listed(parameter_files(prefix))
    others = _listed(glob.glob(os.path.join(glob.escape(folder), "*" + GRAPH_ENDING)))
    text = f"there is no model '{word}': cannot read '{path}'"
    if folder and not os.path.isdir(folder):
        return FileError(text, because=f"there is no folder '{folder}'")
    if alone:
        return FileError(text, because=f"there is only {alone}", fix="export the model again, or give the graph's file")
    return FileError(text, fix=f"give one of the models that exist there: {others}" if others else None)


def _missing_parameters(path: str) -> FileError:
    """Names the epochs that exist, if the name has one."""
    text = f"there is no parameter file '{path}'"
    match = _PARAMETERS.fullmatch(path)
    existing = _listed(parameter_files(match["prefix"] if match else path.removesuffix(".params")))
    if not existing:
        folder = os.path.dirname(path)
        existing = _listed(glob.glob(os.path.join(glob.escape(folder), "*.params")))
    return FileError(text, fix=f"give one that exists: {existing}" if existing else None)


def _are(names: str) -> str:
    return f"there {'are' if ', ' in names else 'is'} {names}"


def _listed(paths: Sequence[str]) -> str:
    shown = sorted(paths)
    more = f", and {len(shown) - _MOST_LISTED} more" if len(shown) > _MOST_LISTED else ""
    return ", ".join(shown[:_MOST_LISTED]) + more
