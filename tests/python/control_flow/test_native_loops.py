"""Small loops as machine code: the bits of the interpreter, a damaged cache, and no machine code without a compiler."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMPILER = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

LOOP = """
import time
import hybridnet as mx

class Net(mx.gluon.HybridBlock):
    def hybrid_forward(self, F, i, s, limit):
        _, (i, s) = F.contrib.while_loop(
            lambda i, s: i < limit, lambda i, s: ([], [i + 1, F.tanh(s * 0.5 + i) + s]), [i, s], max_iterations=100000)
        return i, s

net = Net()
net.hybridize()
inputs = [mx.nd.array([0]), mx.nd.array([1, 2, 3]), mx.nd.array([1000])]

def run():
    return b"".join(value.asnumpy().tobytes() for value in net(*inputs)).hex()

first = run()
"""


def python(code: str, cache: Path, **variables: str) -> str:
    environment = dict(os.environ, PYTHONPATH=f"{ROOT / 'python'}:{ROOT / 'tests/python'}", HYBRIDNET_CACHE=str(cache))
    environment.pop("HYBRIDNET_CC", None)
    environment.update(variables)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


SHOWN = LOOP + "print(first, '<machine code>' in net.plan_text(), 'machine code' in net.plan_text())"


@needs_compiler
def test_random_programs_give_the_same_bits(tmp_path) -> None:
    program = "import sys\nsys.argv[1:] = ['--programs', '40']\nfrom control_flow import native_programs as p\np.main()"
    said = python(program, tmp_path, HYBRIDNET_JIT="now")
    programs, native = (int(word) for word in said.split() if word.isdigit())
    assert programs == 40
    assert native > 10, said  # rewrites remove loops of one or no iteration


@needs_compiler
def test_a_loop_that_runs_often_changes_to_machine_code_in_the_background(tmp_path) -> None:
    code = LOOP + (
        "assert '<machine code when it has run often>' in net.plan_text()\n"
        "end = time.monotonic() + 60\n"
        "while '<machine code>' not in net.plan_text() and time.monotonic() < end:\n"
        "    assert run() == first\n"
        "assert '<machine code>' in net.plan_text()\n"
        "assert run() == first\n"
    )
    python(code, tmp_path)
    assert len(list((tmp_path / "native").glob("*.so"))) == 1


@needs_compiler
def test_a_process_that_ends_while_it_compiles_ends(tmp_path) -> None:
    python(LOOP + "for _ in range(12): run()", tmp_path)


@needs_compiler
def test_the_cache_serves_the_next_process(tmp_path) -> None:
    assert python(SHOWN, tmp_path, HYBRIDNET_JIT="now").endswith("True True")
    (kept,) = (tmp_path / "native").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    made = kept.stat().st_mtime_ns
    assert python(SHOWN, tmp_path, HYBRIDNET_JIT="now").endswith("True True")
    assert kept.stat().st_mtime_ns == made


@needs_compiler
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "foreign", "writable by others", "link", "folder"])
def test_a_damaged_cache_is_made_anew(damage, tmp_path) -> None:
    wanted = python(SHOWN, tmp_path, HYBRIDNET_JIT="now")
    (kept,) = (tmp_path / "native").iterdir()
    whole = kept.read_bytes()
    if damage == "cut":
        kept.write_bytes(whole[: len(whole) // 2])
    elif damage == "changed":
        kept.write_bytes(whole[:700] + bytes([whole[700] ^ 255]) + whole[701:])
    elif damage == "empty":
        kept.write_bytes(b"")
    elif damage == "foreign":
        kept.write_bytes(b"\x7fELF" + os.urandom(4000))
    elif damage == "writable by others":
        kept.chmod(0o777)
    elif damage == "link":
        kept.rename(tmp_path / "elsewhere.so")
        kept.symlink_to(tmp_path / "elsewhere.so")
    else:
        kept.unlink()
        kept.mkdir()
    said = python(SHOWN, tmp_path, HYBRIDNET_JIT="now")
    assert said.split()[0] == wanted.split()[0]
    assert said == wanted or damage == "folder"  # a folder cannot be replaced: the interpreter runs
    if damage != "folder":
        assert kept.read_bytes()[: len(whole)] == whole or damage == "link"


@needs_compiler
def test_a_folder_that_others_may_write_is_not_used(tmp_path) -> None:
    (tmp_path / "native").mkdir()
    (tmp_path / "native").chmod(0o777)
    assert python(SHOWN, tmp_path, HYBRIDNET_JIT="now").endswith("True True")
    assert list((tmp_path / "native").iterdir()) == []


@needs_compiler
@pytest.mark.parametrize(
    "variables",
    [{"HYBRIDNET_JIT": "0"}, {"HYBRIDNET_CC": "/nowhere/cc"}, {"HYBRIDNET_CC": "no-such-compiler"}, {"PATH": ""}],
)
def test_without_a_compiler_loops_are_interpreted(variables, tmp_path) -> None:
    wanted = python(SHOWN, tmp_path / "a", HYBRIDNET_JIT="now")
    said = python(SHOWN, tmp_path / "b", **{"HYBRIDNET_JIT": "now", **variables})
    assert said == wanted.split()[0] + " False False"
    assert not (tmp_path / "b").exists()


def test_a_compiler_that_fails_leaves_the_interpreter(tmp_path) -> None:
    wanted = python(SHOWN, tmp_path / "a", HYBRIDNET_JIT="0").split()[0]
    said = python(SHOWN, tmp_path / "b", HYBRIDNET_JIT="now", HYBRIDNET_CC="/bin/false")
    assert said == f"{wanted} False True"
    assert list((tmp_path / "b" / "native").iterdir()) == []


def test_an_invalid_setting_is_an_error(tmp_path) -> None:
    with pytest.raises(AssertionError, match=r"HYBRIDNET_JIT.*0 \| 1 \| now|HYBRIDNET_JIT"):
        python(SHOWN, tmp_path, HYBRIDNET_JIT="perhaps")


@needs_compiler
def test_interrupts_errors_and_limits_stay(tmp_path) -> None:
    code = """
import hybridnet as mx
class Net(mx.gluon.HybridBlock):
    def __init__(self, on_limit):
        super().__init__()
        self.on_limit = on_limit
    def hybrid_forward(self, F, i):
        return F.contrib.while_loop(lambda i: i > 0, lambda i: (i * 2, [i + 1]), [i], max_iterations=5,
                                    on_limit=self.on_limit)[1][0]
for on_limit in ("stop", "raise"):
    net = Net(on_limit)
    net.hybridize()
    try:
        print(net(mx.nd.array([1])).asscalar())
    except mx.base.MXNetError as error:
        print("limit" in str(error))
"""
    assert python(code, tmp_path, HYBRIDNET_JIT="now").split() == ["6.0", "True"]
