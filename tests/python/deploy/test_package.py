"""Building programs in C and C++: flags, pkg-config, CMake, and the archive that needs no Python."""

from __future__ import annotations

import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import hybridnet as mx
import numpy as np
import pytest

from .client_programs import ROOT, run

BUILD = ROOT / "build"


def output_of(command: list[object], **options) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=500, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> pathlib.Path:
    if not (BUILD / "build.ninja").exists():
        pytest.skip("the archive is made of what tools/dev build leaves in build/")
    output_of(["cmake", "--build", BUILD, "--target", "hybridnet_package"])
    output = tmp_path_factory.mktemp("dist")
    output_of([sys.executable, ROOT / "tools" / "package.py", BUILD, output])
    return next(output.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def package(archive, tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("moved elsewhere")
    with tarfile.open(archive) as tar:
        tar.extractall(folder)
    return next(folder.iterdir())


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> tuple[pathlib.Path, pathlib.Path, np.ndarray, np.ndarray]:
    """Symbol and parameter file of a small network, an input, and Python's output for it."""
    folder = tmp_path_factory.mktemp("net")
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3, activation="relu"), mx.gluon.nn.Flatten(), mx.gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True)
    data = mx.nd.random.uniform(shape=(2, 1, 8, 8))
    out = net(data).asnumpy()
    files = net.export(str(folder / "net"))
    return pathlib.Path(files[0]), pathlib.Path(files[1]), data.asnumpy(), out


def shared_objects(*binaries: pathlib.Path) -> set[pathlib.Path]:
    found = set()
    for binary in binaries:
        for match in re.finditer(r"(?:=> )?(/\S+) \(0x", output_of(["ldd", binary])):
            found.add(pathlib.Path(match[1]))
    return found


def test_libinfo_prints_flags_that_compile(tmp_path) -> None:
    source = ROOT / "examples" / "cpp_superbuild" / "app" / "main.cc"
    flags = output_of([sys.executable, "-m", "hybridnet.libinfo", "--cflags", "--libs"])
    compiler = shutil.which("c++")
    output_of(["sh", "-c", f"{compiler} -std=c++20 {source} -o {tmp_path / 'fit'} {flags}"])
    assert re.match(r"y = 3\.0\d* \* x \+ -0\.50?\d*|y = 2\.9\d* \* x \+ -0\.[45]\d*", run(tmp_path / "fit"))
    for option in ("--version", "--cmakedir", "--pkgconfigdir", "--include", "--lib"):
        done = subprocess.run(
            [sys.executable, "-m", "hybridnet.libinfo", option], capture_output=True, text=True, timeout=100, check=True
        )
        assert len(done.stdout.splitlines()) == 1
        assert done.stderr == ""  # some builds treat output on stderr as an error


FIND_PACKAGE = """
cmake_minimum_required(VERSION 3.20)
project(app CXX)
find_package(hybridnet REQUIRED)
add_executable(app {source})
target_compile_features(app PRIVATE cxx_std_20)
target_link_libraries(app PRIVATE hybridnet::hybridnet)
"""


def test_cmake_and_pkg_config_find_the_python_package(tmp_path) -> None:
    source = ROOT / "examples" / "cpp_superbuild" / "app" / "main.cc"
    (tmp_path / "CMakeLists.txt").write_text(FIND_PACKAGE.format(source=source))

    def found(option: str) -> str:
        return output_of([sys.executable, "-m", "hybridnet.libinfo", option]).strip()

    output_of(["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-Dhybridnet_DIR={found('--cmakedir')}"])
    output_of(["cmake", "--build", tmp_path / "build"])
    assert run(tmp_path / "build" / "app").startswith("y = ")
    if shutil.which("pkg-config") is not None:
        environment = {**os.environ, "PKG_CONFIG_PATH": found("--pkgconfigdir")}
        flags = output_of(["pkg-config", "--cflags", "--libs", "hybridnet"], env=environment)
        output_of(["sh", "-c", f"c++ -std=c++20 {source} -o {tmp_path / 'fit'} {flags}"])
        assert run(tmp_path / "fit").startswith("y = ")


