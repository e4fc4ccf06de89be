"""Checkpoints in parts: resumed trainings have the bits of uninterrupted ones; damage is a named error everywhere."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess

import pytest
from launched import launch, lines_of, needs_gloo, run

pytestmark = needs_gloo

# argv: folder, steps, the step at which rank 1 (or the only process) is killed, shard_states, kind of net.
TRAINING = """
import hashlib
folder, steps, killed_at, shard_states, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
mx.random.seed(11)
np.random.seed(7)
net = gluon.nn.HybridSequential()
if kind == "own":  # statistics and random numbers of each process
    net.add(gluon.nn.Conv2D(4, 3), gluon.nn.BatchNorm(), gluon.nn.Dropout(0.3), gluon.nn.Flatten(), gluon.nn.Dense(5))
else:
    net.add(gluon.nn.Conv2D(4, 3), gluon.nn.Flatten(), gluon.nn.Dense(9, activation="relu"), gluon.nn.Dense(5))
net.initialize(mx.init.Xavier())
net.hybridize()
options = {"lr_scheduler": mx.lr_scheduler.FactorScheduler(3, 0.7, base_lr=0.02), "wd": 0.01}
trainer = gluon.Trainer(net.collect_params(), "adam", options, kvstore="dist_sync", shard_states=shard_states == "yes")
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
found = group.load_checkpoint(folder, net, trainer)
first = found.step if found else 0
assert first == 0 or found.extra == {"note": first}
print("first", first, flush=True)
for step in range(first, steps):
    if step == killed_at and rank == size - 1 and os.environ.get("HYBRIDNET_GROUP_NAME", "0") == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    noise = np.random.default_rng(step)
    data, label = noise.standard_normal((24, 3, 8, 8)).astype("float32"), noise.integers(0, 5, 24)
    for shard in range(*group.own_shards()):
        part = slice(6 * shard, 6 * shard + 6)
        with autograd.record():
            loss = loss_of(net(mx.nd.array(data[part])), mx.nd.array(label[part]))
        loss.backward()
        trainer.add_shard()
    trainer.step(24)
    if step % 2 == 1:
        group.save_checkpoint(folder, net, trainer, step=step + 1, extra={"note": np.int64(step + 1)})
values = [param.data().asnumpy().tobytes() for param in net.collect_params().values()]
values.append(trainer._states())
draws = np.random.rand(), mx.nd.random.uniform(shape=1).asscalar()
print("digest", hashlib.sha256(b"".join(values)).hexdigest(), *draws)
"""


def train(
    processes: int, folder: pathlib.Path, *options: str, steps: int = 8, killed: int = -1, shard: str = "no",
    kind: str = "plain",
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    kept = folder / "kept"
    return launch(
        processes, TRAINING, folder, "--virtual-shards", "4", "--threads", "1", *options,
        arguments=(str(kept), str(steps), str(killed), shard, kind),
    )  # fmt: skip


def found_in(done: subprocess.CompletedProcess[str], processes: int, what: str) -> list[str]:
    assert done.returncode == 0, done.stdout + done.stderr
    return [re.findall(f"{what} (.*)", "\n".join(lines_of(done, rank)))[-1] for rank in range(processes)]


def fresh(folder: pathlib.Path, name: str) -> pathlib.Path:
    path = folder / name
    path.mkdir()
    return path


def test_a_killed_training_resumes_to_the_bits_of_an_uninterrupted_one(tmp_path: pathlib.Path) -> None:
    whole = found_in(train(2, fresh(tmp_path, "whole"), kind="own"), 2, "digest")
    cut = train(2, fresh(tmp_path, "cut"), "--max-restarts", "1", killed=5, shard="yes", kind="own")
    assert found_in(cut, 2, "first") == ["4", "4"]
    assert found_in(cut, 2, "digest") == whole
    names = sorted(path.name for path in (tmp_path / "cut" / "kept").iterdir())
    assert names == ["000003-step-6", "000004-step-8"], "two generations stay"


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(1, 4), (4, 1), (2, 4), (4, 3), (3, 2)])
@pytest.mark.parametrize("shard", ["no", "yes"])
def test_a_training_resumes_with_another_number_of_processes(
    before: int, after: int, shard: str, tmp_path: pathlib.Path
) -> None:
    whole = found_in(train(2, fresh(tmp_path, "whole")), 2, "digest")
    cut = fresh(tmp_path, "cut")
    found_in(train(before, cut, steps=4, shard=shard), before, "digest")
    resumed = train(after, cut, shard="yes" if shard == "no" else "no")
    assert found_in(resumed, after, "first") == ["4"] * after
    assert set(found_in(resumed, after, "digest")) == set(whole)


# Saves two checkpoints, lets rank 0 do `harm`, loads, and prints the error. argv: folder.
HARMED = """
import json, pathlib, resource, shutil
folder = pathlib.Path(sys.argv[1])
def make(units=40, optimizer="adam"):
    mx.random.seed(11)
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(units, in_units=10), gluon.nn.Dense(3, in_units=units))
    net.initialize(mx.init.Xavier())
    return net, gluon.Trainer(net.collect_params(), optimizer, kvstore="dist_sync", shard_states=True)
