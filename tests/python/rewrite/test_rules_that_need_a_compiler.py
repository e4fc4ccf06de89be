"""Rules that need a C compiler are skipped without one, and values are the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import hybridnet as mx
from hybridnet import rewrite as rw

seen = []

@rw.local(tracks=["tanh"], db="canonicalize", tags=["fast_run", "needs_jit"])
def look(graph, node):
    seen.append(node.op)

class Net(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.contrib.foreach(lambda row, s: (F.tanh(row + s), row * s), x, F.ones((3,)))

net = Net()
net.hybridize()
rows, last = net(mx.nd.array([[1, 2, 3], [4, 5, 6]]))
print(bool(seen), "native_loops " in net.pass_report(), rows.asnumpy().tobytes().hex(), last.asnumpy().tolist())
"""


def run(**variables: str) -> list[str]:
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), **variables)
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(maxsplit=2)


def test_without_a_compiler_they_are_skipped_and_values_are_the_same(tmp_path) -> None:
    without = run(HYBRIDNET_JIT="0")
    assert without[:2] == ["False", "False"]
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler to compare with")
    for jit in ("1", "now"):
        assert run(HYBRIDNET_JIT=jit, HYBRIDNET_CACHE=str(tmp_path)) == ["True", "True", without[2]]
