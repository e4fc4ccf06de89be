"""Processes in C++, Java and Python train in one group."""

from __future__ import annotations

import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping

import hybridnet as mx
import numpy as np
import pytest
from deploy.client_programs import ROOT, compile_program
from deploy.conftest import jar  # noqa: F401  # a fixture
from deploy.java_programs import NATIVES
from launched import HEAD, lines_of, needs_gloo, run

pytestmark = needs_gloo

STEPS = 8
NO_FAULTS: Mapping[int, tuple[str, int]] = {}

# The Python process: argv is PREFIX CASE STEPS RESULT [FAULT STEP], as for the programs in C++ and Java.
TRAINING = (
    HEAD
    + """
prefix, case, steps, result, *fault = sys.argv[1:]
given = mx.nd.load(case)
net = gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
if rank > 0:  # the values of process 0 count
    for param in net.collect_params().values():
        param.set_data(mx.nd.zeros(param.shape))
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "momentum": 0.9}, kvstore="dist_sync")
count = len(given["data"]) // size
data, label = (given[name][rank * count : (rank + 1) * count] for name in ("data", "label"))
try:
    for step in range(int(steps)):
        if fault[1:] == [str(step)] and fault[0] == "throw":
            raise ValueError("a wrong shape\\nin two lines")
        if fault[1:] == [str(step)] and fault[0] == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        with autograd.record():
            loss = -mx.nd.pick(mx.nd.log_softmax(net(data)), label)
        if fault != ["stale", str(step)]:
            loss.backward()
        trainer.step(len(given["data"]), ignore_stale_grad=fault[:1] == ["stale"])
    mx.nd.save(f"{result}.{rank}", {param.name: param.data() for param in net.collect_params().values()})
except mx.errors.GroupError as error:
    print("GroupError:", error)
    sys.exit(7)
print("done")
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with net-symbol.json, net-0000.params, case.params, and the programs in C++ and Python."""
    folder = tmp_path_factory.mktemp("languages")
    compile_program(ROOT / "tests/cpp/clients/train_in_group.cc", folder / "train")
    (folder / "train.py").write_text(TRAINING)
    mx.random.seed(7)
    net = mx.gluon.nn.HybridSequential()
    # The first message is full after the first gradients; a second one follows.
    net.add(mx.gluon.nn.Dense(600, activation="relu"), mx.gluon.nn.Dense(600, activation="tanh"), mx.gluon.nn.Dense(5))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    rng = np.random.default_rng(3)
    data = mx.nd.array(rng.standard_normal((24, 64)), dtype="float32")
    net(data)
    net.export(str(folder / "net"))
    label = mx.nd.array(rng.integers(0, 5, 24), dtype="float32")
    mx.nd.save(str(folder / "case.params"), {"data": data, "label": label})
    return folder


def command_of(language: str, folder: pathlib.Path, classes: object, fault: tuple[str, int] | None = None) -> str:
    net, case, result = folder / "net", folder / "case.params", folder / "result"
    words: list[object]
    if language == "c++":
        words = [folder / "train", f"{net}-symbol.json", f"{net}-0000.params", case, STEPS, result]
    elif language == "java":
        java = ["java", "-Xmx64m", "-cp", classes, f"-Djava.library.path={NATIVES}"]
        words = [*java, ROOT / "java/src/test/clients/TrainInGroup.java", net, case, STEPS, result]
    else:
        words = [sys.executable, folder / "train.py", net, case, STEPS, result]
    return shlex.join(map(str, [*words, *(fault or ())]))


def trained(
    languages: str,
    folder: pathlib.Path,
    *options: str,
    classes: object = "",
    faults: Mapping[int, tuple[str, int]] = NO_FAULTS,
) -> subprocess.CompletedProcess[str]:
    """Runs a job whose process i is in the i-th language; faults: of processes, by their rank."""
    names = languages.split()
    lines = [f"{rank}) exec {command_of(name, folder, classes, faults.get(rank))};;" for rank, name in enumerate(names)]
    script = folder / "program.sh"
    script.write_text("case $HYBRIDNET_GROUP_RANK in\n" + "\n".join(lines) + "\nesac\n")
    return run(len(names), *options, "--threads", "1", "--", "sh", str(script))


def bits(folder: pathlib.Path, processes: int) -> set[bytes]:
    """The parameters of each process."""
    found = set()
    for rank in range(processes):
        arrays = mx.nd.load(str(folder / f"result.{rank}"))
        found.add(b"".join(name.encode() + arrays[name].asnumpy().tobytes() for name in sorted(arrays)))
        (folder / f"result.{rank}").unlink()
    return found


def values_of(languages: str, folder: pathlib.Path, classes: object = "") -> bytes:
    done = trained(languages, folder, classes=classes)
    assert done.returncode == 0, done.stdout + done.stderr
    (values,) = bits(folder, len(languages.split()))
    return values


def test_a_process_in_cpp_trains_with_one_in_python(folder: pathlib.Path) -> None:
    assert values_of("c++ python", folder) == values_of("python python", folder)


@pytest.mark.slow
@pytest.mark.parametrize("languages", ["python c++", "c++ c++"])
def test_the_order_of_languages_does_not_matter(languages: str, folder: pathlib.Path) -> None:
    assert values_of(languages, folder) == values_of("python python", folder)


@pytest.mark.slow
def test_cpp_java_and_python_train_in_one_job(folder: pathlib.Path, jar: pathlib.Path) -> None:  # noqa: F811
    found = {values_of(each, folder, jar) for each in ("python python python", "java c++ python", "python java c++")}
    assert len(found) == 1


def error_of(done: subprocess.CompletedProcess[str], rank: int) -> str:
    """The line of the error, without the name of the call in which this process noticed it."""
    (line,) = [line for line in lines_of(done, rank) if line.startswith("GroupError: ")]
    return re.sub(r"operator '.*? the group': ", "", line)


FACTS = {"throw": r"rank 0 said: std::exception: a wrong shape\.?$", "kill": r"has ended", "exit": "the program ended"}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FACTS)
def test_a_fault_in_cpp_is_named_in_python(fault: str, folder: pathlib.Path) -> None:
    done = trained("c++ python python", folder, "--timeout", "30", "--grace", "3", faults={0: (fault, 3)})
    assert done.returncode != 0
    for rank in (1, 2):
        assert "rank 0 of 3" in error_of(done, rank)
        assert re.search(FACTS[fault], "\n".join(lines_of(done, rank)), re.MULTILINE), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["throw", "halt", "exit"])
