"""HybridNet compared with its peers in one run: one row per case of cases.py, the best of our modes over the best peer.

    python benchmarks/run.py [--only PART,PART] [--rounds 9] [--isa WORD] [--write]
    python benchmarks/run.py --warm             # runs everything once: fills the compilers' caches, measures nothing
    python benchmarks/run.py --against FOLDER   # another built checkout of HybridNet as the peer: before and after

Each side runs in a separate process and the sides take turns, so all run under the same conditions, and the threads of
one side do not disturb the others. Figures are medians over the rounds, with the minimum in brackets. A ratio is
HybridNet / peer: lower is better. Peers that are not installed are left out.
``--isa avx2`` measures with instruction sets up to AVX2 on all sides: HYBRIDNET_MAX_ISA, and the peers' settings. These
settings do not limit ONNX Runtime and JAX: if the machine has wider instruction sets, their times are marked "not
capped".
``--isa best``, the default, uses all instruction sets of the machine on all sides.
``--write`` puts the rows into the section of this machine and instruction set in benchmarks/RESULTS.md; without --isa
it measures the best instruction sets and, if those are wider than AVX2, also AVX2. Partial runs (--only) add up to a
section.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import CASES, SIDES, Case, Peer
from quiet import Watch
from sections import Section, instruction_sets, keep, machine, peer_versions, stamp

HERE = Path(__file__).resolve().parent
ROUND_SECONDS = 0.12
LEAST_ROUNDS = 9  # in a run whose rows are written
SETTLE_SECONDS = 0.02  # in which the previous side's threads stop waiting
COLUMNS = ("work", "HybridNet", "best peer", "ratio", "goal", "met", "the others", "measured")
HEAD = """# Measured side by side

Written by `tools/dev bench --write`; `benchmarks/run.py` says how it is measured, `benchmarks/cases.py` what.
Times are medians of at least 9 rounds in which the sides take turns, the least in brackets. A ratio is HybridNet / best
peer, of the medians (of the least): lower is better. Where HybridNet has two modes, the better one counts. "ahead" is a
ratio of at most 1 that misses the goal. The last column says on which day and commit a row was measured."""
# The settings that cap the instruction sets of each library: HybridNet; oneDNN; PyTorch's own kernels; MKL; JAX.
# torch.compile caches programs without the cap that they were compiled for, so each cap has a separate folder.
ISA_CAPS = {
    isa: {
        "HYBRIDNET_MAX_ISA": isa,
        "ONEDNN_MAX_CPU_ISA": onednn,
        "ATEN_CPU_CAPABILITY": aten,
        "MKL_ENABLE_INSTRUCTIONS": mkl,
        "XLA_FLAGS": f"--xla_cpu_max_isa={xla}",
        "TORCHINDUCTOR_CACHE_DIR": str(Path(tempfile.gettempdir()) / f"torchinductor_{isa}"),
    }
    for isa, onednn, aten, mkl, xla in (
        ("sse4", "SSE41", "default", "SSE4_2", "SSE4_2"),
        ("avx2", "AVX2", "avx2", "AVX2", "AVX2"),
        ("avx512", "AVX512_CORE", "avx512", "AVX512", "AVX512"),
    )
} | {"best": {}}
# Sides that a cap does not limit: ONNX Runtime has none, and JAX's does not affect the library of its products (with
# AVX2 one core multiplies 1024 x 1024 at 258 GFLOP/s, the same as without a cap, although the limit of AVX2 is 142).
UNCAPPED = ("onnxruntime", "jax", "openvino")


class Side:
    """One framework in a separate process, which answers requests over a pipe."""

    def __init__(self, name: str, checkout: Path = HERE.parent, env: dict[str, str] | None = None) -> None:
        env = dict(os.environ if env is None else env)
        env["PYTHONPATH"] = os.pathsep.join([str(checkout / "python"), env.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "sides" / f"{name}_side.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def ask(self, **request: object) -> dict:
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


@dataclasses.dataclass
class Program:
    """One way to do the work: a case of one side, and its times of all rounds."""

    label: str
    side: Side
    key: str
    peer: Peer | None = None
    repeat: int = 1
    times: list[float] = dataclasses.field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def least(self) -> float:
        return min(self.times)

    def prepare(self) -> bool:
        """Builds, compiles and warms up the case, and computes its calls per round; False if it fails."""
        for repeat in (1, 2, 0):
            repeat = repeat or max(1, int(ROUND_SECONDS / 4 / self.seconds))
            reply = self.side.ask(case=self.key, repeat=repeat)
            if "error" in reply:
                print(f"  {self.key}: {reply['error']}", file=sys.stderr)
                return False
            self.seconds = max(reply["seconds"], 1e-9)
        self.repeat = max(1, int(ROUND_SECONDS / self.seconds))
        return True

    def measure(self) -> None:
        time.sleep(SETTLE_SECONDS)
        self.times.append(self.side.ask(case=self.key, repeat=self.repeat)["seconds"])

    def __str__(self) -> str:
        return f"{self.label} {unit(self.median)} ({unit(self.least)})"


def take_turns(programs: list[Program], rounds: int) -> tuple[list[Program], str]:
    """Measures the programs that run, and lets the sides drop the case. Returns them and a remark on other load."""
    working = [program for program in programs if program.prepare()]
    watch = Watch()
    for _ in range(rounds):
        for program in working:
            program.measure()
    remark = watch.remark()
    for side in {id(program.side): program.side for program in programs}.values():
        side.ask(case="forget")
    return working, remark


def programs_of(case: Case, sides: dict[str, Side], capped: bool = False) -> list[Program]:
    """capped: the instruction sets are limited below the machine's."""
    ours = [Program(mode, sides["hybridnet"], f"{case.name}/{mode}") for mode in case.modes]
    peers = [peer for peer in case.peers if peer.side in sides]
    if capped:
        peers = [peer.beside("not capped") if peer.side in UNCAPPED else peer for peer in peers]
    return ours + [Program(peer.label, sides[peer.side], f"{case.name}/{peer.variant}", peer) for peer in peers]


