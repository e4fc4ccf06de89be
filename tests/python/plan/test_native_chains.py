"""Chains of elementwise operators as machine code give the interpreter's bits on every instruction set."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")

CHAIN = """
import time
import hybridnet as mx

class Net(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return F.tanh(x * 2 + 1) * (x - 0.5) + x

net = Net()
net.hybridize()
x = mx.nd.array(mx.np.arange(SIZE).asnumpy() / SIZE)

def run():
    return net(x).asnumpy().tobytes()

first = run()
"""


def python(code: str, cache: Path, **variables: str) -> str:
    environment = dict(os.environ, PYTHONPATH=f"{ROOT / 'python'}:{ROOT / 'tests/python'}", HYBRIDNET_CACHE=str(cache))
    environment.pop("HYBRIDNET_CC", None)
    environment.update(variables)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@needs_compiler
@pytest.mark.parametrize("isa", [None, "avx2", "sse4"])
def test_random_chains_give_the_same_bits(isa, tmp_path) -> None:
    program = (
        "import sys, warnings\nwarnings.simplefilter('ignore')\n"
        "sys.argv[1:] = ['--programs', '25']\nfrom plan import chain_programs as p\np.main()"
    )
    capped = {} if isa is None else {"HYBRIDNET_MAX_ISA": isa}
    said = python(program, tmp_path, HYBRIDNET_JIT="now", **capped)
    programs, native = (int(word) for word in said.split() if word.isdigit())
    assert programs == 25
    assert native > 8, said  # others are float16, or have no two adjacent operators with a form in C


@needs_compiler
def test_a_chain_that_runs_often_changes_to_machine_code_in_the_background(tmp_path) -> None:
    code = CHAIN.replace("SIZE", "1000000") + (
        "assert '<machine code>' not in net.plan_text()\n"
        "end = time.monotonic() + 60\n"
        "while '<machine code>' not in net.plan_text() and time.monotonic() < end:\n"
        "    assert run() == first\n"
        "assert '<machine code>' in net.plan_text()\n"
        "assert run() == first\n"
    )
    python(code, tmp_path)
    assert len(list((tmp_path / "native").glob("*.so"))) == 1


@needs_compiler
def test_short_chains_are_interpreted(tmp_path) -> None:
    for size, native in ((4095, "False"), (4096, "True")):
        code = CHAIN.replace("SIZE", str(size)) + "print('<machine code>' in net.plan_text())"
        assert python(code, tmp_path, HYBRIDNET_JIT="now") == native


@pytest.mark.parametrize("variables", [{"HYBRIDNET_JIT": "0"}, {"HYBRIDNET_JIT": "now", "HYBRIDNET_CC": "/bin/false"}])
def test_without_a_compiler_chains_are_interpreted(variables, tmp_path) -> None:
    shown = CHAIN.replace("SIZE", "5000") + "print(first.hex(), '<machine code>' in net.plan_text())"
    plain = python(shown, tmp_path / "a", **variables)
    assert plain.endswith(" False")
    if any(map(shutil.which, ("cc", "gcc", "clang"))):
        assert python(shown, tmp_path / "b", HYBRIDNET_JIT="now").split() == [plain.split()[0], "True"]
