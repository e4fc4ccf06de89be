"""An operator has one kernel: registering a second one fails. Rewrites choose alternatives, never a linker flag."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import hybridnet as mx
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("operators in libraries need a C compiler")
    path = tmp_path_factory.mktemp("row7") / "liboperators.so"
    source = ROOT / "examples/operator_library/operators.c"
    text = (
        source.read_text(encoding="utf-8")
        .split("/* ---- use_scaled_square")[0]  # its rule's name would be refused first
        .replace('"scaled_square"', '"row7_square"')
        .replace('"row_extremes"', '"row7_rows"')
    )
    changed = path.with_suffix(".c")
    changed.write_text(text, encoding="utf-8")
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(changed), "-o", str(path)], check=True
    )
    return path


def test_a_second_kernel_for_the_same_operator_is_refused(example):
    mx.library.load(str(example), verbose=False)
    value = mx.nd.ones((2, 3))
    before = mx.nd.row7_square(value, scale=3).asnumpy()
    again = shutil.copy(example, example.with_name("libother.so"))
    with pytest.raises(mx.MXNetError, match="row7_square"):
        mx.library.load(str(again), verbose=False)
    assert (mx.nd.row7_square(value, scale=3).asnumpy() == before).all()


def test_a_name_of_the_library_cannot_be_taken(example, tmp_path):
    text = (
        example.with_suffix(".c")
        .read_text(encoding="utf-8")
        .replace('"row7_square"', '"exp"')
        .replace("row7_rows", "row7_more")
    )
    source = tmp_path / "taken.c"
    source.write_text(text, encoding="utf-8")
    out = source.with_suffix(".so")
    subprocess.run(
        [shutil.which("cc"), "-shared", "-fPIC", f"-I{ROOT / 'include'}", str(source), "-o", str(out)], check=True
    )
    with pytest.raises(mx.MXNetError, match="exp"):
        mx.library.load(str(out), verbose=False)
    assert mx.nd.exp(mx.nd.zeros(1)).asnumpy() == 1
