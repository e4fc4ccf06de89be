#!/usr/bin/env python3
"""Puts the archive for programs in C and C++ together: libraries, headers, CMake package, pkg-config file, licenses, a
README and an example.

Usage: package.py BUILD_FOLDER OUTPUT_FOLDER. Needs the target hybridnet_package; `tools/dev package` builds it. The
archive can be unpacked anywhere and needs no Python, only the C and C++ libraries of the system.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ROOT / "python" / "hybridnet"  # the build puts the dependencies of libhybridnet.so here
OF_THE_SYSTEM = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so")
# Every machine that runs C++ programs has these libraries.
OF_THE_COMPILER = ("libstdc++.so", "libgcc_s.so")


def version() -> str:
    found = re.search(r'^__version__ = "([^"]+)"', (LIBRARIES / "libinfo.py").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("tools/package.py: libinfo.py has no __version__")
    return found[1]


def needed_by(library: Path) -> dict[str, Path]:
    """The name and path of each shared object that a library loads, directly or indirectly."""
    text = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=True).stdout
    return {name: Path(place) for name, place in re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE)}


def exported_by(library: Path) -> set[str]:
    """The symbols that a library exports, without the names of versions (kind A)."""
    command = ["nm", "--dynamic", "--defined-only", "--format=posix", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name.split("@")[0] for name, kind in (line.split()[:2] for line in text.splitlines()) if kind != "A"}


def assemble(build: Path, folder: Path) -> None:
    """Copies the contents of the archive into an empty folder."""
    shutil.copy2(build / "package" / "libhybridnet.so", folder)
    for file in LIBRARIES.glob("*.so*"):  # OpenBLAS is loaded at its first use, so ldd does not list it
        if not file.name.startswith(
            ("_core", "libhybridnet.so", "libhybridnet_jni", "libhybridnet_gloo", "libhybridnet_mpi", "libhnstandin")
        ):
            shutil.copy2(file, folder)
    for name, place in needed_by(folder / "libhybridnet.so").items():
        if not (folder / name).exists() and not name.startswith(OF_THE_SYSTEM + OF_THE_COMPILER):
            shutil.copy2(place.resolve(), folder / name)
    for library in folder.glob("*.so*"):
        library.chmod(0o755)
        subprocess.run(["strip", "--strip-unneeded", str(library)], check=True)
    public = ["c_api.h", *(f"cpp/{file.name}" for file in (ROOT / "include/hybridnet/cpp").glob("*.h"))]
    for name in public:
        target = folder / "include" / "hybridnet" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / "include" / "hybridnet" / name, target)
    (folder / "cmake").mkdir()
    for file in ("hybridnet-config.cmake", "hybridnet-config-version.cmake"):
        shutil.copy2(ROOT / "cmake" / file, folder / "cmake")
    for file in (*LIBRARIES.glob("*.LICENSE.txt"), LIBRARIES / "libinfo.py", LIBRARIES / "hybridnet.pc"):
        shutil.copy2(file, folder)
    for name in ("LICENSE", "THIRD_PARTY.md"):
        shutil.copy2(ROOT / name, folder)
    add_guide(folder)
    others = {name for name in exported_by(folder / "libhybridnet.so") if not name.startswith("hn_")}
    if others:
        raise SystemExit(f"tools/package.py: libhybridnet.so exports more than hn_*: {', '.join(sorted(others)[:9])}")


def glibc_needed_by(folder: Path) -> str:
    """The newest version of glibc whose symbols the libraries of a folder need."""
    texts = [
        subprocess.run(["objdump", "-T", str(file)], capture_output=True, text=True, check=True).stdout
        for file in folder.glob("*.so*")
    ]
    found = {tuple(map(int, number.split("."))) for number in re.findall(r"\(?GLIBC_([\d.]+)\)?", "".join(texts))}
    return ".".join(map(str, max(found)))


def add_guide(folder: Path) -> None:
    """Writes README.md and the folder example."""
    text = (ROOT / "tools" / "archive" / "README.md").read_text(encoding="utf-8")
    facts = {"VERSION": version(), "MACHINE": platform.machine(), "GLIBC": glibc_needed_by(folder)}
    for name, fact in facts.items():
        text = text.replace(f"@{name}@", fact)
    (folder / "README.md").write_text(text, encoding="utf-8")
    example = folder / "example"
    example.mkdir()
    for file in ("CMakeLists.txt", "predict.cc"):
        shutil.copy2(ROOT / "tools" / "archive" / file, example)
    shutil.copy2(ROOT / "examples" / "cpp_superbuild" / "app" / "main.cc", example / "fit_line.cc")


def main() -> int:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    build, output = Path(sys.argv[1]), Path(sys.argv[2])
    name = f"hybridnet-{version()}-linux-{platform.machine()}"
    folder = output / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    assemble(build, folder)
    archive = output / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=6) as tar:
        tar.add(folder, arcname=name)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB, unpacked {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