def test_a_fault_in_java_is_named_in_python_and_cpp(fault: str, folder: pathlib.Path, jar: pathlib.Path) -> None:  # noqa: F811
    facts = {"throw": "rank 0 said: IllegalStateException: a wrong shape", "halt": "ended", "exit": "the program ended"}
    done = trained("java python c++", folder, "--timeout", "30", "--grace", "3", classes=jar, faults={0: (fault, 3)})
    assert done.returncode != 0
    for rank in (1, 2):
        assert "rank 0 of 3" in error_of(done, rank)
        assert facts[fault] in "\n".join(lines_of(done, rank)), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["throw", "kill"])
def test_a_fault_in_python_has_the_same_facts_in_cpp_and_java(
    fault: str,
    folder: pathlib.Path,
    jar: pathlib.Path,  # noqa: F811
) -> None:
    done = trained(
        "python c++ java python", folder, "--timeout", "30", "--grace", "3", classes=jar, faults={0: (fault, 3)}
    )
    assert done.returncode != 0
    facts = ["rank 0 said: ValueError: a wrong shape"] if fault == "throw" else ["has ended"]
    for rank in (1, 2, 3):
        text = "\n".join(lines_of(done, rank))
        assert "rank 0 of 4" in error_of(done, rank), text
        assert all(fact in text for fact in facts), text
    assert error_of(done, 1) == error_of(done, 2) == error_of(done, 3)


@pytest.mark.slow
def test_a_gradient_that_one_process_has_not_reached_is_zero_there(folder: pathlib.Path) -> None:
    faults = {0: ("stale", 2), 1: ("stale", -1)}
    found = []
    for languages in ("c++ python", "python python"):
        done = trained(languages, folder, faults=faults)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(bits(folder, 2))
    assert len(set.union(*found)) == 1


JOINING = """
import sys
import hybridnet as mx
group = mx.group
group.init(0, 2, sys.argv[1], token_file=sys.argv[2], virtual_shards=4, name="c", timeout=20)
x = mx.nd.array([1, 10])
assert group.sum(x, "x").asnumpy().tolist() == [3, 20]
assert group.gather(x, "x").asnumpy().tolist() == [[1, 10], [2, 10]]
group.broadcast(x, 1, name="x")
group.sum_into(x, name="x")
assert x.asnumpy().tolist() == [4, 20]
group.barrier()
try:
    group.barrier()
except mx.errors.GroupError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_program_in_c_joins_one_in_python_without_a_launcher(tmp_path: pathlib.Path) -> None:
    program = compile_program(ROOT / "tests/cpp/clients/join_group.c", tmp_path / "join_group")
    (tmp_path / "meeting").mkdir(mode=0o700)
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_bytes(bytes(range(32)))
    meeting = f"folder:{tmp_path / 'meeting'}"
    python = subprocess.Popen(
        [sys.executable, "-c", JOINING, meeting, str(token)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    done = subprocess.run(
        [str(program), "1", "2", meeting, str(token), "c"], capture_output=True, text=True, timeout=60, check=False
    )
    said = python.communicate(timeout=60)[0]
    assert python.returncode == done.returncode == 0, said + done.stdout + done.stderr
    assert "rank 1 said: its work is done" in said
    assert done.stdout.splitlines() == [
        "place 1 of 2, shards 2 to 4 of 4",
        "sum 3 20",
        "all 1 10 2 10",
        "sum of the values of process 1 4 20",
        done.stdout.splitlines()[4],
        "GroupError",
        "GroupError",
    ]


PAGE = (ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_program_of_the_page_trains_alike_with_every_number_of_processes(tmp_path: pathlib.Path) -> None:
    (text,) = re.findall(r"```cpp\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "train.cc").write_text(text)
    program = compile_program(tmp_path / "train.cc", tmp_path / "train")
    done = run(2, "--threads", "1", "--", str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    said = {line for rank in range(2) for line in lines_of(done, rank)}
    assert len(said) == 1 and re.fullmatch(r"y = 3\.00 x - 1\.00", said.pop()), done.stdout


@pytest.mark.slow
def test_a_trainer_in_cpp_refuses_virtual_shards(folder: pathlib.Path) -> None:
    done = trained("c++ c++", folder, "--virtual-shards", "4")
    assert done.returncode != 0
    assert "expected one virtual shard for each process, got 4 shards for 2 processes" in done.stderr


def test_a_program_that_does_not_exist_is_named() -> None:
    done = run(2, "--", "./no-such-program", "argument")
    assert done.returncode == 127
    assert "cannot start ./no-such-program: No such file or directory" in done.stderr
