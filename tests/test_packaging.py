"""What the wheel and the container image hold: the Dockerfile's own RUN lines, run in a folder without a container."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run_lines(dockerfile: str) -> list[str]:
    """The commands of all RUN lines, continuation lines joined."""
    return re.findall(r"^RUN (.+)$", re.sub(r"\\\n\s*", "", dockerfile), re.MULTILINE)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """A folder in which every RUN line was run.

    Requirements come from the environment of this test (a .pth file in the new venv), so nothing is fetched and only
    Goalkeeper itself is built and installed; that the locked set can be fetched is shown by `make` in CI.
    """
    folder = tmp_path_factory.mktemp("image")
    source = folder / "src"
    source.mkdir()
    for name in ("pyproject.toml", "requirements.lock", "README.md"):
        shutil.copy(ROOT / name, source)
    for name in ("proxy", "config"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    opt = folder / "opt"
    subprocess.run([sys.executable, "-m", "venv", opt], check=True)
    site = sysconfig.get_path("purelib", vars={"base": str(opt)})
    Path(site, "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for line in run_lines((ROOT / "Dockerfile").read_text("utf-8")):
        here = line.replace("/opt/goalkeeper", str(opt)).replace("/data", str(folder / "data"))
        done = subprocess.run(["sh", "-ec", here], cwd=source, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{here}\n{done.stdout}\n{done.stderr}"
    return folder


def in_image(image: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [image / "opt/bin" / command[0], *command[1:]],
        cwd=image,
        env={"PATH": os.environ["PATH"], "HOME": str(image / "data"), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_installed_command_knows_its_version(image):
    assert in_image(image, "goalkeeper", "--version").stdout.strip() == "goalkeeper 0.1.0"


def test_the_configuration_comes_with_the_wheel(image):
    code = "from proxy.settings import load_settings, packaged_folder; load_settings(); print(packaged_folder())"
    folder = Path(in_image(image, "python", "-c", code).stdout.strip())
    assert folder.is_relative_to(image / "opt")
    packaged = {str(file.relative_to(folder)) for file in folder.rglob("*.yaml")}
    assert packaged == {str(file.relative_to(ROOT / "config")) for file in (ROOT / "config").rglob("*.yaml")}


def test_the_migrations_come_with_the_wheel(image):
    code = "import proxy.store, pathlib; print(*pathlib.Path(proxy.store.__file__).parent.rglob('*.sql'))"
    names = {Path(file).name for file in in_image(image, "python", "-c", code).stdout.split()}
    assert names == {file.name for file in (ROOT / "proxy/store/migrations").glob("*.sql")}


def test_the_container_does_not_start_without_a_token(image):
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    (host,) = re.findall(r"GOALKEEPER_HOST=(\S+)", dockerfile)
    done = in_image(image, "goalkeeper", "serve", GOALKEEPER_HOST=host, GOALKEEPER_DATA=str(image / "data/goalkeeper"))
    assert done.returncode == 2
    assert "server.token" in done.stderr


def test_the_image_runs_as_an_unprivileged_user_and_names_its_port():
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER (?!root|0)\S+$", dockerfile, re.MULTILINE)
    assert "EXPOSE 8787" in dockerfile


def test_every_dependency_stands_in_the_lock():
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    wanted = set(re.findall(r'^    "([A-Za-z0-9-]+)>=', pyproject, re.MULTILINE))
    locked = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE))
    assert wanted
    assert wanted <= locked
