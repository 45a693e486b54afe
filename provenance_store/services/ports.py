"""Whether a loopback port is free, who has it, and whether it answers."""

import errno
import socket
from contextlib import suppress
from pathlib import Path

from provenance_store.errors import PortTakenError
from provenance_store.services.process import PROC, pids
from provenance_store.services.service import Service
from provenance_store.settings import LOOPBACK

_LISTENING = "0A"


def require_free(service: Service) -> None:
    """Raise `PortTakenError` for the first port of the service that something else listens on."""
    for setting, port in service.ports.items():
        if not is_free(port):
            who = owner(port)
            raise PortTakenError(
                f"{service.name} cannot start: port {port} on {LOOPBACK} is taken"
                f"{f' by {who}' if who else ''}. Stop that, or choose another port with "
                f"HEADWATER_SERVICES__{setting.upper()} (or [services] {setting} in headwater.toml)."
            )


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        # As servers do: the remains of closed connections must not look like a listener.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError as error:
            if error.errno in {errno.EADDRINUSE, errno.EACCES}:
                return False
            raise
    return True


def accepts(port: int, timeout_seconds: float = 1.0) -> bool:
    """Whether someone takes connections on the port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout_seconds).close()
    except OSError:
        return False
    return True


def owner(port: int) -> str | None:
    """Who listens on the port, as `process 123 (java …)`; `None` where the kernel does not tell us."""
    inodes = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listeners(PROC / "net" / table, port)}
    for pid in pids():
        with suppress(OSError):  # it ended meanwhile, or it is another user's
            if any(str(fd.readlink()) in inodes for fd in (PROC / str(pid) / "fd").iterdir()):
                command = (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                return f"process {pid} ({command.strip()[:60]})"
    return None


def _listeners(table: Path, port: int) -> list[str]:
    if not table.exists():
        return []
    rows = [line.split() for line in table.read_text().splitlines()[1:]]
    return [row[9] for row in rows if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port]
