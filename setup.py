"""Builds the native part of the package with CMake and Ninja; pyproject.toml holds everything else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class CMakeBuild(build_ext):
    """Builds ``hybridnet._core`` and the libraries beside it, then adds headers and the CMake package."""

    def run(self) -> None:
        if self.editable_mode:
            raise SystemExit(
                "hybridnet: editable installs are not supported.\n"
                f"  Fix: run `tools/dev build` in {ROOT}, which builds into python/hybridnet, and put "
                f"{ROOT / 'python'} on PYTHONPATH; or run `pip install .`."
            )
        package = Path(self.build_lib).resolve() / "hybridnet"
        build_folder = Path(self.build_temp).resolve()
        build_folder.mkdir(parents=True, exist_ok=True)
        self._cmake(
            "-S", str(ROOT), "-B", str(build_folder), *self._generator(),
            "-DCMAKE_BUILD_TYPE=Release",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DHYBRIDNET_OUTPUT_DIR={package}",
        )  # fmt: skip
        cores = self.parallel or len(os.sched_getaffinity(0))
        self._announce(cores)
        self._cmake("--build", str(build_folder), "--parallel", str(cores))
        self._strip(package)
        # Programs in C and C++ use the C functions and the headers over them; the others are for the library itself.
        headers = ROOT / "include" / "hybridnet"
        shutil.copytree(headers / "cpp", package / "include" / "hybridnet" / "cpp", dirs_exist_ok=True)
        shutil.copy2(headers / "c_api.h", package / "include" / "hybridnet")
        shutil.copytree(
            ROOT / "cmake",
            package / "cmake",
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("*.py", "*.map", "*.in", "__pycache__"),
        )

    def get_outputs(self) -> list[str]:
        package = Path(self.build_lib) / "hybridnet"
        native = [
            *package.glob("*.so"),
            *package.glob("*.so.*"),
            *package.glob("*.LICENSE.txt"),
            package / "hybridnet.pc",
        ]
        shipped = [file for folder in ("include", "cmake") for file in (package / folder).rglob("*") if file.is_file()]
        return [str(file) for file in native + shipped]

    @staticmethod
    def _announce(cores: int) -> None:
        """Says how long compiling takes: measured, 1.75 seconds of one core per file."""
        files = sum(1 for _ in (ROOT / "src").rglob("*.cc"))
        print(f"hybridnet: compiling {files} C++ files on {cores} cores, about {files * 1.75 / cores / 60:.0f} minutes")
        sys.stdout.flush()

    @staticmethod
    def _generator() -> list[str]:
        return ["-G", "Ninja"] if shutil.which("ninja") else []

    @staticmethod
    def _cmake(*arguments: str) -> None:
        if not shutil.which("cmake"):
            raise SystemExit(
                "hybridnet: cmake was not found.\n  Fix: `pip install cmake ninja`, or install them by apt."
            )
        try:
            subprocess.run(["cmake", *arguments], check=True)
        except subprocess.CalledProcessError as failure:
            raise SystemExit(
                f"hybridnet: `cmake {' '.join(arguments)}` failed with status {failure.returncode}; "
                "the reason stands above."
            ) from None

    @staticmethod
    def _strip(package: Path) -> None:
        """Removes debug information: a stripped package is a quarter of the size."""
        strip = shutil.which("strip")
        if not strip or os.environ.get("HYBRIDNET_BUILD_KEEP_SYMBOLS"):
            return
        for library in [*package.glob("*.so"), *package.glob("*.so.*")]:
            subprocess.run([strip, "--strip-unneeded", str(library)], check=True)


setup(
    ext_modules=[Extension("hybridnet._core", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)
