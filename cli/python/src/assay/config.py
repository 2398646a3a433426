"""Which coordinator to talk to: as the command line decides it (`assay help environment`).

What is given directly counts most, then the environment, ./assay.toml upward to the repository's
root, ~/.config/assay/config.toml, /etc/assay/config.toml, and last a coordinator on this machine.
"""

import dataclasses
import os
import pathlib
import tomllib

from assay.errors import ConfigError, Unavailable

KEYS = ("context", "server", "socket", "ca", "token", "token_file")
_OTHER_KEYS = ("output", "color")  # of the command line alone
_SYSTEM_FILE = pathlib.Path("/etc/assay/config.toml")
_SYSTEM_SOCKET = pathlib.Path("/run/assay/assayd.sock")


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """`target` as gRPC has it; a Unix socket needs no CA."""

    target: str
    ca_pem: bytes | None = None
    token: str | None = dataclasses.field(default=None, repr=False)


@dataclasses.dataclass
class _Level:
    """Settings of one place: the fewer places before it, the more they count."""

    origin: str
    values: dict
    contexts: dict = dataclasses.field(default_factory=dict)


def _read(path: pathlib.Path, is_shared: bool) -> _Level | None:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    contexts = table.pop("contexts", {})
    if not isinstance(contexts, dict) or not all(isinstance(c, dict) for c in contexts.values()):
        raise ConfigError(f"{path}: a context is a table: [contexts.NAME]")
    for values in (table, *contexts.values()):
        for key, value in values.items():
            if key not in KEYS + _OTHER_KEYS:
                raise ConfigError(f"{path}: unknown key '{key}'; known are {', '.join(KEYS + _OTHER_KEYS)}")
            if not isinstance(value, str):
                raise ConfigError(f"{path}: '{key}' must be a string")
            if is_shared and key == "token":
                raise ConfigError(f"{path}: 'token' is a secret and this file is shared; set ASSAY_TOKEN")
    return _Level(str(path), table, contexts)


def _project_file(folder: pathlib.Path) -> pathlib.Path | None:
    for place in (folder, *folder.parents):
        if (place / "assay.toml").is_file():
            return place / "assay.toml"
        if (place / ".git").exists():
            return None
    return None


def _levels(given: dict, environment: dict, folder: pathlib.Path) -> list[_Level]:
    home = pathlib.Path(environment.get("HOME", "/"))
    user = pathlib.Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "assay" / "config.toml"
    project = _project_file(folder)
    variables = {key: environment.get(f"ASSAY_{key.upper()}") for key in KEYS}
    levels = [
        _Level("what was given", {key: str(value) for key, value in given.items() if value is not None}),
        _Level("the environment", {key: value for key, value in variables.items() if value}),
        None if project is None else _read(project, is_shared=True),
        _read(user, is_shared=False),
        _read(_SYSTEM_FILE, is_shared=False),
    ]
    return [level for level in levels if level is not None]


def _with_context(levels: list[_Level]) -> list[_Level]:
    """With the settings of the context that is chosen, behind what stands beside the choice."""
    chosen = next((i for i, level in enumerate(levels) if "context" in level.values), None)
    if chosen is None:
        return levels
    name = levels[chosen].values["context"]
    known = {}
    for level in levels:
        for context, values in level.contexts.items():
            known.setdefault(context, values)
    if name not in known:
        raise ConfigError(
            f"{levels[chosen].origin}: there is no context '{name}'; known are: "
            + (", ".join(known) or "none ([contexts.NAME] in ~/.config/assay/config.toml defines one)")
        )
    merged = _Level(levels[chosen].origin, {**known[name], **levels[chosen].values})
    return [*levels[:chosen], merged, *levels[chosen + 1 :]]


def _find(levels: list[_Level], key: str):
    return next(((i, level.values[key]) for i, level in enumerate(levels) if key in level.values), (len(levels), None))


def _bytes_of(path: str, what: str, folder: pathlib.Path) -> bytes:
    try:
        return (folder / pathlib.Path(path).expanduser()).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the {what}: {error}") from error


def resolve(given: dict, environment=None, folder=None) -> Endpoint:
    """The endpoint by the strongest setting that names a server or a socket.

    ConfigError: two that are equally strong, or a file that cannot be read. Unavailable: none is
    named, and no coordinator listens on this machine. Talks to nobody.
    """
    environment = os.environ if environment is None else environment
    folder = pathlib.Path.cwd() if folder is None else pathlib.Path(folder)
    levels = _with_context(_levels(given, environment, folder))
    (server_at, server), (socket_at, socket) = _find(levels, "server"), _find(levels, "socket")
    if server is None and socket is None:
        runtime = environment.get("XDG_RUNTIME_DIR")
        own = pathlib.Path(runtime, "assay") if runtime else pathlib.Path(f"/tmp/assay-{os.getuid()}")
        for path in (own / "assayd.sock", _SYSTEM_SOCKET):
            if path.exists():
                return Endpoint(f"unix:{path}")
        raise Unavailable(
            "no coordinator is known and none runs on this host; start a private one with 'assay dev', or name one: "
            "Client.from_context(server='HOST:PORT', ca='FILE', token_file='FILE')"
        )
    if server_at == socket_at:
        raise ConfigError(f"{levels[server_at].origin}: server and socket both say where the coordinator is: give one")
    (token_at, token), (file_at, token_file) = _find(levels, "token"), _find(levels, "token_file")
    if token_file is not None and (token is None or file_at < token_at):
        token = _bytes_of(token_file, "token file", folder).decode("utf-8", "replace").strip()
    _, ca = _find(levels, "ca")
    ca_pem = None if ca is None else _bytes_of(ca, "CA certificate", folder)
    if socket_at < server_at:
        return Endpoint(f"unix:{folder / pathlib.Path(socket).expanduser()}", ca_pem, token)
    if ca_pem is None:
        raise ConfigError(f"no CA certificate for {server}: give the coordinator's ca.crt, or use its Unix socket")
    return Endpoint(server, ca_pem, token)
