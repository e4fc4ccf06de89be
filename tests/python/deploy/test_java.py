"""java/, beside its own tests (tools/dev test java): the guide's code runs, examples agree, the jar is complete."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import hybridnet as mx
import numpy as np
import pytest
from hybridnet import libinfo

from . import chromium
from .client_programs import ROOT
from .java_programs import NATIVES, TOOL, java, output_of

EXAMPLES = ROOT / "examples" / "export_to_java"


def test_the_code_of_the_guide_runs(jar, tmp_path, monkeypatch) -> None:
    guide = (ROOT / "docs" / "deploy-java.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", guide, re.DOTALL):
        exec(compile(code, "deploy-java.md", "exec"), {})
    blocks = [code for code in re.findall(r"```java\n(.*?)```", guide, re.DOTALL) if not code.startswith("package ")]
    assert len(blocks) >= 6
    methods = "".join(f"static void block{i}() {{\n{block}}}\n" for i, block in enumerate(blocks))
    calls = "".join(f"block{i}();" for i in range(len(blocks)))
    imports = "".join(f"import {name};" for name in ("java.nio.*", "java.util.*", "org.hybridnet.*"))
    program = tmp_path / "Guide.java"
    program.write_text(
        f"{imports}\nclass Guide {{\n{methods}public static void main(String[] a) {{ {calls} }} }}", "utf-8"
    )
    said = java(jar, program, folder=tmp_path).splitlines()
    for line in re.findall(r"System\.out\.println.*// (.*)", guide):
        assert line in said
    assert any("(1, 5)" in line for line in said), "the ShapeError is not printed"
    tuned = mx.gluon.SymbolBlock.imports("tuned-symbol.json", ["data"], "tuned-0000.params")
    assert tuned(mx.nd.array([[1, 0, 0, 0], [0, 1, 0, 0]])).asnumpy().argmax(1).tolist() == [2, 0]
    trainer = mx.gluon.Trainer(tuned.collect_params(), "sgd", {"momentum": 0.9})
    trainer.load_states("tuned.states")
    assert trainer.optimizer.num_update == 100
    assert trainer.learning_rate == 0.125 and trainer.optimizer.lr_scheduler.factor == 0.5


def test_the_examples_agree_with_python(jar, tmp_path) -> None:
    output_of(sys.executable, EXAMPLES / "export.py", tmp_path)
    said = java(jar, EXAMPLES / "Classify.java", tmp_path / "digits", tmp_path / "digits.params")
    assert "Java agrees: 297 of 297 predictions" in said
    said = java(jar, EXAMPLES / "Decode.java", tmp_path / "search", tmp_path / "search.params")
    assert "Java finds Python's words" in said


def test_the_server_answers_many_at_once(jar, tmp_path) -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    images = mx.nd.random.uniform(shape=(40, 1, 8, 8))
    expected = [net(images[i : i + 1]).asnumpy()[0] for i in range(40)]
    net.export(str(tmp_path / "net"))
    command = ["java", "-cp", jar, f"-Djava.library.path={NATIVES}", EXAMPLES / "Serve.java", tmp_path / "net"]
    command += [0, 1, 8, 8]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()

            def ask(body: str) -> str:
                with urllib.request.urlopen(address, body.encode(), timeout=60) as answer:
                    return answer.read().decode()

            with ThreadPoolExecutor(8) as clients:
                answers = list(clients.map(ask, [json.dumps(image.tolist()) for image in images.asnumpy()]))
            for got, want in zip(answers, expected, strict=True):
                assert np.array_equal(np.array(json.loads(got), "float32"), want)
            for body, words in [("[1, 2]", "expected a Java array of 64 values, got 2"), ("[what]", "what"), ("", "")]:
                with pytest.raises(urllib.error.HTTPError) as failure:
                    ask(body)
                assert failure.value.code == 400
                assert words in failure.value.read().decode()
        finally:
            server.terminate()


@pytest.mark.skipif(chromium.PROGRAM is None, reason="no Chromium is installed")
def test_a_digit_that_is_drawn_on_the_page_is_predicted(jar, tmp_path) -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.Dense(10))
    net.initialize(mx.init.Normal(1))
    net.hybridize()
    net(mx.nd.zeros((1, 1, 8, 8)))
    net.export(str(tmp_path / "net"))
    command = ["java", "-cp", jar, f"-Djava.library.path={NATIVES}", EXAMPLES / "Serve.java", tmp_path / "net"]
    with subprocess.Popen([str(word) for word in [*command, 0, 1, 8, 8]], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip().removesuffix("predict")
            with chromium.page(tmp_path / "browser") as page:
                page.open(address)
                assert page.value("document.getElementById('answer').textContent") == "?"
                left, top = page.value("(b => [b.x, b.y])(document.getElementById('digit').getBoundingClientRect())")
                for stroke in ([(60 + 40 * i, 60) for i in range(6)], [(260 - 20 * i, 60 + 40 * i) for i in range(6)]):
                    page.drag([(left + x, top + y) for x, y in stroke])
                    page.value("done = asked")
                    page.wait_for("document.getElementById('scores').textContent.startsWith('[')")
                pixels = np.array(page.value("pixels"), "float32").reshape(1, 1, 8, 8)
                assert 10 < (pixels > 0).sum() < 50  # the strokes draw a seven
                assert pixels[0, 0, 1, 2] == pixels.max()
                expected = net(mx.nd.array(pixels)).asnumpy()[0]
                number = f"document.getElementById('answer').textContent == '{expected.argmax()}'"
                scores = "JSON.parse(document.getElementById('scores').textContent)"
                page.wait_for(f"{number} && Math.abs({scores}[0] - {expected[0]}) < 1e-3")
                page.value("document.getElementById('clear').click()")
                page.wait_for("pixels.every(value => value == 0)")
        finally:
            server.terminate()


PRINT = "System.out.println(org.hybridnet.HybridNet.version());"
PROGRAM = f"class Show {{ public static void main(String[] a) {{ {PRINT} }} }}"


COPY_ARRAYS = """
import java.nio.file.Path; import java.util.*; import org.hybridnet.*;
class CopyArrays {
  static NDArray copy(NDArray a) {
    switch (a.storage()) {
      case "csr":
        return NDArray.csr(copy(a.part("data")), copy(a.part("indices")), copy(a.part("indptr")), a.shape());
      case "row_sparse":
        return NDArray.rowSparse(copy(a.part("data")), copy(a.part("indices")), a.shape());
      default:
        return NDArray.ofBytes(a.dtype(), a.toBytes(), a.shape());
    }
  }
  public static void main(String[] words) {
    for (int i = 0; i < words.length; i += 3) {
      Path from = Path.of(words[i + 1]), to = Path.of(words[i + 2]);
      if (words[i].equals("list")) {
        NDArray.save(to, NDArray.loadList(from).stream().map(CopyArrays::copy).toList());
      } else {
        Map<String, NDArray> arrays = NDArray.load(from);
        arrays.replaceAll((name, array) -> copy(array));
        NDArray.save(to, arrays);
      }
    }
  }
}
"""


def test_parameter_files_of_mxnet_go_through_java_with_the_bits_of_python(jar, tmp_path) -> None:
    """A Java program reads values and sparse parts of every array and makes new arrays of them."""
    files = sorted((ROOT / "tests" / "fixtures").glob("params_*/*.params"))
    expected = [mx.nd.load(str(path)) for path in files]
    (tmp_path / "CopyArrays.java").write_text(COPY_ARRAYS, "utf-8")
    words: list[object] = []
    for number, (path, arrays) in enumerate(zip(files, expected, strict=True)):
        words += ["dict" if isinstance(arrays, dict) else "list", path, tmp_path / f"{number}.params"]
    java(jar, tmp_path / "CopyArrays.java", *words)
    storages = set()
    for number, arrays in enumerate(expected):
        found = mx.nd.load(str(tmp_path / f"{number}.params"))
        assert isinstance(found, dict) == isinstance(arrays, dict) or not arrays
        pairs = [(found[key], arrays[key]) for key in arrays] if isinstance(arrays, dict) else list(zip(found, arrays))
        assert len(found) == len(arrays) == len(pairs)
        for a, b in pairs:
            assert (a.stype, a.dtype, a.shape) == (b.stype, b.dtype, b.shape)
            for part in ("data", "indices", "indptr")[: {"default": 0, "row_sparse": 2, "csr": 3}[b.stype]]:
                assert getattr(a, part).asnumpy().tobytes() == getattr(b, part).asnumpy().tobytes()
            assert a.asnumpy().tobytes() == b.asnumpy().tobytes()
            storages.add(a.stype)
    assert len(files) > 9 and storages == {"default", "row_sparse", "csr"}


@pytest.mark.parametrize("option", ["-Dorg.hybridnet.library.path={natives}", "-Dorg.hybridnet.python={python}"])
def test_the_native_library_is_found(jar, tmp_path, option: str) -> None:
    (tmp_path / "Show.java").write_text(PROGRAM, "utf-8")
    option = option.format(natives=NATIVES, python=sys.executable)
    assert output_of("java", "-cp", jar, option, tmp_path / "Show.java") == f"{libinfo.__version__}\n"


def test_a_missing_native_library_is_an_error_that_says_where_it_was_sought(jar, tmp_path) -> None:
    (tmp_path / "Show.java").write_text(PROGRAM, "utf-8")
    done = subprocess.run(
        ["java", "-cp", str(jar), "-Dorg.hybridnet.python=/no/python", str(tmp_path / "Show.java")],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode != 0
    for words in ("libhybridnet_jni.so was not found", "the jar:", "java.library.path:", "the pip package:", "Fix:"):
        assert words in done.stderr


@pytest.mark.slow
def test_the_jar_with_native_libraries_needs_nothing_else(jar, tmp_path) -> None:
    if not (ROOT / "build" / "build.ninja").exists():
        pytest.skip("the jar is made of what tools/dev build leaves in build/")
    output_of("cmake", "--build", ROOT / "build", "--target", "hybridnet_package")
    output_of(sys.executable, TOOL, "jar", "--output", tmp_path)
    whole = next(tmp_path.glob("hybridnet-*.jar"))
    (tmp_path / "Show.java").write_text(PROGRAM, "utf-8")
    assert output_of("java", "-cp", whole, tmp_path / "Show.java") == f"{libinfo.__version__}\n"


def test_maven_builds_the_same_version() -> None:
    pom = (ROOT / "java" / "pom.xml").read_text("utf-8")
    assert f"<artifactId>hybridnet</artifactId>\n  <version>{libinfo.__version__}</version>" in pom
