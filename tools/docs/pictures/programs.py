"""Programs in C, C++ and Java that pictures run: compiled from the sources of the examples, against this package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from hybridnet.errors import ImportError as MissingProgram

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = ROOT / "python" / "hybridnet"
sys.path.append(str(ROOT / "tools"))
import java  # noqa: E402


def tool(*names: str) -> str:
    """Returns the first of the programs that is installed. Raises ImportError if there is none."""
    for name in names:
        if found := shutil.which(name):
            return found
    raise MissingProgram(f"the picture needs {' or '.join(names)}")


def output_of(*command: str | Path) -> str:
    """Runs a program; returns what it prints. Raises RuntimeError, with all of its output, if it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(str(command[0])).name} failed: {done.stdout}{done.stderr}")
    return done.stdout


def compiled_cpp(source: str, folder: Path) -> Path:
    """Compiles a C++ program, a path from the root, and links libhybridnet.so; returns its path."""
    program = folder / Path(source).stem
    linked = ("-L", LIBRARIES, "-lhybridnet", f"-Wl,-rpath,{LIBRARIES}")
    output_of(
        tool("c++", "g++", "clang++"), "-std=c++20", "-I", ROOT / "include", ROOT / source, *linked, "-o", program
    )
    return program


def compiled_library(source: str, folder: Path) -> Path:
    """Compiles a C file, a path from the root, into a shared object; returns its path."""
    made = folder / f"lib{Path(source).stem}.so"
    output_of(tool("cc", "gcc", "clang"), "-O2", "-shared", "-fPIC", "-I", ROOT / "include", ROOT / source, "-o", made)
    return made


def java_classes(programs: str, folder: Path) -> str:
    """Compiles java/src/main and the programs of a folder, a path from the root; returns the class path.

    Raises ImportError without a JDK of version 17 or later, or without the library for Java.
    """
    if not java.has_jdk():
        raise MissingProgram("the picture needs javac of version 17 or later", fix="install openjdk-17-jdk-headless")
    if not (LIBRARIES / "libhybridnet_jni.so").exists():
        raise MissingProgram("the picture needs libhybridnet_jni.so", fix="tools/dev build")
    package, made = folder / "package", folder / "programs"
    java.compile_java(ROOT / "java" / "src" / "main" / "java", package, [])
    java.compile_java(ROOT / programs, made, [package])
    return os.pathsep.join([str(package), str(made)])


def run_java(classes: str, name: str, *arguments: str | Path) -> str:
    """Runs the main method of a compiled class; returns what it prints."""
    program = java.tool("java") or tool("java")
    return output_of(program, "-cp", classes, f"-Djava.library.path={LIBRARIES}", name, *arguments)
