"""One process of benchmarks/memory.py: predicts or trains one way, and prints the process's memory after each phase.

python memory_side.py SIDE NETWORK FOLDER      # with SIDE 'write': makes the files that predictions load
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

NETWORKS = {"resnet50": "resnet50_infer_1", "mobilenet": "mobilenet_infer_1", "bert": "bert_infer"}


def _fields(path: str) -> dict[str, float]:
    """The sizes in kB of a file in /proc, converted to MiB."""
    words = (line.split() for line in Path(path).read_text("utf-8").splitlines())
    return {row[0][:-1]: int(row[1]) / 1024 for row in words if len(row) == 3 and row[2] == "kB"}


def report(phase: str) -> None:
    status, maps = _fields("/proc/self/status"), _fields("/proc/self/smaps_rollup")
    line = {"phase": phase, "rss": status["VmRSS"], "pss": maps["Pss"], "anonymous": maps["Anonymous"]}
    print(json.dumps({**line, "peak": status["VmHWM"]}), flush=True)


def _write(name: str, prefix: str) -> None:
    import hybridnet as mx

    net, data = _network(name)
    mx.random.seed(0)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(data).wait_to_read()
    net.export(prefix)
    net.save_parameters(f"{prefix}.params")


def _network(name: str) -> tuple[Any, Any]:
    """HybridNet's network without values, and its input."""
    import hybridnet_networks as networks

    make, inputs = networks.INFERENCE[NETWORKS[name]]
    return make(), inputs()


def _gluon(name: str, prefix: str) -> Callable[[], Any]:
    import hybridnet  # noqa: F401

    report("import")
    net, data = _network(name)
    net.load_parameters(f"{prefix}.params")
    net.hybridize()
    return lambda: net(data).asnumpy()


def _initialized(name: str, prefix: str) -> Callable[[], Any]:
    import hybridnet  # noqa: F401

    report("import")
    net, data = _network(name)
    net.initialize()
    net.hybridize()
    return lambda: net(data).asnumpy()


def _imports(name: str, prefix: str) -> Callable[[], Any]:
    import hybridnet as mx

    report("import")
    net = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    _, data = _network(name)
    return lambda: net(data).asnumpy()


def _c(name: str, prefix: str) -> Callable[[], Any]:
    import importlib.util
    import random

    folder = Path(importlib.util.find_spec("hybridnet").submodule_search_locations[0])  # type: ignore[union-attr, index]
    lib = ctypes.CDLL(str(folder / "libhybridnet.so"))
    lib.hn_last_error.restype = ctypes.c_char_p
    report("import")

    def call(function: str, *arguments: Any) -> None:
        if getattr(lib, function)(*arguments) != 0:
            raise RuntimeError(lib.hn_last_error().decode())

    model, array, spec = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_int64 * 4)(1, 3, 224, 224)
    draw = random.Random(0)
    count, rank = (128, 2) if name == "bert" else (3 * 224 * 224, 4)
    spec[1] = 128 if name == "bert" else 3
    values = (ctypes.c_float * count)(*(draw.randrange(30522) if rank == 2 else draw.random() for _ in range(count)))
    call("hn_model_load", f"{prefix}-symbol.json".encode(), f"{prefix}-0000.params".encode(), ctypes.byref(model))
    call("hn_array_create", spec, rank, 0, values, ctypes.byref(array))

    def predict() -> None:
        out = ctypes.c_void_p()
        call("hn_model_run", model, ctypes.c_size_t(1), ctypes.byref(array), ctypes.c_size_t(1), ctypes.byref(out))
        call("hn_array_wait", out)
        call("hn_array_free", out)

    return predict


def _onnxruntime(name: str, prefix: str) -> Callable[[], Any]:
    import numpy as np
    import onnxruntime

    report("import")
    session = onnxruntime.InferenceSession(f"{prefix}.onnx", providers=["CPUExecutionProvider"])
    draw = np.random.default_rng(0)
    data = draw.integers(0, 30522, (1, 128)) if name == "bert" else draw.random((1, 3, 224, 224), dtype="float32")
    return lambda: session.run(None, {"data": data})


def _train_hybridnet(name: str, prefix: str) -> Callable[[], Any]:
    import hybridnet  # noqa: F401

    report("import")
    import hybridnet_networks as networks

    step = networks.train_case(name, hybrid=True)
    return lambda: step(1)


def _train_torch(name: str, prefix: str) -> Callable[[], Any]:
    import torch  # noqa: F401

    report("import")
    import torch_networks as networks

    step = networks.train_case(name, compiled=False, channels_last=name == "resnet18_train")
    return lambda: step(1)


SIDES = {
    "gluon": _gluon,
    "initialized": _initialized,
    "imports": _imports,
    "c": _c,
    "onnxruntime": _onnxruntime,
    "train": _train_hybridnet,
    "torch": _train_torch,
}


def main() -> None:
    side, name, folder = sys.argv[1:]
    prefix = f"{folder}/{name}"
    if side == "write":
        _write(name, prefix)
        return
    run = SIDES[side](name, prefix)
    report("load")
    run()
    report("first")
    for _ in range(9):
        run()
    report("tenth")


if __name__ == "__main__":
    main()