def step(net, trainer):
    with autograd.record():
        loss = (net(mx.nd.ones((2, 10))) ** 2).sum()
    loss.backward()
    trainer.step(2)
def values(net):
    return [param.data().asnumpy() for param in net.collect_params().values()]
net, trainer = make()
for number in (1, 2):
    step(net, trainer)
    group.save_checkpoint(folder, net, trainer, step=number)
last = sorted(folder.iterdir())[-1] if folder.exists() else None
def damage(path, at, byte):
    data = bytearray(path.read_bytes())
    data[at] ^= byte
    path.write_bytes(data)
group.barrier()
keywords, other = {}, {}
"""
TRY = """
group.barrier()
try:
    net, trainer = make(**other)
    before = values(net)
    found = group.load_checkpoint(folder, net, trainer, **keywords)
    print("loaded", None if found is None else found.step)
except mx.errors.MXNetError as error:
    assert all((a == b).all() for a, b in zip(before, values(net), strict=True)), "nothing was changed"
    print("error", type(error).__name__, " ".join(str(error).split()))
group.barrier()  # the group goes on
print("fine")
"""
LOADS = {
    "nothing": ("pass", "loaded 2"),
    "flipped bit": ("damage(last / 'part-00001-of-00002', -3, 4)", "error FormatError .* does not fit its checksum"),
    "flipped bit of a header": ("damage(last / 'part-00000-of-00002', 60, 1)", "error FormatError .*its header does"),
    "truncated": (
        "(last / 'part-00001-of-00002').write_bytes((last / 'part-00001-of-00002').read_bytes()[:-10])",
        "error FormatError .*part-00001-of-00002' has .* bytes: expected .* the one before it is loaded",
    ),
    "missing": ("(last / 'part-00001-of-00002').unlink()", "error FileError .*part-00001-of-00002' is missing"),
    "part of another checkpoint": (
        "first = sorted(folder.iterdir())[0]\n    shutil.copy(first / 'part-00001-of-00002', last)",
        "error FormatError .*(another checksum|bytes: expected)",
    ),
    "no manifest": ("(last / 'manifest.json').unlink()", "loaded 1"),
    "no manifest at all": (
        "keywords['required'] = True\n    [(each / 'manifest.json').unlink() for each in folder.iterdir()]",
        "error FileError .*no finished checkpoint.*has no manifest.json",
    ),
    "no checkpoint": ("shutil.rmtree(folder)", "loaded None"),
    "damaged manifest": (
        "text = (last / 'manifest.json').read_text()\n"
        "    (last / 'manifest.json').write_text(text.replace('\"step\": 2', '\"step\": 3'))",
        "error FormatError .*manifest.json' is damaged",
    ),
    "no JSON": ("(last / 'manifest.json').write_text('{')", "error FormatError .*is no manifest"),
    "later version": (
        "from hybridnet.gluon import _checkpoint_files as files\n    files._VERSION = 2\n"
        "    files.write_manifest(str(last), 'x', {**files.read_manifest(str(last), 'x'), 'version': 2})\n"
        "    files._VERSION = 1",
        "error FormatError .*has version 2 of the format: expected at most 1.*HybridNet 0",
    ),
}
FAST_LOADS = ("flipped bit",)


@pytest.mark.parametrize(
    "name", [name if name in FAST_LOADS else pytest.param(name, marks=pytest.mark.slow) for name in LOADS]
)
def test_damage_is_an_error_in_all_processes(name: str, tmp_path: pathlib.Path) -> None:
    harm, text = LOADS[name]
    shared = harm.partition("\n")[0] + "\n" if harm.startswith("keywords") else ""
    program = f"{HARMED}{shared}if rank == 0:\n    {harm}\n{TRY}"
    done = launch(2, program, tmp_path, "--timeout", "20", arguments=(str(tmp_path / "kept"),))
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in (0, 1):
        lines = "\n".join(lines_of(done, rank))
        assert re.search(text, lines), lines
        assert "fine" in lines


OTHERS = """
for other, text in (({"units": 41}, "shape incompatible"), ({}, "")):
    keywords = {}
    try:
        net, trainer = make(**other)
        found = group.load_checkpoint(folder, net, trainer, gluon.data.DataLoader([1, 2], 1) if not text else None)
        raise SystemExit(5)
    except mx.errors.MXNetError as error:
        assert (text or "was saved without a loader") in str(error), error
