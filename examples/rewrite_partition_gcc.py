"""Compiles elementwise parts of a network with the machine's C compiler, and runs the code without Python.

    python examples/rewrite_partition_gcc.py

mx.rewrite.partition finds the parts, including the loop's body; ``make`` writes one C function for each, compiles it
into a shared object and returns its address.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import hybridnet as mx
import numpy as np
from hybridnet import libinfo
from hybridnet import rewrite as rw

COMPILER = shutil.which("gcc") or shutil.which("cc")
UNARY = {
    "tanh": "tanhf({})",
    "exp": "expf({})",
    "relu": "({0} > 0 ? {0} : 0)",
    "negative": "-{}",
    "square": "{0} * {0}",
}
BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
FORMS = {
    **UNARY,
    **{f"elemwise_{name}": f"{{}} {sign} {{}}" for name, sign in BINARY.items()},
    **{f"broadcast_{name}": f"{{}} {sign} {{}}" for name, sign in BINARY.items()},
    "_plus_scalar": "{} + {scalar}f",
    "_mul_scalar": "{} * {scalar}f",
}


def supports(node: Any) -> bool:
    """True for elementwise operators on float32 arrays of one shape, and on arrays of one element."""
    values = [*node.inputs, *node.outputs]
    return (
        node.op in FORMS
        and all(value.dtype == np.float32 for value in values)
        and all(value.shape == node[0].shape or value.shape == (1,) for value in node.inputs)
    )


def c_source(graph: Any) -> str:
    """One loop over the elements; every value is a named local variable."""
    size = max(int(np.prod(entry.shape)) for entry in graph.outputs)
    names = {}
    lines = []
    for number, entry in enumerate(graph.inputs):
        index = "0" if int(np.prod(entry.shape)) == 1 else "i"
        names[entry] = f"x{number}"
        lines.append(f"const float x{number} = ((const float*)call->inputs[{number}].data)[{index}];")
    for node in graph.nodes:
        if not node.op:
            continue
        names[node[0]] = f"v{len(names)}"
        scalar = {"scalar": float(node.params["scalar"])} if "scalar" in node.params else {}
        value = FORMS[node.op].format(*(names[entry] for entry in node.inputs), **scalar)
        lines.append(f"const float {names[node[0]]} = {value};")
    for number, entry in enumerate(graph.outputs):
        index = "0" if int(np.prod(entry.shape)) == 1 else "i"
        lines.append(f"((float*)call->outputs[{number}].data)[{index}] = {names[entry]};")
    body = "\n    ".join(lines)
    return f"""#include <math.h>
#include "hybridnet/c_api.h"

const char* part(const HnOperatorCall* call) {{
  for (int64_t i = 0; i < {size}; ++i) {{
    {body}
  }}
  return 0;
}}
"""


class GccBackend:
    """``make`` of the partition; sources: the compiled C sources."""

    __name__ = "gcc"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources: list[str] = []

    def __call__(self, graph: Any) -> Any:
        if any(node.is_constant for node in graph.nodes):
            return None  # leaves the part to the library
        self.sources.append(c_source(graph))
        source = self.folder / f"part{len(self.sources)}.c"
        source.write_text(self.sources[-1])
        made = source.with_suffix(".so")
        flags = ["-O3", "-shared", "-fPIC", "-I", libinfo.find_include_path()]
        subprocess.run([COMPILER, *flags, str(source), "-o", str(made), "-lm"], check=True)
        library = ctypes.CDLL(str(made))
        return rw.NativeCode(library.part, keep=library)


class Net(mx.gluon.HybridBlock):
    """A state that decays toward its input, in a loop, followed by a gate."""

    def hybrid_forward(self, F: Any, data: Any) -> Any:
        def step(row: Any, state: Any) -> Any:
            state = F.tanh(row) * 0.5 + state * 0.5
            return state, state

        rows, last = F.contrib.foreach(step, data, F.zeros((64,)))
        return F.exp(F.negative(F.square(rows))) * rows + 1, last


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if COMPILER is None:
        print("there is no C compiler: nothing to show")
        return
    data = mx.nd.array(np.random.default_rng(0).normal(size=(20, 64)))
    net = Net()
    wanted = [value.asnumpy() for value in net(data)]
    with tempfile.TemporaryDirectory() as folder:
        backend = GccBackend(Path(folder))
        rw.partition(supports, 2, backend, tags=())
        net.hybridize(backend="gcc")
        got = [value.asnumpy() for value in net(data)]
        rw.unregister("gcc")
    for one, other in zip(wanted, got, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
    print(backend.sources[-1])
    print(net.pass_report())
    print(f"{len(backend.sources)} parts were compiled; results agree")


if __name__ == "__main__":
    main()