def declared_functions(header: pathlib.Path) -> dict[str, str]:
    """The functions of c_api.h, each with the interface version that introduced it."""
    found = re.findall(r"HN_API(?:_(\d+))? [a-z_ ]+[ *]+(hn_\w+)\(", header.read_text("utf-8"))
    return {name: f"hybridnet_{version or 1}" for version, name in found}


def test_every_function_has_the_symbol_version_that_the_header_says() -> None:
    header, text = ROOT / "include/hybridnet/c_api.h", (ROOT / "cmake/c_api.map").read_text("utf-8")
    nodes = re.findall(r"(hybridnet_\d+) \{\s+global:(.*?)\}([^;]*);", text, re.DOTALL)
    listed = {name: node for node, names, _ in nodes for name in re.findall(r"(hn_\w+);", names)}
    assert listed == declared_functions(header)
    assert [node for node, *_ in nodes] == [f"hybridnet_{i + 1}" for i in range(len(nodes))]
    assert [parent.strip() for *_, parent in nodes] == ["", *(node for node, *_ in nodes[:-1])]
    (version,) = re.findall(r"#define HN_ABI_VERSION (\d+)", header.read_text("utf-8"))
    assert int(version) == len(nodes)


def test_the_archive_shows_the_c_functions_alone_each_with_its_version(package) -> None:
    symbols = output_of(["nm", "--dynamic", "--defined-only", "--format=posix", package / "libhybridnet.so"])
    names = {name for name, kind in (line.split()[:2] for line in symbols.splitlines()) if kind != "A"}
    declared = declared_functions(package / "include/hybridnet/c_api.h")
    assert names == {f"{name}@@{version}" for name, version in declared.items()}
    assert not [file for file in package.rglob("*") if "python" in file.name.lower() or file.name.startswith("_core")]


def test_a_program_requires_only_the_versions_of_the_functions_it_calls(package, tmp_path) -> None:
    calls = {"hn_wait_all()": "hybridnet_1", "hn_dtype_size(0, 0)": "hybridnet_2", "!hn_dtype_name(0)": "hybridnet_3"}
    for call, version in calls.items():
        (tmp_path / "main.c").write_text(f'#include "hybridnet/c_api.h"\nint main(void) {{ return {call}; }}\n')
        output_of(["cc", tmp_path / "main.c", "-o", tmp_path / "main", f"-I{package / 'include'}", f"-L{package}",
                   "-lhybridnet", f"-Wl,-rpath-link,{package}"])  # fmt: skip
        needed = set(re.findall(r"hybridnet_\w+", output_of(["objdump", "-p", tmp_path / "main"])))
        assert needed == {version}


def test_the_archive_runs_in_a_root_that_holds_nothing_else(package, exported, tmp_path) -> None:
    symbol, params, data, expected = exported
    root = tmp_path / "root"
    shutil.copytree(package, root / "hybridnet")
    source = ROOT / "tests" / "cpp" / "clients" / "run_model.cc"
    program = root / "run_model"
    output_of(
        [
            *("c++", "-std=c++20", "-O1", source, "-o", program, f"-I{package / 'include'}", f"-L{package}"),
            *("-lhybridnet", "-Wl,-rpath,/hybridnet", f"-Wl,-rpath-link,{package}"),
        ]
    )
    system = shared_objects(*package.glob("*.so*")) | {pathlib.Path("/lib64/ld-linux-x86-64.so.2")}
    own = {file.name for file in package.glob("*.so*")}
    for library in sorted(system):
        if library.name in own or str(library).startswith(str(package)):
            continue
        assert library.name.startswith(
            ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "ld-", "libstdc++", "libgcc_s")
        )
        target = root / library.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library.resolve(), target)
    shutil.copy2(symbol, root / "net-symbol.json")
    shutil.copy2(params, root / "net-0000.params")
    mx.nd.save(str(root / "case.params"), {"input:data": mx.nd.array(data)})
    chroot = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin") or "chroot"
    enter = [chroot] if os.geteuid() == 0 else [shutil.which("unshare") or "unshare", "--map-root-user", chroot]
    if subprocess.run([*enter, str(root), "/missing"], capture_output=True, check=False).returncode != 127:
        pytest.skip("this machine does not allow to enter another root (chroot, or unshare with user namespaces)")
    output_of(
        [*enter, root, "/run_model", "/net-symbol.json", "/net-0000.params", "/case.params", "/result.params"],
        env={"PATH": ""},
    )
    result = mx.nd.load(str(root / "result.params"))["output:0"].asnumpy()
    assert result.tobytes() == expected.tobytes()


