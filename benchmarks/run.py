"""HybridNet beside its peers, in one run: medians and ratios, one row per budget.

    python benchmarks/run.py [--only SUBSTRING] [--rounds 7] [--isa WORD] [--write]
    python benchmarks/run.py --against FOLDER   # another built checkout of HybridNet as the peer: before and after

Each side runs in a process of its own and the two take turns, so both see the same state of the machine and neither's
threads disturb the other's. A ratio is HybridNet / peer: lower is better. Where a peer is not installed, HybridNet's
own time is shown alone.
``--isa avx2`` measures with instruction sets up to AVX2 on both sides: HYBRIDNET_MAX_ISA, and the peers' settings.
``--write`` puts the table into benchmarks/RESULTS.md (with --isa avx2: RESULTS_avx2.md) with date, machine and
instruction sets.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.util
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROUND_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class Case:
    """One row: a name that both sides know, what it is, the budget (None: shown only), the peer's variant.

    side: the peer's name. theirs: what the case is called there, if otherwise. limit: a budget in seconds.
    """

    name: str
    what: str
    budget: float | None
    peer: str = "PyTorch eager"
    side: str = "torch"
    theirs: str = ""
    limit: float | None = None


CASES = [
    Case("add_4x4", "imperative a+b, 4x4", 0.8),
    Case("record_backward_5", "record + backward of five ops, 4x4", 0.8),
    Case("mlp_imperative", "MLP 784-512-512-10 train step, batch 128, imperative", 0.9),
    Case("mlp_hybrid", "the same, hybridized", 0.75),
    Case("lenet_hybrid", "LeNet train step, batch 64, hybridized", 0.9, "PyTorch channels-last"),
    Case("resnet18_train", "ResNet-18 train step, batch 8, 224x224, hybridized", 1.0, "PyTorch channels-last"),
    Case("resnet50_infer_1", "ResNet-50 inference, batch 1, hybridized", 0.6),
    Case("resnet50_infer_16", "ResNet-50 inference, batch 16, hybridized", None),
    Case("expression_16m", "tanh(a*x+b)*sigmoid(x)+x, 16M float32, hybridized", 0.25),
    Case("linear_16m", "a*x+b*y+z, 16M float32, hybridized", None),
    Case("loader_0", "DataLoader, 1024 samples of 3x64x64, batch 32, 0 workers", 1.0),
    Case("loader_2", "the same, 2 workers", 1.0),
    Case("lstm_foreach", "LSTM 2x256 by foreach, batch 32, length 35, forward, hybridized", 1.0, "PyTorch, cells"),
    Case("lstm_foreach", "the same", 1.0, "PyTorch nn.LSTM", theirs="lstm_fused"),
    Case("lstm_foreach", "the same", 1.0, "torch.compile, cells", theirs="lstm_compiled"),
    Case("lstm_foreach", "the same", 1.0, "jax.lax.scan", "jax"),
    Case("lstm_foreach_train", "LSTM 2x256 by foreach, forward and backward", 1.0, "PyTorch, cells"),
    Case("lstm_foreach_train", "the same", 1.0, "PyTorch nn.LSTM", theirs="lstm_fused_train"),
    Case("lstm_foreach_train", "the same", 1.0, "torch.compile, cells", theirs="lstm_compiled_train"),
    Case("lstm_foreach_train", "the same", 1.0, "jax.lax.scan", "jax"),
    Case("while_1000", "while_loop of 1000 tiny iterations, hybridized, at most 1 ms", 0.1, limit=1e-3),
    Case("while_1000", "the same", None, "jax.lax.while_loop", "jax", limit=1e-3),
    Case("cond_call", "cond of two tiny branches, hybridized", 0.8),
    Case("cond_call", "the same", None, "jax.lax.cond", "jax"),
]
PEERS = ("torch", "jax")
# What caps the instruction sets of each library: HybridNet; oneDNN; PyTorch's own kernels; MKL; JAX.
ISA_CAPS = {
    isa: {
        "HYBRIDNET_MAX_ISA": isa,
        "ONEDNN_MAX_CPU_ISA": onednn,
        "ATEN_CPU_CAPABILITY": aten,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        "XLA_FLAGS": f"--xla_cpu_max_isa={xla}",
    }
    for isa, onednn, aten, mkl, xla in (
        ("sse4", "SSE41", "default", "SSE4_2", "SSE4_2"),
        ("avx2", "AVX2", "avx2", "AVX2", "AVX2"),
        ("avx512", "AVX512_CORE", "avx512", "AVX512", "AVX512"),
    )
}


class Side:
    """One framework in a process of its own, asked over a pipe."""

    def __init__(self, script: str, checkout: pathlib.Path = HERE.parent, arguments: tuple[str, ...] = ()) -> None:
        env = dict(os.environ)
        env["PYTHONPATH"] = os.pathsep.join([str(checkout / "python"), env.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "sides" / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def ask(self, **request) -> dict:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a benchmark process ended early")
        return json.loads(line)

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait(timeout=30)


def rounds_of(sides: dict[str, Side], case: Case, rounds: int) -> dict[str, list[float]]:
    """Seconds per call, by side, one number a round; the sides take turns."""
    repeats, times = {}, {}
    called = {name: (case.theirs or case.name) if name in PEERS else case.name for name in sides}
    for name, side in sides.items():
        reply = side.ask(case=called[name], repeat=1)
        if "error" in reply:
            print(f"  {name}: {reply['error']}", file=sys.stderr)
            continue
        reply = side.ask(case=called[name], repeat=2)
        repeats[name] = max(1, int(ROUND_SECONDS / max(reply["seconds"], 1e-9)))
        times[name] = []
    for _ in range(rounds):
        for name in repeats:
            times[name].append(sides[name].ask(case=called[name], repeat=repeats[name])["seconds"])
    return times


def import_seconds(module: str, rounds: int) -> float:
    """Median wall time that `import module` adds to a bare interpreter."""
    env = dict(os.environ, PYTHONPATH=str(HERE.parent / "python"))

    def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=env, check=True)
        return time.perf_counter() - start

    run(f"import {module}")
    return statistics.median(run(f"import {module}") - run("pass") for _ in range(rounds))


def unit(seconds: float) -> str:
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {name}"
    return f"{seconds * 1e9:.0f} ns"


def row(
    what: str, peer: str, ours: float, theirs: float | None, budget: float | None, limit: float | None = None
) -> str:
    ratio = f"{ours / theirs:.2f}" if theirs else "-"
    kept = [ours <= limit] if limit else []
    if theirs and budget:
        kept.append(ours / theirs <= budget)
    met = ("yes" if all(kept) else "NO") if kept else ""
    return f"| {what} | {peer} | {unit(ours)} | {unit(theirs) if theirs else '-'} | {ratio} | {budget or ''} | {met} |"


def machine() -> str:
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}"


def instruction_sets() -> str:
    """Those that HybridNet's kernels use, such as "avx2 (Highway AVX2, oneDNN AVX2)"."""
    env = dict(os.environ, PYTHONPATH=str(HERE.parent / "python"))
    code = "import hybridnet; print(hybridnet.runtime.isa())"
    done = subprocess.run([sys.executable, "-c", code], env=env, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def compare_builds(other: pathlib.Path, only: str, rounds: int) -> None:
    """Prints one row per case of HybridNet itself: the other checkout's time, this one's, and their ratio.

    The minima are shown beside the medians: noise of the machine only adds time.
    """
    sides = {"before": Side("hybridnet_side.py", other), "now": Side("hybridnet_side.py")}
    print("| work | before | now | ratio of medians | ratio of minima |\n|---|---|---|---|---|")
    for case in {case.name: case for case in CASES}.values():
        if only not in case.name:
            continue
        times = rounds_of(sides, case, rounds)
        if len(times) < len(sides):
            print(f"| {case.name} | failed | | | |", flush=True)
            continue
        before, now = (statistics.median(times[name]) for name in sides)
        fastest = min(times["now"]) / min(times["before"])
        print(f"| {case.name} | {unit(before)} | {unit(now)} | {now / before:.2f} | {fastest:.2f} |", flush=True)
    for side in sides.values():
        side.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="run the cases whose name holds this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="keep the table in benchmarks/RESULTS.md")
    parser.add_argument("--against", metavar="FOLDER", type=pathlib.Path, help="another built checkout as the peer")
    parser.add_argument("--isa", choices=ISA_CAPS, help="the widest instruction sets to use")
    args = parser.parse_args()
    if args.isa:
        os.environ.update(ISA_CAPS[args.isa])
    isa = instruction_sets()
    if args.isa and isa.split()[0] != args.isa:
        raise SystemExit(f"run.py: --isa {args.isa}: this machine computes with {isa}")
    print(isa)
    if args.against:
        compare_builds(args.against.resolve(), args.only, args.rounds)
        return
    sides = {"hybridnet": Side("hybridnet_side.py")}
    for name in PEERS:
        if importlib.util.find_spec(name) is not None:
            sides[name] = Side(f"{name}_side.py")
    versions = {name: side.ask(case="version", repeat=0)["version"] for name, side in sides.items()}
    lines = ["| work | peer | HybridNet | peer | ratio | budget | met |", "|---|---|---|---|---|---|---|"]
    print("\n".join(lines))

    def show(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    for case in CASES:
        if args.only not in case.name:
            continue
        pair = {name: side for name, side in sides.items() if name in ("hybridnet", case.side)}
        times = rounds_of(pair, case, args.rounds)
        if "hybridnet" not in times:
            show(f"| {case.what} | {case.peer} | failed | | | {case.budget or ''} | NO |")
            continue
        theirs = statistics.median(times[case.side]) if times.get(case.side) else None
        show(row(case.what, case.peer, statistics.median(times["hybridnet"]), theirs, case.budget, case.limit))
    for side in sides.values():
        side.close()
    if args.only in "import":
        ours = import_seconds("hybridnet", 5)
        theirs = import_seconds("torch", 3) if "torch" in sides else None
        show(row("import (budget 0.25 s)", "import torch", ours, theirs, 0.3))
    if args.write:
        stamp = f"{datetime.date.today()}, {machine()}, instruction sets {isa}, "
        stamp += ", ".join(f"{k} {v}" for k, v in versions.items())
        command = "tools/dev bench --write" + (f" --isa {args.isa}" if args.isa else "")
        (HERE / (f"RESULTS_{args.isa}.md" if args.isa else "RESULTS.md")).write_text(
            f"# Measured side by side\n\nWritten by `{command}`; how it is measured stands in run.py. "
            f"Ratios are HybridNet / peer, medians of {args.rounds} rounds.\n\n{stamp}\n\n" + "\n".join(lines) + "\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
