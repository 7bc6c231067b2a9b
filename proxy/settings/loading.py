"""Makes one `Settings` of the packaged file, the user's files, the environment and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from proxy.errors import ConfigError
from proxy.settings.model import Settings
from proxy.settings.sources import Layer, Path_, Source, did_you_mean, dotted, read_environment, read_file, read_flags


def packaged_folder() -> Path:
    """Gives the folder of the configuration that comes with Goalkeeper, in a wheel or in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_config"
    return installed if installed.is_dir() else package.parent / "config"


def load_settings(
    files: Sequence[Path] = (), environ: Mapping[str, str] | None = None, flags: Mapping[str, Any] | None = None
) -> Settings:
    """Reads all sources, each above the one before it: packaged file, `files`, environment, flags.

    Paths in the result are absolute: rule files and profile folders are looked for beside the user's files, then in the
    packaged folder. Raises ConfigError that names every mistake with its place, key and remedy.
    """
    environ = environ or {}
    if not files and environ.get("GOALKEEPER_CONFIG"):
        files = [Path(environ["GOALKEEPER_CONFIG"])]
    packaged = packaged_folder() / "goalkeeper.yaml"
    sources = [read_file(file.expanduser()) for file in (packaged, *files)]
    folders = [source.folder.absolute() for source in reversed(sources) if source.folder]
    layers = [*sources, read_environment(environ), read_flags(flags or {})]
    places = {path: place for layer in layers for path, place in layer.places.items()}
    try:
        settings = _layered(layers)
    except ValidationError as error:
        raise ConfigError("\n".join(_messages(error, places, sources))) from error
    return _with_absolute_paths(settings, folders)


def _layered(layers: Sequence[Source]) -> Settings:
    """Lets pydantic-settings lay the sources over each other, the last one on top."""

    class Layered(Settings):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *_: PydanticBaseSettingsSource, **__: PydanticBaseSettingsSource
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return tuple(Layer(settings_cls, layer) for layer in reversed(layers))

    return Layered()


def _with_absolute_paths(settings: Settings, folders: Sequence[Path]) -> Settings:
    pins = settings.pins.model_copy(update={"files": tuple(_find(file, folders) for file in settings.pins.files)})
    profiles = tuple(_find(folder, folders) for folder in settings.clients.folders)
    for folder in profiles:
        if not folder.is_dir():
            raise ConfigError(f"clients.folders: there is no folder {folder}")
    clients = settings.clients.model_copy(update={"folders": profiles})
    data = settings.data.expanduser().absolute()
    return settings.model_copy(update={"data": data, "pins": pins, "clients": clients})


def _find(path: Path, folders: Sequence[Path]) -> Path:
    path = path.expanduser()
    found = next((folder / path for folder in folders if (folder / path).exists()), None)
    return found or folders[0] / path


def _messages(error: ValidationError, places: Mapping[Path_, str], sources: Sequence[Source]) -> list[str]:
    lines: list[str] = []
    for item in error.errors(include_url=False):
        path = _known_part(item["loc"], places)
        place = next((places[path[:end]] for end in range(len(path), 0, -1) if path[:end] in places), "")
        if not place and sources:
            place = sources[-1].name
        lines.append(f"{place}: {_reason(item, path)}")
    return list(dict.fromkeys(lines))


def _known_part(loc: Path_, places: Mapping[Path_, str]) -> Path_:
    """Cuts what pydantic adds to a location behind the key itself (names of union members)."""
    end = max((end for end in range(len(loc) + 1) if loc[:end] in places), default=len(loc))
    return loc[:end]


def _reason(item: Mapping[str, Any], path: Path_) -> str:
    key = dotted(path)
    if item["type"] == "extra_forbidden":
        return f"{key}: unknown key{did_you_mean(str(path[-1]), _keys_at(path[:-1]))}"
    reason = str(item["msg"]).removeprefix("Value error, ").replace("Input should", "must")
    reason = reason[:1].lower() + reason[1:]
    if not path:
        return reason
    secret = path[-1] == "token" or isinstance(item["input"], (dict, list))
    return f"{key}: {reason}" if secret else f"{key}: {reason} (it is {item['input']!r})"


def _keys_at(path: Path_) -> list[str]:
    group: type[BaseModel] = Settings
    for step in path:
        field = group.model_fields.get(str(step))
        groups = _groups_in(field.annotation) if field else [group]
        if not groups:
            return []
        group = groups[0]
    return list(group.model_fields)


def _groups_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [group for member in get_args(annotation) for group in _groups_in(member)]