def test_pkg_config_finds_the_archive_wherever_it_lies(package, exported, tmp_path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    moved = tmp_path / "hybridnet"  # flags are separated by spaces, so the folder must have none
    shutil.copytree(package, moved)
    environment = {**os.environ, "PKG_CONFIG_PATH": str(moved)}
    flags = output_of(["pkg-config", "--cflags", "--libs", "hybridnet"], env=environment)
    assert output_of(["pkg-config", "--modversion", "hybridnet"], env=environment).strip() == mx.__version__
    source = ROOT / "examples" / "cpp_superbuild" / "app" / "main.cc"
    output_of(["sh", "-c", f"c++ -std=c++20 {source} -o {tmp_path / 'fit'} {flags}"])
    assert run(tmp_path / "fit").startswith("y = ")
    assert str(moved / "libhybridnet.so") in output_of(["ldd", tmp_path / "fit"])


def test_the_superbuild_example_needs_the_archive_alone(archive, tmp_path) -> None:
    folder = tmp_path / "build"
    output_of(["cmake", "-S", ROOT / "examples/cpp_superbuild", "-B", folder, f"-DHYBRIDNET_ARCHIVE={archive}"])
    output_of(["cmake", "--build", folder])
    assert run(folder / "app" / "fit_line").startswith("y = ")


@pytest.mark.slow
def test_the_readme_of_the_archive_says_how_its_example_is_built(package, exported, tmp_path) -> None:
    folder = tmp_path / "hybridnet"
    shutil.copytree(package, folder)
    readme = (folder / "README.md").read_text("utf-8")
    assert readme.startswith(f"# HybridNet {mx.__version__} ")
    assert not re.search("@[A-Z]+@", readme)
    commands = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
    assert len(commands) == 3
    for command, place in zip(commands, (folder / "example", folder, folder), strict=True):
        output_of(["sh", "-ec", command], cwd=place)
    prefix = str(exported[0]).removesuffix("-symbol.json")
    moved = shutil.copytree(folder / "dist", tmp_path / "moved")
    shutil.rmtree(folder / "dist")
    assert "shape (2,3,):" in output_of([moved / "predict", prefix, "2,1,8,8"], env={})
    output_of(["cmake", "--install", folder / "build", "--prefix", tmp_path / "dist"])
    shutil.rmtree(folder)
    installed = shutil.move(tmp_path / "dist", tmp_path / "elsewhere")
    assert output_of([pathlib.Path(installed) / "bin" / "fit_line"], env={}).startswith("y = ")
    assert "shape (2,3,):" in output_of([pathlib.Path(installed) / "bin" / "predict", prefix, "2,1,8,8"], env={})


def test_the_export_list_of_wheels_has_the_symbols_of_the_extension_module() -> None:
    text = (ROOT / "cmake" / "exports.map").read_text(encoding="utf-8")
    hidden = [pattern for part in re.findall(r"local:(.*?)\}", text, re.DOTALL) for pattern in part.split(";")]
    hidden = [pattern.strip() for pattern in hidden if pattern.strip()]
    assert hidden
    undefined = output_of(["nm", "--dynamic", "--undefined-only", "--format=posix", mx._core.__file__])
    names = {line.split()[0].split("@")[0] for line in undefined.splitlines()}
    own = {name for name in names if re.match(r"_ZNK?9hybridnet", name)}
    assert own
    assert not [name for name in own for pattern in hidden if fnmatch.fnmatchcase(name, pattern)]
