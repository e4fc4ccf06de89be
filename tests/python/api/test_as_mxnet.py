"""Programs that run ``import mxnet`` get HybridNet: in one program, by a launcher, or in a whole environment."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from pathlib import Path

import hybridnet
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "migrating-from-mxnet.md"
PACKAGES = [str(Path(hybridnet.__file__).parents[1]), str(Path(np.__file__).parents[1])]


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """The interpreter of a fresh environment in which HybridNet can be imported."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True, with_pip=False)
    return folder / "bin" / "python"


def _run(python: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return _command([str(python), *arguments], python, folder)


def _command(words: list[str], python: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PACKAGES), "PATH": path}
    return subprocess.run(
        words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200
    )


def _printed(python: Path, *arguments: str, folder: Path) -> str:
    ran = _run(python, *arguments, folder=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _program(folder: Path, text: str, name: str = "program.py") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def _printed_by(python: Path, folder: Path, text: str) -> list[str]:
    """Returns the lines that a program prints when `import hybridnet.as_mxnet` is its first line."""
    _program(folder, f"import hybridnet.as_mxnet\n{text}")
    return _printed(python, "program.py", folder=folder).splitlines()


# --- one program ------------------------------------------------------------------------------------------------------


def test_submodules_of_mxnet_are_the_module_objects_of_hybridnet(python, tmp_path):
    lines = _printed_by(
        python,
        tmp_path,
        """
import importlib, sys
for name in "gluon gluon.nn gluon.data.dataloader nd ndarray.ndarray sym init kv".split():
    module = importlib.import_module("mxnet." + name)
    assert module is importlib.import_module("hybridnet." + name), name
    assert sys.modules["mxnet." + name] is module, name
    assert module.__spec__.name.startswith("hybridnet."), module.__spec__
import mxnet, mxnet.gluon.nn, hybridnet
from mxnet.ndarray import NDArray
from mxnet import gluon, nd as arrays
assert gluon is hybridnet.gluon and arrays is hybridnet.nd and NDArray is hybridnet.nd.NDArray
assert mxnet.gluon.nn is hybridnet.gluon.nn
print(mxnet.__version__, mxnet.__name__, hybridnet.__version__ == mxnet.libinfo.__version__)
""",
    )
    assert lines == ["1.9.1 mxnet True"]


def test_attributes_set_on_mxnet_are_set_on_hybridnet(python, tmp_path):
    lines = _printed_by(
        python,
        tmp_path,
        """
import mxnet, hybridnet
mxnet.patched = 3
print(hybridnet.patched, "patched" in dir(mxnet))
del mxnet.patched
print(hasattr(hybridnet, "patched"))
mxnet.__version__ = "1.5.0"
print(mxnet.__version__, hybridnet.__version__ != "1.5.0")
""",
    )
    assert lines == ["3 True", "False", "1.5.0 True"]


def test_a_star_import_brings_names_of_mxnet_and_no_foreign_modules(python, tmp_path):
    lines = _printed_by(
        python,
        tmp_path,
        """
from mxnet import *
brought = set(globals())
wanted = {"nd", "sym", "gluon", "cpu", "Context", "init", "autograd"}
print(wanted - brought, brought & {"sys", "atexit", "Any"})
""",
    )
    assert lines == ["set() set()"]


def test_missing_names_are_import_errors_that_name_both_modules(python, tmp_path):
    lines = _printed_by(
        python,
        tmp_path,
        """
try:
    import mxnet.gluon.nothing
except ModuleNotFoundError as error:
    print(error.name, str(error).replace("\\n", " "))
try:
    from mxnet import nothing
except ImportError as error:
    print(error)
import mxnet
print(hasattr(mxnet, "nothing"))
try:
    mxnet.nothing
except AttributeError as error:
    print(error)
""",
    )
    assert lines[0].startswith("mxnet.gluon.nothing No module named 'mxnet.gluon.nothing'.")
    assert "has no module 'hybridnet.gluon.nothing'" in lines[0] and "api-coverage.md" in lines[0]
    assert lines[1].startswith("cannot import name 'nothing' from 'mxnet'")
    assert lines[2:] == ["False", "module 'mxnet' has no attribute 'nothing'"]


def test_pickles_that_name_mxnet_load(python, tmp_path):
    lines = _printed_by(
        python,
        tmp_path,
        """
import pickle, hybridnet
from mxnet.lr_scheduler import FactorScheduler
old = pickle.dumps(FactorScheduler(5), 0).replace(b"hybridnet.", b"mxnet.")
assert b"mxnet.lr_scheduler" in old
print(type(pickle.loads(old)) is hybridnet.lr_scheduler.FactorScheduler)
""",
    )
    assert lines == ["True"]


def test_an_mxnet_that_is_imported_already_is_an_error_that_says_where_to_write_the_line(python, tmp_path):
    _program(tmp_path, "", "mxnet.py")
    _program(tmp_path, "import mxnet\nimport hybridnet.as_mxnet\n")
    ran = _run(python, "program.py", folder=tmp_path)
    assert ran.returncode == 1
    assert re.search(r"must be imported before mxnet.*\n.*mxnet\.py.*\n.*first line of the program", ran.stderr)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_that_the_program_starts_find_mxnet_too(python, tmp_path, method):
    text = f"""
import mxnet as mx
import multiprocessing

def total(count):
    return mx.nd.ones((count,)).sum().asscalar(), mx.__version__

if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        print(pool.apply(total, (3,)))
"""
    _program(tmp_path, text)
    printed = _printed(python, "-m", "hybridnet.as_mxnet", "program.py", folder=tmp_path)
    assert printed.replace("np.float32(3.0)", "3.0") == "(3.0, '1.9.1')\n"


# --- names that NumPy removed -----------------------------------------------------------------------------------------


def test_names_that_numpy_removed_warn_once_and_name_the_line(python, tmp_path):
    text = """import hybridnet.as_mxnet
import numpy as np
for _ in range(2):
    kinds = [np.int, np.float, np.complex, np.object, np.str, np.bool]
print([np.zeros(2, kind).dtype.kind for kind in kinds])
print(np.array([2.0], dtype=np.float_).dtype, np.Inf, np.product([2, 3]), np.asscalar(np.ones(1)))
"""
    _program(tmp_path, text)
    ran = _run(python, "program.py", folder=tmp_path)
    assert ran.stdout.splitlines() == ["['i', 'f', 'c', 'O', 'U', 'b']", "float64 inf 6 1.0"]
    removed = [name for name in ("int", "float", "complex", "object", "str", "bool") if name not in vars(np)]
    for name in removed:
        assert len(re.findall(rf"program\.py:4: FutureWarning: NumPy \S+ has no np\.{name};", ran.stderr)) == 1


def test_a_name_that_numpy_never_had_is_its_own_error(python, tmp_path):
    lines = _printed_by(python, tmp_path, "import numpy as np\nprint(hasattr(np, 'nothing'), hasattr(np, 'float32'))")
    assert lines == ["False True"]


def test_numpy_is_left_alone_without_as_mxnet(python, tmp_path):
    _program(tmp_path, "import hybridnet, numpy\nprint(hasattr(numpy, 'int'))\nimport mxnet\n")
    ran = _run(python, "program.py", folder=tmp_path)
    assert ran.stdout == f"{hasattr(np, 'int')}\n" and "No module named 'mxnet'" in ran.stderr


# --- the launcher -----------------------------------------------------------------------------------------------------


def test_a_program_is_main_and_finds_its_arguments_and_neighbors(python, tmp_path):
    folder = tmp_path / "below"
    folder.mkdir()
    _program(folder, "WORD = 'neighbor'\n", "beside.py")
    _program(folder, "import sys, beside, mxnet\nprint(__name__, __file__, beside.WORD, sys.argv)\n")
    printed = _printed(python, "-m", "hybridnet.as_mxnet", "below/program.py", "-m", "--install", "x", folder=tmp_path)
    assert printed == "__main__ below/program.py neighbor ['below/program.py', '-m', '--install', 'x']\n"


def test_a_module_is_main_and_finds_its_arguments(python, tmp_path):
    package = tmp_path / "tool"
    package.mkdir()
    _program(package, "", "__init__.py")
    _program(package, "NAME = 'tool'\n", "name.py")
    _program(package, "import sys\nfrom .name import NAME\nimport mxnet\nprint(__name__, NAME, sys.argv[1:])", "run.py")
    printed = _printed(python, "-m", "hybridnet.as_mxnet", "-m", "tool.run", "-m", "--epochs", "2", folder=tmp_path)
    assert printed == "__main__ tool ['-m', '--epochs', '2']\n"


def test_the_exit_status_is_that_of_the_program(python, tmp_path):
    _program(tmp_path, "import mxnet\nraise SystemExit(7)\n")
    assert _run(python, "-m", "hybridnet.as_mxnet", "program.py", folder=tmp_path).returncode == 7


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "expected one of"),
        (["-m"], "expected one of"),
        (["--install", "--uninstall"], "expected one of"),
        (["absent.py"], "there is no file 'absent.py'"),
    ],
    ids=["nothing", "no module", "both", "no file"],
)
def test_a_command_line_that_makes_no_sense_is_refused(python, tmp_path, arguments, told):
    ran = _run(python, "-m", "hybridnet.as_mxnet", *arguments, folder=tmp_path)
    assert ran.returncode == 2 and told in ran.stderr and "usage:" in ran.stderr