def unit(seconds: float) -> str:
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {name}"
    return f"{seconds * 1e9:.0f} ns"


def verdict(case: Case, ratio: float, ours: Program, peers: list[Program]) -> str:
    """yes: all goals of the row are reached; ahead: no peer is faster; NO: a peer is, or the time limit is exceeded."""
    own_goals = [ours.median / one.median <= one.peer.goal for one in peers if one.peer and one.peer.goal]
    in_time = case.limit is None or ours.median <= case.limit
    if ratio <= case.goal and in_time and all(own_goals):
        return "yes"
    return "ahead" if ratio <= 1 and in_time else "NO"


def row(case: Case, programs: list[Program], measured: str) -> str:
    """The table's line for programs that have been measured."""
    ours = sorted((one for one in programs if one.peer is None), key=lambda one: one.median)
    peers = sorted((one for one in programs if one.peer and one.peer.is_rival), key=lambda one: one.median)
    if not ours:
        return f"| {case.what} | failed | | | {case.goal} | NO | | {measured} |"
    best, *others = ours
    mine = str(best) if len(case.modes) > 1 else str(best).removeprefix(f"{best.label} ")
    if not peers:
        return f"| {case.what} | {mine} | - | - | {case.goal} | | {'; '.join(map(str, others))} | {measured} |"
    rival = peers[0]
    ratio = best.median / rival.median
    for one in programs:
        if one.peer and one is not rival:
            others.append(one)
    shown = []
    for one in others:
        goal = f", goal {one.peer.goal}" if one.peer and one.peer.goal else ""
        shown.append(f"{one}" + (f": {best.median / one.median:.2g}{goal}" if one.peer else ""))
    least = best.least / rival.least
    cells = [
        case.what,
        mine,
        str(rival),
        f"{ratio:.2f} ({least:.2f})",
        str(case.goal),
        verdict(case, ratio, best, peers),
    ]
    return f"| {' | '.join(cells)} | {'; '.join(shown)} | {measured} |"


def chosen(only: str, isa: str = "") -> list[Case]:
    """The cases with one of these words in their name; commas separate: "lenet,infer" is LeNet and all inference.

    isa: the instruction sets in use; cases that need others are left out.
    """
    parts = only.split(",")
    return [
        case
        for case in CASES
        if any(f"_{part}" in f"_{case.name}" for part in parts if part or not only)
        and (not isa or not case.isas or isa in case.isas)
    ]


