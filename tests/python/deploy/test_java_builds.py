"""The ways of docs/deploy-java.md to compile a program with the jar: javac and Maven, without a network."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from hybridnet import libinfo

from .client_programs import ROOT
from .java_programs import NATIVES

GUIDE = (ROOT / "docs" / "deploy-java.md").read_text("utf-8")
SECTION = GUIDE[GUIDE.index("## Compiling") : GUIDE.index("## Predicting")]
JAVA = re.findall(r"```java\n(.*?)```", SECTION, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
SAID = f"HybridNet {libinfo.__version__}\n"


def _shell(script: str, folder: pathlib.Path, jar: pathlib.Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "JAR": str(jar), "JAVA_TOOL_OPTIONS": f"-Djava.library.path={NATIVES}", **more}
    return subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "project"
    source = folder / "src" / "main" / "java" / "app" / "App.java"
    source.parent.mkdir(parents=True)
    source.write_text(JAVA[0], "utf-8")
    shutil.copy2(source, folder)
    (folder / "pom.xml").write_text(re.findall(r"```xml\n(.*?)```", SECTION, re.DOTALL)[0], "utf-8")
    return folder


def test_javac_needs_the_jar_alone(jar, project) -> None:
    done = _shell(SHELL[0], project, jar)
    assert (done.returncode, done.stdout) == (0, SAID), done.stderr


@pytest.mark.slow
def test_maven_builds_offline_from_a_folder_of_the_project(jar, project, tmp_path) -> None:
    """The local repository is a copy by links: the user's own must not get this jar."""
    own = pathlib.Path.home() / ".m2" / "repository"
    if shutil.which("mvn") is None or not own.is_dir():
        pytest.skip("Maven is not installed, or was never used, so that its plugins are missing")
    subprocess.run(["cp", "-rs", str(own), str(tmp_path / "m2")], check=True)
    shutil.rmtree(tmp_path / "m2" / "org" / "hybridnet", ignore_errors=True)
    done = _shell(
        f"{SHELL[1]}\n{SHELL[2]}", project, jar, MAVEN_OPTS=f"-Dmaven.repo.local={tmp_path / 'm2'}"
    )  # fmt: skip
    if re.search(r"[Pp]lugin \S+ or one of its dependencies could not be resolved", done.stdout):
        pytest.skip("plugins of Maven are not in its local repository; `mvn package` with a network downloads them")
    assert done.returncode == 0 and done.stdout.endswith(SAID), done.stdout + done.stderr  # after codes of colors


def test_the_snippets_name_the_version_of_the_package() -> None:
    assert len(SHELL) == 3
    assert set(re.findall(r"hybridnet[/-](\d+\.\d+\.\d+)", SECTION)) == {libinfo.__version__}
    assert f"<version>{libinfo.__version__}</version>" in SECTION
