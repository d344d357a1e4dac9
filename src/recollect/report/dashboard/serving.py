"""The server: where it listens, whom that lets in, and how it ends."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from recollect.errors import InputError, MissingExtraError
from recollect.history.memory import Memory
from recollect.report.dashboard.gate import Gate
from recollect.report.dashboard.site import make_site

LOOPBACK, PORT = "127.0.0.1", 8000
LAST_ANSWERS = 3  # seconds that requests have when the server ends


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens. family: of its address; loopback: only this machine reaches it."""

    host: str
    port: int
    family: socket.AddressFamily
    address: str
    loopback: bool

    @property
    def url(self) -> str:
        """The address for a browser on this machine."""
        host = self.address if self.loopback or not ipaddress.ip_address(self.address).is_unspecified else LOOPBACK
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"


def check_installed() -> None:
    """Refuse to go on where the server is not installed."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingExtraError("the dashboard needs starlette and uvicorn: pip install 'recollect[dashboard]'")


def find_place(host: str = LOOPBACK, port: int = PORT, *, token: str | None = None) -> Place:
    """Return where to listen; InputError for a place that others reach unless they need a token, and for no place."""
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise InputError(
            "token: expected at least one character, ASCII letters, digits and signs, without spaces around"
        )
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError) as error:
        raise InputError(f"host: expected a name or an address of this machine, got {host!r}: {error}") from error
    if not found:
        raise InputError("host: expected a name or an address of this machine, got nothing")
    addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
    loopback = all(ipaddress.ip_address(address).is_loopback for address in addresses)
    if not loopback and token is None:
        raise InputError(f"host: others can reach {host!r}, so it needs a token, too: --host {host} --token ...")
    return Place(host, port, found[0][0], addresses[0], loopback)


def serve(memory: Memory, place: Place, *, token: str | None, begun: Callable[[Place], None]) -> None:
    """Serve the pages of a memory until interrupted; ``begun`` hears where, once requests are taken."""
    from uvicorn import Config, Server

    with _listen(place) as listener:
        bound = Place(place.host, listener.getsockname()[1], place.family, place.address, place.loopback)
        gate = Gate(make_site(memory), loopback=bound.loopback, token=token, port=bound.port)
        config = Config(
            gate, log_config=None, log_level="warning", access_log=False, lifespan="off", ws="none", interface="asgi3",
            server_header=False, timeout_graceful_shutdown=LAST_ANSWERS,
        )  # fmt: skip
        begun(bound)
        Server(config).run(sockets=[listener])


def _listen(place: Place) -> socket.socket:
    listener = socket.socket(place.family, socket.SOCK_STREAM)
    try:
        if socket.has_dualstack_ipv6() and place.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((place.address, place.port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise InputError(_why_not(error, place)) from error
    return listener


def _why_not(error: OSError, place: Place) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {place.port} of {place.host} is in use: choose another one with --port"
    if error.errno == errno.EACCES:
        return f"port {place.port} of {place.host} may not be used by this user: choose one above 1023 with --port"
    return f"{place.host}, port {place.port}: nobody can listen there: {error.strerror or error}"