def compare_builds(other: Path, only: str, rounds: int, env: dict[str, str]) -> None:
    """Prints one row per case of HybridNet itself: the other checkout's time, this one's, and their ratio."""
    before, now = Side("hybridnet", other, env), Side("hybridnet", HERE.parent, env)
    print("| work | before | now | ratio of medians | ratio of minima |\n|---|---|---|---|---|")
    for case in chosen(only):
        for mode in case.modes:
            key = f"{case.name}/{mode}"
            working, _ = take_turns([Program("before", before, key), Program("now", now, key)], rounds)
            if len(working) < 2:
                print(f"| {key} | failed | | | |", flush=True)
                continue
            old, new = working
            ratios = f"{new.median / old.median:.2f} | {new.least / old.least:.2f}"
            print(f"| {key} | {unit(old.median)} | {unit(new.median)} | {ratios} |", flush=True)
    before.close()
    now.close()


def start_sides(only: str, env: dict[str, str]) -> dict[str, Side]:
    """HybridNet's side, and the sides of the installed peers of the chosen cases."""
    needed = {"hybridnet"} | {peer.side for case in chosen(only) for peer in case.peers}
    return {
        name: Side(name, env=env)
        for name in SIDES
        if name in needed and (name == "hybridnet" or importlib.util.find_spec(name) is not None)
    }


def run(isa: str, only: str, rounds: int, write: bool) -> None:
    """Measures the cases with one cap of the instruction sets; prints the table and writes it if `write` is set."""
    env = dict(os.environ, **ISA_CAPS[isa])
    used = instruction_sets(env)
    if isa != "best" and used.split()[0] != isa:
        raise SystemExit(f"run.py: --isa {isa}: this machine computes with {used}")
    capped = used != instruction_sets(dict(os.environ, **ISA_CAPS["best"]))
    sides = start_sides(only, env)
    versions = peer_versions()
    print(f"{machine()}: {used}\n{versions}\n\n| {' | '.join(COLUMNS)} |\n|" + "---|" * len(COLUMNS))
    measured, order = stamp(), tuple(case.what for case in CASES)
    for case in chosen(only, used.split()[0]):
        programs, remark = take_turns(programs_of(case, sides, capped), rounds)
        line = row(case, programs, f"{measured} {remark}".strip())
        print(line, flush=True)
        if write:  # each row at once: an interrupted run keeps its rows
            keep(HERE / "RESULTS.md", HEAD, Section(f"{machine()}: {used}", versions, COLUMNS, (line,), order))
    for side in sides.values():
        side.close()


def warm(only: str, env: dict[str, str]) -> None:
    """Calls every program once: the peers' compilers cache their programs on disk."""
    sides = start_sides(only, env)
    for case in chosen(only):
        for program in programs_of(case, sides):
            begin = time.perf_counter()
            works = program.prepare()
            print(f"{program.key}: {time.perf_counter() - begin:.1f} s{'' if works else ', failed'}", flush=True)
        for side in sides.values():
            side.ask(case="forget")
    for side in sides.values():
        side.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", default="", help="run the cases with one of these words in their name (comma between)"
    )
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS)
    parser.add_argument("--write", action="store_true", help="keep the rows in benchmarks/RESULTS.md")
    parser.add_argument("--warm", action="store_true", help="run each program once and measure nothing")
    parser.add_argument("--against", metavar="FOLDER", type=Path, help="another built checkout as the peer")
    parser.add_argument("--isa", choices=ISA_CAPS, help="the widest instruction sets to use")
    args = parser.parse_args()
    if args.write and args.rounds < LEAST_ROUNDS:
        parser.error(f"--write needs at least {LEAST_ROUNDS} rounds, got --rounds {args.rounds}")
    env = dict(os.environ, **ISA_CAPS[args.isa or "best"])
    if args.against:
        compare_builds(args.against.resolve(), args.only, args.rounds, env)
    elif args.warm:
        warm(args.only, env)
    else:
        run(args.isa or "best", args.only, args.rounds, args.write)
        if args.write and not args.isa and instruction_sets(dict(os.environ)).split()[0].startswith(("avx512", "amx")):
            run("avx2", args.only, args.rounds, args.write)


if __name__ == "__main__":
    main()