net, trainer = make()
if rank == 1:
    net.add(gluon.nn.Dense(3, in_units=3))
    net.initialize()
try:
    group.save_checkpoint(folder, net, trainer, step=9)
    raise SystemExit(5)
except mx.errors.ParamError as error:
    assert "other names in other processes" in str(error), error
for wrong in (-1, True, "1"):
    try:
        group.save_checkpoint(folder, net, trainer, step=wrong)
        raise SystemExit(5)
    except mx.errors.ParamError as error:
        assert "an integer, 0 or more" in str(error), error
net, trainer = make()
try:
    group.save_checkpoint(folder, net, trainer, step=9, extra=object())
    raise SystemExit(5)
except mx.errors.ParamError as error:
    assert "extra" in str(error), error
group.barrier()
assert len(list(folder.iterdir())) == 2, "no rest of failed checkpoints"
print("fine")
"""


@pytest.mark.slow
def test_other_nets_and_wrong_arguments_are_named(tmp_path: pathlib.Path) -> None:
    done = launch(2, HARMED + OTHERS, tmp_path, arguments=(str(tmp_path / "kept"),))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("fine") == 2


FULL_DISK = """
step(net, trainer)
if rank == 1:  # its files are cut off, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    group.save_checkpoint(folder, net, trainer, step=3)
    raise SystemExit(5)
except mx.errors.FileError as error:
    text = " ".join(str(error).split())
    assert "part-00001-of-00002" in text and "File too large" in text, text
    assert rank == 1 or "rank 1 of 2 failed" in text, text
if rank == 1:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
group.barrier()  # process 0 has removed the rest
assert sorted(path.name for path in folder.iterdir()) == ["000001-step-1", "000002-step-2"]
step(net, trainer)  # the training goes on
group.save_checkpoint(folder, net, trainer, step=4)
found = group.load_checkpoint(folder, *make())
assert found.step == 4
print("fine")
"""


def test_a_full_disk_of_one_process_leaves_the_former_checkpoints(tmp_path: pathlib.Path) -> None:
    done = launch(2, HARMED + FULL_DISK, tmp_path, arguments=(str(tmp_path / "kept"),))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("fine") == 2


# Rank 1 is killed while it writes its part of the third checkpoint; rank 0 gets an error.
KILLED_WRITING = """
if rank == 1:
    from hybridnet.gluon import _checkpoints
    def killed(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGKILL)
    _checkpoints.write_sections = killed
try:
    group.save_checkpoint(folder, net, trainer, step=3)
except mx.errors.GroupError as error:
    print("error", error)
"""


@pytest.mark.slow
def test_a_death_while_writing_leaves_the_former_checkpoints(tmp_path: pathlib.Path) -> None:
    kept = tmp_path / "kept"
    done = launch(2, HARMED + KILLED_WRITING, tmp_path, "--timeout", "10", arguments=(str(kept),))
    assert "has ended" in "\n".join(lines_of(done, 0)), done.stdout + done.stderr
    finished = [path.name for path in sorted(kept.iterdir()) if (path / "manifest.json").exists()]
    assert finished == ["000001-step-1", "000002-step-2"]
    assert json.loads((kept / finished[-1] / "manifest.json").read_text())["manifest"]["step"] == 2


EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "train_distributed.py"


@pytest.mark.slow
def test_the_example_continues_from_its_checkpoints_with_another_number_of_processes(tmp_path: pathlib.Path) -> None:
    def digest(processes: int, folder: str, *options: str) -> str:
        kept = str(tmp_path / folder)
        words = ("--virtual-shards", "4", "--threads", "1", str(EXAMPLE), "--checkpoints", kept, *options)
        return re.findall(r"digest (\w+)", run(processes, *words).stdout)[0]

    whole = digest(1, "whole", "--epochs", "3")
    assert digest(2, "cut", "--epochs", "2", "--shard-states") != whole
    assert digest(3, "cut", "--epochs", "3") == whole
