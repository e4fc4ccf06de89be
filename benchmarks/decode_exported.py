"""The whole decode of decode.py as an exported file, run by Python, C++ and Java: milliseconds per word.

    python benchmarks/decode_exported.py [--rounds 3] [--batch 1]

Needs a compiler for C++, a JDK, `tools/dev build` and `python3 tools/java.py build`. Each program is a new
process in each round, which loads the file, decodes once, and reports the median of three further decodes; all must
choose the words that the block in Python chose.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "sides"), str(ROOT / "python")]

CPP = """
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include "hybridnet/cpp/model.h"

namespace hn = hybridnet::cpp;

int main(int, char** argv) {
  const std::string prefix = argv[1];
  const hn::Model model(prefix + "-symbol.json", prefix + "-0000.params");
  std::map<std::string, hn::Array> check;
  for (auto& [name, array] : hn::load_arrays(prefix + ".check")) check.emplace(name, array);
  for (int run = 0; run < 4; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    const hn::Array words = model.run({check.at("words")})[0];
    const auto got = words.values<int64_t>(), wanted = check.at("chosen").values<int64_t>();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (!std::equal(got.begin(), got.end(), wanted.begin(), wanted.end())) return 1;
    std::printf("%.9f\\n", seconds.count());
  }
}
"""
JAVA = """
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.hybridnet.Model;
import org.hybridnet.NDArray;

public class Exported {
  public static void main(String[] arguments) {
    Map<String, NDArray> check = NDArray.load(Path.of(arguments[0] + ".check"));
    try (Model model = Model.load(arguments[0])) {
      for (int run = 0; run < 4; run++) {
        long begin = System.nanoTime();
        long[] words = model.predict(check.get("words"))[0].toLongs();
        double seconds = (System.nanoTime() - begin) * 1e-9;
        if (!Arrays.equals(words, check.get("chosen").toLongs())) System.exit(1);
        System.out.println(seconds);
      }
    }
  }
}
"""
PYTHON = """
import sys, time
import hybridnet as mx
prefix = sys.argv[1]
check = mx.nd.load(prefix + ".check")
block = mx.gluon.SymbolBlock.imports(prefix + "-symbol.json", ["data"], prefix + "-0000.params")
block.hybridize(static_alloc=True)
for run in range(4):
    begin = time.perf_counter()
    words = block(check["words"]).asnumpy()
    seconds = time.perf_counter() - begin
    assert (words == check["chosen"].asnumpy()).all()
    print(seconds)
"""


def export(prefix: str, batch: int) -> None:
    os.environ["DECODE_WORDS"] = tempfile.gettempdir()
    import decode_hybridnet_side as side
    import hybridnet as mx
    from decode_net import PROMPT, TOKENS, prompt

    class Whole(mx.gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.loop = side.Loop(side.Decoder(side.scores()))

        def forward(self, words: object) -> object:
            return self.loop(words, *side.empty_caches(batch, PROMPT + TOKENS))[0]

    block = Whole()
    block.hybridize(static_alloc=True)
    words = mx.nd.array(prompt(batch), dtype="int64")
    mx.nd.save(f"{prefix}.check", {"words": words, "chosen": block(words)})
    block.export(prefix)


def programs(folder: Path) -> dict[str, list[str]]:
    """The command of each side; a prefix follows."""
    library = ROOT / "python" / "hybridnet"
    (folder / "exported.cc").write_text(CPP, encoding="utf-8")
    (folder / "Exported.java").write_text(JAVA, encoding="utf-8")
    (folder / "exported.py").write_text(PYTHON, encoding="utf-8")
    include, program = str(ROOT / "include"), str(folder / "exported")
    flags = ["-O2", "-std=c++20", "-I", include, f"-L{library}", "-lhybridnet", f"-Wl,-rpath,{library}"]
    subprocess.run([os.environ.get("CXX", "c++"), str(folder / "exported.cc"), "-o", program, *flags], check=True)
    jars = sorted((ROOT / "build" / "java").glob("hybridnet-*.jar"))
    if not jars:
        raise SystemExit("decode_exported.py: no jar. Fix: python3 tools/java.py build")
    java = ["java", "-cp", str(jars[-1]), f"-Djava.library.path={library}", str(folder / "Exported.java")]
    return {"Python": [sys.executable, str(folder / "exported.py")], "C++": [program], "Java": java}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        prefix = f"{name}/decode"
        # In a process of its own, so that its memory is free again.
        code = f"import decode_exported as d; d.export({prefix!r}, {args.batch})"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE)
        env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
        sides = programs(Path(name))
        times: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(args.rounds):
            for side, command in sides.items():
                done = subprocess.run([*command, prefix], check=True, stdout=subprocess.PIPE, text=True, env=env)
                times[side].append(statistics.median(map(float, done.stdout.split()[1:])))
        from decode_net import TOKENS

        for side, seconds in times.items():
            ratio = statistics.median(seconds) / statistics.median(times["Python"])
            print(f"{side}: {statistics.median(seconds) / TOKENS * 1e3:.2f} ms a word, {ratio:.3f} of Python")


if __name__ == "__main__":
    main()
