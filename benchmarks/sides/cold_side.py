"""One process of benchmarks/cold_start.py: from a bare interpreter to the first result, by phases.

python cold_side.py SIDE NETWORK FOLDER    # prints {phase: seconds} as JSON; with SIDE 'write', makes files in FOLDER

HybridNet loads its parameters from a file, so that no phase includes the generation of random values.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LAYERS = 1000


class Clock:
    """The seconds of each phase, and of the parts of phases that are known."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._begin = time.perf_counter()

    def ends(self, phase: str) -> None:
        now = time.perf_counter()
        self.phases[phase] = now - self._begin
        self._begin = now


def widths() -> list[int]:
    """Sizes such that each of LAYERS layers, from one size to the next, differs from all others: 16 to 48 units."""
    sizes = [pair for low in range(16, 49) for high in range(low + 1, 49) for pair in (low, high)]
    return sizes[: LAYERS + 1]


def _network(name: str) -> tuple[Any, Any]:
    """HybridNet's network without values, and its input."""
    import hybridnet_networks as networks
    from hybridnet.gluon import nn
    from hybridnet.gluon.model_zoo import vision

    def layers() -> Any:
        net, sizes = nn.HybridSequential(), widths()
        for inputs, outputs in itertools.pairwise(sizes):
            net.add(nn.Dense(outputs, activation="relu", in_units=inputs))
        return net

    made: dict[str, Callable[[], tuple[Any, Any]]] = {
        "resnet50": lambda: (vision.resnet50_v1(), networks.array(1, 3, 224, 224)),
        "bert": lambda: (networks.Bert(), networks.integers(networks.VOCABULARY, 1, networks.LENGTH)),
        "layers": lambda: (layers(), networks.array(8, widths()[0])),
    }
    return made[name]()


def _write(network: str, folder: Path) -> None:
    net, data = _network(network)
    net.initialize()
    net(data)
    net.save_parameters(str(folder / f"{network}.params"))


def _hybridnet(network: str, clock: Clock, folder: Path) -> None:
    import hybridnet as mx

    clock.ends("import")
    net, data = _network(network)
    net.load_parameters(str(folder / f"{network}.params"))
    data.wait_to_read()
    clock.ends("build")
    net.optimize_for(data, backend="MKLDNN", static_alloc=True, static_shape=True)
    clock.ends("trace")
    mx.profiler.set_config(filename="/dev/null", profile_all=True, aggregate_stats=True)
    mx.profiler.start()
    net(data).wait_to_read()
    clock.ends("first call")
    mx.profiler.stop()
    compile_line = re.search(r"compile\n=+\n.*\n\S+ +(\d+) +([\d.]+)", mx.profiler.dumps())
    compiling = float(compile_line[2]) / 1e3  # type: ignore[index]
    rules = re.findall(r"(?:fired +\d+|did not fire) +([\d.]+) us", net.pass_report())
    rewriting = sum(map(float, rules)) / 1e6
    clock.phases |= {
        "rewrite": rewriting, "link": compiling - rewriting, "run": clock.phases.pop("first call") - compiling
    }  # fmt: skip
    clock.phases["trace + compile"] = clock.phases["trace"] + compiling


def _torch(network: str, clock: Clock, folder: Path) -> None:
    import torch

    clock.ends("import")
    import torch_networks as networks
    from torch import nn

    def layers() -> Any:
        sizes = widths()
        pairs = itertools.pairwise(sizes)
        return nn.Sequential(*(one for a, b in pairs for one in (nn.Linear(a, b), nn.ReLU())))

    made: dict[str, Callable[[], tuple[Any, Any]]] = {
        "resnet50": lambda: (networks.resnet50(), networks.array(1, 3, 224, 224)),
        "bert": lambda: (networks.Bert(), networks.integers(networks.VOCABULARY, 1, networks.LENGTH)),
        "layers": lambda: (layers(), networks.array(8, widths()[0])),
    }
    net, data = made[network]()
    net.eval()
    clock.ends("build")
    with torch.inference_mode():
        torch.compile(net)(data)
    clock.ends("trace + compile")  # includes the first run, which is small in comparison


def _jax(network: str, clock: Clock, folder: Path) -> None:
    import jax

    clock.ends("import")
    import jax_networks as networks

    def layers() -> Any:
        sizes = widths()
        weights = [networks.dense(a, b) for a, b in itertools.pairwise(sizes)]
        return networks.stacked, weights, networks.array(8, sizes[0])

    made = {"resnet50": lambda: networks.resnet50(1), "bert": networks.bert, "layers": layers}
    function, *inputs = made[network]()
    jax.block_until_ready(inputs)
    clock.ends("build")
    lowered = jax.jit(function).lower(*inputs)
    clock.ends("trace")
    compiled = lowered.compile()
    clock.ends("compile")
    jax.block_until_ready(compiled(*inputs))
    clock.ends("run")
    clock.phases["trace + compile"] = clock.phases["trace"] + clock.phases["compile"]


def main() -> None:
    side, network, folder = sys.argv[1:]
    if side == "write":
        _write(network, Path(folder))
        return
    clock = Clock()
    {"hybridnet": _hybridnet, "torch": _torch, "jax": _jax}[side](network, clock, Path(folder))
    print(json.dumps(clock.phases))


if __name__ == "__main__":
    main()
