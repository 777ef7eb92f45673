"""Public names that are imported when they are asked for: `import plait` alone costs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

_EXTRAS = {
    "pyspark": "spark",
    "pandas": "spark",
    "google": "spark",
    "py4j": "spark",
    "deltalake": "delta",
    "starlette": "console",
    "uvicorn": "console",
    "prometheus_client": "metrics",
}
"""The extra of Plait that installs a package."""


def lazy(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Make the `__getattr__` of a package from the modules that its public names are in.

    A name may also be that of a subpackage. A name that needs a package that is not installed is a
    function that says which extra of Plait to install.

    >>> lazy("plait", {"join": "plait.api.join"})("join").__name__
    'join'
    """

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(places[name])
            return module if module.__name__ == f"{package}.{name}" else getattr(module, name)
        except ModuleNotFoundError as error:
            extra = _EXTRAS.get(str(error.name).partition(".")[0])
            if extra is None:
                raise
            return _not_installed(f"{package}.{name}", str(error.name), extra)

    return get


def _not_installed(name: str, missing: str, extra: str) -> object:
    """Return a function in the place of one whose packages are not installed."""

    def refuse(*arguments: object, **named: object) -> None:
        from plait.errors import MissingRequirement

        raise MissingRequirement(
            f"{name} needs {missing}, which is not installed",
            remedy=f"pip install 'plait[{extra}]' brings it",
        )

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__doc__ = f"Not available here: pip install 'plait[{extra}]' brings what it needs."
    return refuse
