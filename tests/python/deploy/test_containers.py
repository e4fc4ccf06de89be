"""docs/deploy-container.md: the C++ recipe's compiler line works, and images hold every system library that is loaded.

No image is built here: the steps run in folders laid out as in the image.
"""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import hybridnet as mx
import pytest
from hybridnet import libinfo

from .client_programs import ROOT

PAGE = (ROOT / "docs" / "deploy-container.md").read_text("utf-8")
RECIPES = dict(zip(("cpp", "serve", "java"), re.findall(r"```dockerfile\n(.*?)```", PAGE, re.DOTALL), strict=True))
LIBRARIES = ROOT / "python" / "hybridnet"
OF_THE_BASE = {"libc6"}  # every image of Debian has it


def _stages(recipe: str) -> list[str]:
    return re.split(r"(?m)^(?=FROM )", recipe)[1:]


def _installed(stage: str) -> set[str]:
    (words,) = re.findall(r"apt-get install -y --no-install-recommends (.*?)(?: &&|\n)", stage)
    return set(words.split()) | OF_THE_BASE


def _loaded(*binaries: pathlib.Path) -> set[pathlib.Path]:
    """The system libraries that binaries load, directly or indirectly."""
    found = set()
    for binary in binaries:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES)}  # in the process libhybridnet.so comes first
        text = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True, env=environment).stdout
        assert "not found" not in text, text
        found |= {pathlib.Path(path) for path in re.findall(r"(?:=> )?(/\S+) \(0x", text)}
    return {path for path in found if not path.is_relative_to(LIBRARIES) and path.name not in _own_names()}


def _own_names() -> set[str]:
    return {path.name for path in LIBRARIES.glob("*.so*")}


def _packages(libraries: set[pathlib.Path]) -> set[str]:
    """Debian's names of the packages that hold the files."""
    if shutil.which("dpkg") is None:
        pytest.skip("only Debian's dpkg tells which package holds a library")
    names = set()
    for library in libraries:
        for path in {str(library), str(library.resolve()), str(library).removeprefix("/usr")}:
            done = subprocess.run(["dpkg", "-S", path], capture_output=True, text=True, check=False)
            names |= {line.partition(":")[0] for line in done.stdout.splitlines()}
    return names


def _replaced(line: str, **folders: pathlib.Path) -> str:
    """Puts folders in place of /opt/, /src/ and /app/, all at once: their own names may contain these."""
    return re.sub(rf"/({'|'.join(folders)})/", lambda match: f"{folders[match[1]]}/", line)


def test_the_program_of_the_cpp_recipe_runs_with_the_files_of_the_image_alone(tmp_path) -> None:
    build, image = _stages(RECIPES["cpp"])
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 4)))
    opt, source, app = tmp_path / "opt", tmp_path / "src", tmp_path / "app"
    for folder in (opt / "hybridnet", source, app / "lib"):
        folder.mkdir(parents=True)
    (opt / "hybridnet" / "include").symlink_to(ROOT / "include")
    net.export(str(app / "net"))
    for path in LIBRARIES.glob("*.so*"):
        if not path.name.startswith(("_core", "libhybridnet_jni", "libhybridnet_gloo")):
            (app / "lib" / path.name).symlink_to(path)
    page = (ROOT / "docs" / "deploy-cpp.md").read_text("utf-8")
    (source / "main.cc").write_text(re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)[0])
    (line,) = re.findall(r"RUN (g\+\+ .*)", build)
    subprocess.run(["sh", "-ec", _replaced(line, opt=opt, src=source, app=app)], check=True, timeout=200)
    (command,) = re.findall(r"CMD \[(.*)\]", image)
    program = _replaced(command.strip('"'), app=app)
    moved = app.rename(tmp_path / "moved")  # the path in the program is relative
    done = subprocess.run(
        [program.replace(str(app), str(moved))], cwd=moved, env={}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout.startswith("input data\n"), done.stderr
    libraries = [path for path in LIBRARIES.glob("lib*.so*") if not re.search("jni|gloo", path.name)]
    assert _packages(_loaded(moved / "main", *libraries)) <= _installed(image)


def test_the_server_and_java_load_only_libraries_of_installed_packages() -> None:
    natives = [path for path in LIBRARIES.glob("*.so*") if "gloo" not in path.name]  # it is for groups of processes
    needed = _packages(_loaded(*natives))
    for name in ("serve", "java"):
        assert needed <= _installed(_stages(RECIPES[name])[-1])


def test_every_file_that_a_recipe_copies_is_named_by_the_text() -> None:
    for recipe, text in zip(RECIPES.values(), re.split(r"```dockerfile", PAGE), strict=False):
        copied = re.findall(r"(?m)^(?:COPY|ADD) (?!--from)(.*) \S+$", recipe)
        assert copied
        for file in " ".join(copied).split():
            is_built = re.fullmatch(rf"hybridnet-{re.escape(libinfo.__version__)}-.*", file)
            model = re.fullmatch(r"\w+-(symbol\.json|0000\.params)", file)
            assert is_built or model or file in text


def test_the_command_of_the_server_is_valid(tmp_path) -> None:
    from hybridnet._command_line import _parser

    (command,) = re.findall(r"CMD \[(\"/venv/bin/hybridnet.*)\]", RECIPES["serve"])
    options = _parser().parse_args([word.strip('"') for word in shlex.split(command.replace(",", " "))][1:])
    assert (options.command, options.file, options.host, options.log) == ("serve", ["/models/digits"], "0.0.0.0", "-")


def test_recipes_run_as_no_root_and_keep_no_package_lists() -> None:
    for recipe in RECIPES.values():
        image = _stages(recipe)[-1]
        assert re.search(r"(?m)^USER (?!root)\w+$", image)
        assert "rm -rf /var/lib/apt/lists/*" in image
