#!/usr/bin/env python3
"""Records the output dtypes of MXNet 1.9.1's operators for combinations of input dtypes.

    PYTHONPATH=python python tools/record_mxnet_dtypes.py cases cases.json
    MXNET_PYTHON tools/record_mxnet_dtypes.py record cases.json tests/fixtures/dtypes/mxnet-1.9.1.json

The first step takes the samples of HybridNet's registry; the second runs in an environment with MXNet 1.9.1 and needs
nothing of HybridNet. tests/python/ops/test_mxnet_dtypes.py compares. A type is a letter: e float16, f float32, d
float64, B uint8, b int8, i int32, l int64, ? bool. The table contains, for each operator and sample, the letters of the
inputs and of the outputs ("ff": "f"); under "expressions" the same for those of tests/python/ops/dtype_expressions.py.
Combinations that MXNet refuses or cannot compute are left out.
"""

from __future__ import annotations

import json
import multiprocessing
import queue
import sys
from pathlib import Path
from typing import Any

LETTERS = {
    "float16": "e", "float32": "f", "float64": "d", "uint8": "B", "int8": "b", "int32": "i", "int64": "l", "bool": "?",
}  # fmt: skip
SECONDS_PER_CALL = 20
OPERATOR_TESTS = Path(__file__).resolve().parents[1] / "tests" / "python" / "ops"

# A name, the sample of an operator or None for an expression, and the types of the inputs.
Work = tuple[str, dict[str, Any] | None, str]


def combinations(count: int, own: list[str | None]) -> list[str]:
    """The types to try for count inputs: all the same, only the first of another type, only the others.

    own: the types that the sample specifies, or None. Specified types remain in each combination.
    """
    if count == 0:
        return [""]
    named = [LETTERS.get(name) if name else None for name in (*own, *[None] * count)][:count]
    tried: dict[str, None] = {}
    for letter in LETTERS.values():
        tried[letter * count] = None
        tried["".join(kept or letter for kept in named)] = None
        tried[letter + "".join(kept or "f" for kept in named[1:])] = None
        tried[(named[0] or "f") + letter * (count - 1)] = None
    return list(tried)


def write_cases(target: Path) -> None:
    """Writes the operators with their samples, as HybridNet's tests run them."""
    from sweep import OPS, Use

    cases: dict[str, list[dict[str, Any]]] = {}
    for name, op in OPS.items():
        if name.startswith(("_np", "_backward")) or op["internal"] or op["subgraphs"]:
            continue
        for index, sample in enumerate(op["samples"]):
            use = Use(name, index)
            count = {op["count_param"]: str(len(sample["shapes"]))} if op["count_param"] else {}
            case = {key: sample[key] for key in ("shapes", "low", "high")}
            case["tried"] = combinations(len(sample["shapes"]), sample["dtypes"])
            cases.setdefault(name, []).append({**case, "index": index, "attrs": {**count, **use.attrs}})
    target.write_text(json.dumps(cases), encoding="utf-8")


# --- with MXNet -------------------------------------------------------------------------------------------------------


