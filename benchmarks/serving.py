"""Predictions in servers: latency, start, requests per second and sizes, compared with ONNX Runtime on one network.

    latency   session runs on bound memory, one row: HybridNet in C++ (Session::run), ONNX Runtime in Python
              (run_with_iobinding), each in a process of its own, in turns. Medians and 99.9th percentiles of the round
              with the least median. "null" is the ratio of percentiles of a loop of arithmetic on one core that takes
              about as long as the session: the effect of the machine's scheduler on any program.
    start     from the start of a process to its first prediction: HybridNet in C++, ONNX Runtime in Python, and an
              interpreter that imports numpy alone, for the part of it that is Python.
    threads   50 threads in C++ that ask for one row each: Model::run, and a Batcher.
    http      50 connections to `hybridnet serve`, JSON, on the machine of the server: with calls of one request
              (--batch 1), shared calls, and shared calls that wait 500 us for others.
    sizes     of libhybridnet.so as built and stripped, and compressed.

ONNX Runtime's lines are left out where onnx and onnxruntime are not installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import lzma
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHAPES = {"digits": (1, 1, 8, 8), "mlp": (1, 784), "lenet": (1, 1, 28, 28)}
PARTS = ("latency", "start", "threads", "http", "sizes")


def write_model(name: str, folder: pathlib.Path) -> None:
    """Writes NAME-symbol.json, NAME-0000.params and, if onnx is installed, NAME.onnx: the same network."""
    import hybridnet as mx
    from hybridnet.gluon import nn

    mx.random.seed(1)
    net = nn.HybridSequential()
    if name == "digits":
        net.add(nn.Conv2D(16, 3, padding=1, activation="relu"), nn.MaxPool2D(), nn.Dense(10))
    elif name == "mlp":
        net.add(nn.Dense(512, activation="relu"), nn.Dense(256, activation="relu"), nn.Dense(10))
    else:
        net.add(nn.Conv2D(20, 5, activation="relu"), nn.MaxPool2D(), nn.Conv2D(50, 5, activation="relu"))
        net.add(nn.MaxPool2D(), nn.Dense(500, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    example = mx.nd.random.normal(shape=SHAPES[name])
    expected = net(example).asnumpy()
    net.export(str(folder / name))
    if _has_onnx():
        _write_onnx(net, folder / f"{name}.onnx", SHAPES[name])
        found = _onnx_session(folder / f"{name}.onnx").run(None, {"data": example.asnumpy()})[0]
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def _has_onnx() -> bool:
    try:
        import onnx
        import onnxruntime  # noqa: F401
    except ImportError:
        return False
    return bool(onnx)


def _write_onnx(net: object, path: pathlib.Path, shape: tuple[int, ...]) -> None:
    """Writes the layers of a HybridSequential one by one."""
    import onnx
    from hybridnet.gluon import nn
    from onnx import TensorProto, helper, numpy_helper

    nodes, tensors, flow = [], [], "data"

    def add(kind: str, *arrays: np.ndarray, **attributes: object) -> None:
        nonlocal flow
        names = [flow]
        for array in arrays:
            names.append(f"tensor{len(tensors)}")
            tensors.append(numpy_helper.from_array(array, names[-1]))
        flow = f"{kind}{len(nodes)}"
        nodes.append(helper.make_node(kind, names, [flow], **attributes))

    for layer in net:  # type: ignore[attr-defined]
        if isinstance(layer, nn.MaxPool2D):
            add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
            continue
        weight, bias = layer.weight.data().asnumpy(), layer.bias.data().asnumpy()
        if isinstance(layer, nn.Dense):
            add("Flatten")
            add("Gemm", weight, bias, transB=1)
        else:
            pad = layer._kwargs["pad"][0]
            add("Conv", weight, bias, kernel_shape=list(weight.shape[2:]), pads=[pad] * 4)
        if layer.act is not None:
            add("Relu")
    spec = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [spec("data", TensorProto.FLOAT, shape)], [spec(flow, TensorProto.FLOAT, None)], tensors
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def _onnx_session(path: pathlib.Path) -> object:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def onnx_latency(path: str, name: str, calls: int) -> None:
    """Prints median and 99.9th percentile in nanoseconds; runs in the peer's process."""
    session = _onnx_session(pathlib.Path(path))
    binding = session.io_binding()  # type: ignore[attr-defined]
    count = int(np.prod(SHAPES[name]))
    data = (np.arange(count) * 37 % 101 / 101).astype(np.float32).reshape(SHAPES[name])
    output = session.run(None, {"data": data})[0]  # type: ignore[attr-defined]
    binding.bind_input("data", "cpu", 0, np.float32, data.shape, data.ctypes.data)
    name_out = session.get_outputs()[0].name  # type: ignore[attr-defined]
    binding.bind_output(name_out, "cpu", 0, np.float32, output.shape, output.ctypes.data)
    run = session.run_with_iobinding  # type: ignore[attr-defined]
    for _ in range(calls // 10 + 10):
        run(binding)
    times = []
    for _ in range(calls):
        begin = time.perf_counter_ns()
        run(binding)
        times.append(time.perf_counter_ns() - begin)
    times.sort()
    print(times[calls // 2], times[calls * 999 // 1000])


ONNX_FIRST = """
import sys, numpy, onnxruntime
s = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(s.run(None, {"data": numpy.zeros([int(a) for a in sys.argv[2:]], "float32")})[0].flat[0])
"""


class Bench:
    """The models and the program, in a folder that lives as long as this object."""

    def __init__(self, folder: pathlib.Path, rounds: int) -> None:
        from hybridnet import libinfo

        self.folder, self.rounds, self.onnx = folder, rounds, _has_onnx()
        self.program = folder / "serving"
        source = str(ROOT / "benchmarks" / "serving.cc")
        flags = [*libinfo.compile_flags(), *libinfo.link_flags(), "-pthread"]
        subprocess.run(["c++", "-std=c++20", "-O2", source, "-o", str(self.program), *flags], check=True)
        for name in SHAPES:
            write_model(name, folder)

    def cpp(self, part: str, name: str, *words: object) -> list[str]:
        """The command line of serving.cc."""
        files = [str(self.folder / f"{name}-symbol.json"), str(self.folder / f"{name}-0000.params")]
        return [str(self.program), part, *files, *map(str, words), *map(str, SHAPES[name])]

    def latency(self) -> None:
        """Measures session runs of one row."""
        print("| latency | HybridNet us | p99.9 us | p99.9/median | null | ONNX Runtime us | p99.9 us | of medians |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        calls = 10_000
        for name in SHAPES:
            ours, theirs = [], []
            for _ in range(self.rounds):
                ours.append(_numbers(self.cpp("latency", name, calls)))
                if self.onnx:
                    own = [sys.executable, __file__, "--onnx-latency", str(self.folder / f"{name}.onnx"), name]
                    theirs.append(_numbers([*own, str(calls)]))
            best = [value / 1e3 for value in min(ours)]
            peer = [value / 1e3 for value in min(theirs)] if theirs else [float("nan")] * 2
            print(
                f"| {name} | {best[0]:.2f} | {best[1]:.2f} | {best[1] / best[0]:.2f} | {best[3] / best[2]:.2f} "
                f"| {peer[0]:.2f} | {peer[1]:.2f} | {best[0] / peer[0]:.2f} |",
                flush=True,
            )

    def start(self) -> None:
        """Measures processes from their start to the first prediction of digits."""
        commands = {"HybridNet, C++": self.cpp("first", "digits")}
        if self.onnx:
            path = str(self.folder / "digits.onnx")
            commands["ONNX Runtime, Python"] = [sys.executable, "-c", ONNX_FIRST, path, *map(str, SHAPES["digits"])]
        commands["import numpy"] = [sys.executable, "-c", "import numpy"]
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(4 * self.rounds):
            for name, command in commands.items():
                begin = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                times[name].append((time.perf_counter() - begin) * 1e3)
        print("| start to first prediction | least ms | median ms |\n| --- | --- | --- |")
        for name, found in times.items():
            print(f"| {name} | {min(found):.1f} | {np.median(found):.1f} |", flush=True)

    def threads(self) -> None:
        """Measures 50 threads with one row each."""
        print("| 50 threads in C++, requests/s | Model::run | Batcher | Batcher, waits 100 us |\n" + "| --- " * 4 + "|")
        for name in SHAPES:
            found = [_numbers(self.cpp("threads", name, 50, 3, wait)) for wait in (0, 100)]
            print(f"| {name} | {found[0][0]:.0f} | {found[0][1]:.0f} | {found[1][1]:.0f} |", flush=True)

    def http(self) -> None:
        """Measures 50 connections."""
        print("| 50 connections, digits | requests/s | failures | p50 ms | p99 ms |\n| --- | --- | --- | --- | --- |")
        for options in (["--batch", "1"], [], ["--batch-wait", "500"]):
            command = [sys.executable, "-m", "hybridnet", "serve", str(self.folder / "digits")]
            command += ["--shape", "1,1,8,8", "--port", "0", *options]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                try:
                    rate, bad, times = asyncio.run(_load(int(server.stdout.readline().rpartition(":")[2]), 8))
                finally:
                    server.send_signal(signal.SIGTERM)
            middle, late = times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3
            print(f"| {' '.join(options) or 'default'} | {rate:.0f} | {bad} | {middle:.1f} | {late:.1f} |", flush=True)

    def sizes(self) -> None:
        """Prints the sizes of the library."""
        from hybridnet import libinfo

        built = pathlib.Path(libinfo.find_lib_path()[0])
        stripped = self.folder / "libhybridnet.so"
        subprocess.run(["strip", str(built), "-o", str(stripped)], check=True)
        packed = len(lzma.compress(stripped.read_bytes(), preset=6))
        print("| libhybridnet.so | MB |\n| --- | --- |")
        for what, size in [("built", built.stat().st_size), ("stripped", stripped.stat().st_size), ("xz", packed)]:
            print(f"| {what} | {size / 1e6:.1f} |")


def _numbers(command: list[str]) -> list[float]:
    return [float(word) for word in subprocess.check_output(command, text=True).split()]


async def _load(port: int, seconds: float) -> tuple[float, int, list[float]]:
    body = json.dumps({"inputs": {"data": [[[[0.5] * 8] * 8]]}}).encode()
    head = "POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    request = (head % len(body)).encode() + body
    times: list[float] = []
    bad = 0

    async def client(end: float) -> None:
        nonlocal bad
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            begin = time.monotonic()
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))
            times.append(time.monotonic() - begin)
            bad += b" 200 " not in answer[:16]
        writer.close()

    await asyncio.gather(*(client(time.monotonic() + seconds) for _ in range(50)))
    return len(times) / seconds, bad, sorted(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=[*PARTS], help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--onnx-latency", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.onnx_latency:
        path, name, calls = arguments.onnx_latency
        onnx_latency(path, name, int(calls))
        return
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"expected parts of {', '.join(PARTS)}, got {part!r}")
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        bench = Bench(folder, arguments.rounds)
        for part in arguments.parts:
            getattr(bench, part)()
            print()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
