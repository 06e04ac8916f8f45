"""Methods and datasets of other packages, found by their entry points.

``shrunk = "shrunk_mean"`` in the group ``pagnn_bench.methods`` means: the file ``shrunk.yaml`` in the folder of the
package ``shrunk_mean`` is the choice ``method=shrunk``. Such a package is not imported before it is chosen, so listing
the choices stays quick, and a package that cannot be imported does not affect the others.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagnn_bench.config.errors import RequestError
from pagnn_bench.config.text import one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = {"method": "pagnn_bench.methods", "data": "pagnn_bench.data"}  # by group of choices
NEEDED = {"method": "_target_", "data": "source"}  # the key without which nothing can be trained or loaded
PACKAGED = Path(str(files("pagnn_bench.conf")))

logger = logging.getLogger(__name__)


@cache
def plug_ins(group: str) -> dict[str, dict[str, Any]]:
    """What other packages add to a group: name → content of the configuration file, interpolations not resolved.

    A broken plug-in is left out with a warning, once; so is one whose name is already taken.
    """
    contents: dict[str, dict[str, Any]] = {}
    for entry in _entries(group):
        try:
            if entry.name in contents or PACKAGED.joinpath(group, f"{entry.name}.yaml").is_file():
                owner = "another package" if entry.name in contents else "pagnn-bench"
                raise RequestError(f"{owner} has a {group} of this name")
            contents[entry.name] = _read(group, entry)
        except RequestError as error:
            logger.warning("%s %s of package %s is skipped: %s.", group, entry.name, _package(entry), error)
    return contents


@cache
def plugged_packages() -> tuple[str, ...]:
    """The names of all packages with plug-ins: their versions belong to the provenance of a trial."""
    names = {_package(entry) for group in ENTRY_POINTS for entry in _entries(group)}
    return tuple(sorted(names))


def _entries(group: str) -> list[EntryPoint]:
    from importlib.metadata import entry_points  # slow to import

    return list(entry_points(group=ENTRY_POINTS[group])) if group in ENTRY_POINTS else []


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value


def _read(group: str, entry: EntryPoint) -> dict[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    file = _folder(entry.value) / f"{entry.name}.yaml"
    try:
        content = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
    except FileNotFoundError:
        raise RequestError(f"{entry.value} has no file {file.name}") from None
    except (OSError, UnicodeDecodeError, YAMLError, OmegaConfBaseException) as error:
        raise RequestError(f"{file} cannot be read ({one_line(str(error))})") from error
    if not isinstance(content, dict) or NEEDED[group] not in content:
        raise RequestError(f"{file} has no key {NEEDED[group]}")
    if content.get("name") != entry.name:  # the name is part of seeds and of rows in tables
        raise RequestError(f"{file} calls it {content.get('name')!r}; the key name must be {entry.name}")
    return {str(key): value for key, value in content.items()}


def _folder(package: str) -> Path:
    """The folder of a package. Python would import a package to find one inside it, so this does it by hand."""
    top, *inner = package.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):  # not the name of a package, or a broken one
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise RequestError(f"there is no package {package}")
    places = [Path(place, *inner) for place in spec.submodule_search_locations]
    return next((place for place in places if place.is_dir()), places[0])