def _operator(name: str) -> Any:
    import ctypes

    from mxnet.base import _LIB, OpHandle, c_str, check_call

    handle = OpHandle()
    check_call(_LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
    return handle.value


def _output_types(name: str, case: dict[str, Any], letters: str) -> str | None:
    """The letters of the outputs of one call; None if MXNet refuses."""
    import mxnet as mx
    import numpy as np
    from mxnet._ctypes.ndarray import _imperative_invoke

    rng = np.random.RandomState(0)
    arrays = []
    for shape, letter in zip(case["shapes"], letters, strict=True):
        low = max(case["low"], 0) if letter in "B?" else case["low"]
        values = rng.uniform(low, case["high"], shape)
        values = np.rint(values) if letter not in "efd" else values
        arrays.append(mx.nd.array(np.clip(values, np.ceil(low), np.floor(case["high"])), dtype=np.dtype(letter)))
    keys, texts = list(case["attrs"]), [str(text) for text in case["attrs"].values()]
    try:
        found = _imperative_invoke(_operator(name), arrays, keys, texts, None, False, True)
        mx.nd.waitall()
        return _letters_of(found)
    except Exception:
        return None


def _letters_of(value: Any) -> str:
    import numpy as np

    if isinstance(value, (list, tuple)):
        return "".join(map(_letters_of, value))
    return np.dtype(value.dtype).char.replace("q", "l")


def _expression_types(name: str, letters: str) -> str | None:
    """The letter of the value of an expression; None if MXNet refuses."""
    import mxnet as mx
    import numpy as np
    from dtype_expressions import OF_ONE_ARRAY, OF_TWO_ARRAYS, VALUES

    arrays = [mx.nd.array(VALUES, dtype=np.dtype(letter)) for letter in letters]
    try:
        value = (OF_ONE_ARRAY if len(letters) == 1 else OF_TWO_ARRAYS)[name](mx.nd, *arrays)
        mx.nd.waitall()
        return _letters_of(value)
    except Exception:
        return None


def _record(work: list[Work], answers: Any) -> None:
    import mxnet as mx

    for name, case, letters in work:
        mx.util.set_np_shape(case is not None)  # samples may be scalars; expressions are from classic programs
        answers.put(_expression_types(name, letters) if case is None else _output_types(name, case, letters))


def _recorded(work: list[Work]) -> list[str | None]:
    """The result types of all calls. They run in a separate process, since some end or hang it; a new one continues
    then."""
    found: list[str | None] = []
    while len(found) < len(work):
        answers: Any = multiprocessing.Queue()
        process = multiprocessing.Process(target=_record, args=(work[len(found) :], answers))
        process.start()
        waited = 0.0
        while len(found) < len(work):
            try:
                found.append(answers.get(timeout=0.5))
                waited = 0.0
            except queue.Empty:
                waited += 0.5
                if not process.is_alive() or waited > SECONDS_PER_CALL:
                    print(f"no answer: {work[len(found)][0]} {work[len(found)][2]}", file=sys.stderr)
                    found.append(None)
                    break
        process.kill()
        process.join()
    return found


def write_table(cases_file: Path, target: Path) -> None:
    """Runs every case and writes MXNet's result types."""
    from dtype_expressions import OF_ONE_ARRAY, OF_TWO_ARRAYS

    cases = json.loads(cases_file.read_text(encoding="utf-8"))
    work: list[Work] = [
        (name, case, letters) for name in sorted(cases) for case in cases[name] for letters in case["tried"]
    ]
    work += [(name, None, letter) for name in OF_ONE_ARRAY for letter in LETTERS.values()]
    work += [(name, None, one + two) for name in OF_TWO_ARRAYS for one in LETTERS.values() for two in LETTERS.values()]
    operators: dict[str, dict[str, dict[str, str]]] = {}
    expressions: dict[str, dict[str, str]] = {}
    for (name, case, letters), outputs in zip(work, _recorded(work), strict=True):
        if outputs:
            rows = expressions if case is None else operators.setdefault(name, {})
            rows.setdefault(name if case is None else str(case["index"]), {})[letters] = outputs
    target.write_text(
        f'{{"operators": {_lines_of(operators)},\n"expressions": {_lines_of(expressions)}}}\n', encoding="utf-8"
    )
    print(f"{len(operators)} of {len(cases)} operators, {len(expressions)} expressions, {len(work)} calls")


def _lines_of(table: dict[str, Any]) -> str:
    rows = [f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in table.items()]
    return "{\n" + ",\n".join(rows) + "\n}"


if __name__ == "__main__":
    sys.path.insert(0, str(OPERATOR_TESTS))
    step, *files = sys.argv[1:] or [""]
    if step == "cases" and len(files) == 1:
        write_cases(Path(files[0]))
    elif step == "record" and len(files) == 2:
        write_table(Path(files[0]), Path(files[1]))
    else:
        sys.exit(__doc__)
