from __future__ import annotations

import pathlib
import sys

import pytest

from .java_programs import NATIVES, ROOT, TOOL, output_of


@pytest.fixture(scope="session")
def jar(tmp_path_factory) -> pathlib.Path:
    """A jar of the classes of java/ without native libraries, built in a temporary folder."""
    if "openjdk" in output_of(sys.executable, TOOL, "missing") or not (NATIVES / "libhybridnet_jni.so").exists():
        pytest.skip("no JDK 17 was there when the library was built: tools/dev test installs one")
    classes, jar = tmp_path_factory.mktemp("classes"), tmp_path_factory.mktemp("jar") / "hybridnet.jar"
    sources = sorted((ROOT / "java" / "src" / "main" / "java").rglob("*.java"))
    output_of("javac", "--release", "17", "-d", classes, *sources)
    output_of("jar", "--create", "--file", jar, "-C", classes, ".")
    return jar
