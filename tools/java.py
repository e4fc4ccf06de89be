#!/usr/bin/env python3
"""Builds, tests and documents java/ with a JDK 17 or later and Debian's JUnit 5, without Maven and without a network.

  java.py build           java/src/main into build/java/hybridnet-VERSION.jar
  java.py test [CLASS...] that, Javadoc, and the tests of java/src/test or of the named classes; --slow: all of them
  java.py doc             Javadoc into build/java/doc; a public name without a comment is an error
  java.py jar             dist/hybridnet-VERSION-PLATFORM.jar, which holds the native libraries too
  java.py missing         prints the Debian packages that are missing, or nothing

`java/pom.xml` does the same for users of Maven. tools/dev build must have built the native libraries.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import package

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "java" / "src"
BUILD = ROOT / "build" / "java"
PACKAGE = ROOT / "python" / "hybridnet"  # tools/dev build puts the native libraries here
JARS = Path("/usr/share/java")
JUNIT = (
    *("junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params", "junit-platform-commons"),
    *("junit-platform-console", "junit-platform-engine", "junit-platform-launcher", "junit-platform-reporting"),
    *("opentest4j", "apiguardian-api", "picocli", "univocity-parsers"),
)
JUNIT_OPTIONAL = (
    "opentest4j-reporting-events",
    "opentest4j-reporting-schema",
)  # newer consoles need them
RELEASE = "17"


def fail(text: str) -> None:
    raise SystemExit(f"tools/java.py: {text}")


def tool(name: str) -> str | None:
    """The path of a program of the JDK: JAVA_HOME's, else the one on PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(name, path=f"{home}/bin") if home else shutil.which(name)


def has_jdk() -> bool:
    """True if there is a javac of version 17 or later, with the header for native code."""
    javac = tool("javac")
    if not javac or not (Path(javac).resolve().parents[1] / "include" / "jni.h").exists():
        return False
    version = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False).stdout.split()
    return len(version) == 2 and int(version[1].split(".")[0]) >= int(RELEASE)


def junit_jars() -> list[Path]:
    jars = [JARS / f"{name}.jar" for name in JUNIT]
    return jars + [path for name in JUNIT_OPTIONAL if (path := JARS / f"{name}.jar").exists()]


def missing_packages() -> list[str]:
    """Debian's names of the missing packages."""
    packages = [] if has_jdk() else ["openjdk-17-jdk-headless"]
    if not all(path.exists() for path in junit_jars()):
        packages.append("junit5")
    return packages


def run(*command: str | Path) -> None:
    words = [str(word) for word in command]
    if subprocess.run(words, check=False).returncode != 0:
        fail(f"{Path(words[0]).name} failed (its reason stands above)")


def run_watched(*command: str | Path) -> None:
    """Runs a Java program under -Xcheck:jni; also fails if that reports an error."""
    broken = False
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            broken = broken or "in native method" in line
            print(line, end="", flush=True)
    if broken or process.returncode != 0:
        fail("a test failed, or native code broke a rule of JNI (above)")


def compile_java(sources: Path, target: Path, class_path: list[Path]) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    javac = tool("javac")
    assert javac
    files = sorted(sources.rglob("*.java"))
    path = os.pathsep.join(map(str, class_path))
    lint = "-Xlint:all,-path,-try"  # Debian's jars refer to missing ones; tests close objects that try closes, too
    run(javac, "--release", RELEASE, lint, "-Werror", "-encoding", "UTF-8", "-cp", path, "-d", target, *files)


def build() -> Path:
    """Compiles java/src/main; returns the jar."""
    classes = BUILD / "classes"
    compile_java(SOURCES / "main" / "java", classes, [])
    jar = BUILD / f"hybridnet-{package.version()}.jar"
    make_jar(jar, classes)
    return jar


def make_jar(jar: Path, *folders: Path) -> None:
    """Writes the contents of folders into a jar, with their relative paths."""
    program = tool("jar")
    assert program
    run(program, "--create", "--file", jar, *(word for folder in folders for word in ("-C", folder, ".")))


def native_jar(target: Path) -> Path:
    """Makes a jar of the classes and the libraries of the archive for C; returns it."""
    jni = PACKAGE / "libhybridnet_jni.so"
    if not jni.exists():
        fail(f"there is no {jni}.\n  Fix: tools/dev build")
    build()
    root = BUILD / "natives"
    shutil.rmtree(root, ignore_errors=True)
    folder = root / "org" / "hybridnet" / "natives" / f"{platform.system().lower()}-{platform.machine()}"
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as archive:
        package.assemble(BUILD.parent, Path(archive))
        for file in [*Path(archive).glob("*.so*"), *Path(archive).glob("*LICENSE*"), Path(archive) / "THIRD_PARTY.md"]:
            shutil.copy2(file, folder)
    run("strip", "--strip-unneeded", "-o", folder / jni.name, jni)
    libraries = sorted(file.name for file in folder.glob("*.so*"))
    (folder / "files.txt").write_text("\n".join(libraries), encoding="utf-8")
    target.mkdir(parents=True, exist_ok=True)
    jar = target / f"hybridnet-{package.version()}-{folder.name}.jar"
    make_jar(jar, BUILD / "classes", root)
    shutil.rmtree(root)
    return jar


def document() -> None:
    javadoc = tool("javadoc")
    assert javadoc
    shutil.rmtree(BUILD / "doc", ignore_errors=True)
    files = sorted((SOURCES / "main" / "java").rglob("*.java"))
    run(
        *(javadoc, "-quiet", "-Xdoclint:all", "-Werror", "--release", RELEASE, "-encoding", "UTF-8"),
        *("-notimestamp", "-d", BUILD / "doc", *files),
    )


def test(classes: list[str], slow: bool) -> None:
    build()
    document()
    jars = junit_jars()
    compile_java(SOURCES / "test" / "java", BUILD / "test-classes", [BUILD / "classes", *jars])
    run(sys.executable, SOURCES / "test" / "python" / "write_models.py", BUILD / "models")
    java = tool("java")
    assert java
    # -Xcheck:jni prints violations of the rules of JNI by native code, and continues.
    selected = [f"--select-class=org.hybridnet.{name}" for name in classes] or ["--select-package=org.hybridnet"]
    run_watched(
        *(java, "-Xmx64m", "-Xcheck:jni", f"-Djava.library.path={PACKAGE}", f"-Dhybridnet.models={BUILD / 'models'}"),
        *("-cp", os.pathsep.join(map(str, [BUILD / "classes", BUILD / "test-classes", *jars]))),
        *("org.junit.platform.console.ConsoleLauncher", "--details=summary", "--disable-banner", "--fail-if-no-tests"),
        *([] if slow else ["--exclude-tag=slow"]),
        *selected,
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "test", "doc", "jar", "missing"])
    parser.add_argument("classes", nargs="*", metavar="CLASS", help="test: only these, such as NDArrayTest")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="jar: its folder, else dist/")
    parser.add_argument("--slow", action="store_true", help="test: also those with the tag slow")
    given = parser.parse_args(arguments)
    missing = missing_packages()
    if given.command == "missing":
        print(" ".join(missing))
        return
    if missing if given.command == "test" else not has_jdk():
        fail(f"missing: {' '.join(missing)}\n  Fix: apt-get install {' '.join(missing)}, or tools/dev setup --all")
    if given.command == "build":
        print(build())
    elif given.command == "test":
        test(given.classes, given.slow)
    elif given.command == "doc":
        document()
    else:
        print(native_jar(given.output))


if __name__ == "__main__":
    main()