# --- a whole environment ----------------------------------------------------------------------------------------------


def test_installed_in_an_environment_every_program_finds_mxnet_until_it_is_removed(python, tmp_path):
    _program(tmp_path, "import mxnet.gluon as g, hybridnet\nprint(g is hybridnet.gluon)\n")
    assert "gives HybridNet" in _printed(python, "-m", "hybridnet.as_mxnet", "--install", folder=tmp_path)
    try:
        assert _printed(python, "program.py", folder=tmp_path) == "True\n"
        # No module of HybridNet is imported before a program imports mxnet.
        started = _printed(python, "-c", "import sys; print('hybridnet' in sys.modules)", folder=tmp_path)
        assert started == "False\n"
    finally:
        assert "removed" in _printed(python, "-m", "hybridnet.as_mxnet", "--uninstall", folder=tmp_path)
    assert "No module named 'mxnet'" in _run(python, "program.py", folder=tmp_path).stderr
    assert "nothing to remove" in _printed(python, "-m", "hybridnet.as_mxnet", "--uninstall", folder=tmp_path)


@pytest.mark.parametrize("what", ["mxnet/__init__.py", "mxnet_cu112-1.9.1.dist-info/METADATA"])
def test_nothing_is_installed_beside_mxnet_itself(python, tmp_path, what):
    packages = Path(
        _printed(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=tmp_path).strip()
    )
    present = packages / what
    present.parent.mkdir()
    present.write_text("Name: mxnet-cu112\nVersion: 1.9.1\n" if what.endswith("METADATA") else "")
    try:
        ran = _run(python, "-m", "hybridnet.as_mxnet", "--install", folder=tmp_path)
    finally:
        present.unlink()
        present.parent.rmdir()
    assert ran.returncode == 1 and "MXNet itself is installed" in ran.stderr and "pip uninstall mxnet" in ran.stderr
    assert not (packages / "hybridnet_as_mxnet.pth").exists()


# --- the guide --------------------------------------------------------------------------------------------------------


def test_every_block_of_the_guide_runs_in_the_order_of_the_page(python, tmp_path):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert {kind for kind, _ in blocks} == {"python", "sh"}
    printed = ""
    for kind, text in blocks:
        named = re.match(r"# (\w+\.py)\n", text)
        if named is not None:
            _program(tmp_path, text, named[1])
            continue
        command = ["bash", "-ec", text] if kind == "sh" else [str(python), str(_program(tmp_path, text))]
        ran = _command(command, python, tmp_path)
        assert ran.returncode == 0, f"{text}\n{ran.stdout}\n{ran.stderr}"
        printed += ran.stdout
    learned = re.findall(r"epoch 19 accuracy ([\d.]+)", printed)
    assert len(learned) == 2 and min(map(float, learned)) > 0.9
    assert "[1. 0.]" in printed
