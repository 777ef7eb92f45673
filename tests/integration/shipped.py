"""The Python environment that goes to the workers of a cluster with `spark.archives`.

It is made as the deployment guide says: a virtual environment with Plait and what its workers need,
without PySpark, which Spark brings along, packed by venv-pack. `./dev setup --integration` installs
the other packages (`python -m tests.integration.shipped`); Plait itself is installed whenever its
source has changed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = Path(sys.prefix, "integration")
ENVIRONMENT = HOME / "shipped"
_PYTHON = ENVIRONMENT / "bin" / "python"
_PIP = (sys.executable, "-m", "pip", "--python", _PYTHON)
_EXTRAS = ("worker",)
_SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")
_NOT_SHIPPED = ("*/tests/*", "*/pyarrow/include/*")
_MADE_HERE = shutil.ignore_patterns("__pycache__", "*.egg-info")


def missing() -> str | None:
    """What is not there to make it of; None if everything is."""
    for name, there in (
        ("the environment of the workers", _PYTHON.exists()),
        ("venv-pack", find_spec("venv_pack") is not None),
    ):
        if not there:
            return f"{name} is missing: ./dev setup --integration fetches what it needs"
    return None


def install_packages() -> None:
    """Make the environment, with everything but Plait; nothing if it is there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for name in _EXTRAS for one in project["optional-dependencies"][name]]
    wanted = [*project["dependencies"], *extras]
    stamp = ENVIRONMENT / "installed.json"
    if stamp.exists() and json.loads(stamp.read_text(encoding="utf-8")) == wanted:
        return
    venv.create(ENVIRONMENT, clear=True, symlinks=True)
    _run(*_PIP, "install", "--quiet", "--disable-pip-version-check", "--no-input", *wanted)
    stamp.write_text(json.dumps(wanted), encoding="utf-8")


def archive() -> Path:
    """The archive with Plait as it is now; made anew only if something has changed."""
    import venv_pack

    found = HOME / f"environment-{_digest()}.tar.gz"
    if found.exists():
        return found
    for old in HOME.glob("environment-*.tar.gz"):
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="plait-shipped-") as folder:
        _install(Path(folder))
        draft = Path(folder, "environment.tar.gz")
        packed = venv_pack.Env(str(ENVIRONMENT))
        for pattern in _NOT_SHIPPED:
            packed = packed.exclude(pattern)
        # Not compressed: the network is this machine. But no plain tar, which Spark unpacks itself,
        # without the permission to run what is in it.
        packed.pack(str(draft), compress_level=0)
        shutil.move(draft, found)
    return found


def _install(folder: Path) -> None:
    """From a copy of the source: nothing is left in the tree."""
    tree = folder / "tree"
    tree.mkdir()
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=_MADE_HERE)
        else:
            shutil.copy(ROOT / name, tree / name)
    alone = ("--no-deps", "--no-index", "--quiet", "--disable-pip-version-check")
    _run(
        *(sys.executable, "-m", "pip", "wheel", *alone),
        *("--no-build-isolation", "-w", folder, tree),
    )
    (wheel,) = folder.glob("plait-*.whl")
    _run(*_PIP, "install", *alone, "--force-reinstall", wheel)
    _run(_PYTHON, "-I", "-m", "plait", "env", "warm")  # compiled once, and not by every executor


def _digest() -> str:
    """Of everything that the archive is made of."""
    found = hashlib.sha256(repr(sorted(p.name for p in _packages())).encode())
    for name in _SOURCES:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return found.hexdigest()[:16]


def _packages() -> list[Path]:
    """The installed ones, whose names tell their versions."""
    found = ENVIRONMENT.glob("lib/python*/site-packages/*.dist-info")
    return [path for path in found if not path.name.startswith("plait-")]


def _run(*command: object) -> None:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, cwd=HOME
    )
    if done.returncode:
        raise RuntimeError(f"{Path(str(command[0])).name} failed: {done.stderr.strip()[-2000:]}")


if __name__ == "__main__":
    install_packages()
