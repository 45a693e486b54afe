"""Start, stop and look at a service: the same for all of them."""

import shutil
import time
from collections import deque

from provenance_store.errors import ServiceError
from provenance_store.services.locks import locked
from provenance_store.services.ports import require_free
from provenance_store.services.process import (
    end,
    group_of,
    is_alive,
    read_pid_file,
    spawn,
    started_at,
    write_pid_file,
)
from provenance_store.services.service import Identity, Say, Service, State, Status

# Another process's whole start, or its download of jars before it, is worth waiting for.
_LOCK_TIMEOUT_SECONDS = 900.0
_LOG_LINES = 15


def status(service: Service) -> Status:
    """What the service is doing now; asks it, changes nothing."""
    identity = read_pid_file(service.pid_file)
    if identity is None or not is_alive(identity):
        state = State.STALE if service.pid_file.exists() else State.STOPPED
        return _status(service, state, None)
    return _status(service, State.RUNNING if service.answers() else State.NOT_ANSWERING, identity)


def up(service: Service, say: Say) -> Status:
    """Start the service and wait until it answers; harmless when it runs already."""
    if (before := status(service)).state is State.RUNNING:
        return before
    with locked(service.lock_file, timeout_seconds=_LOCK_TIMEOUT_SECONDS, say=say):
        before = status(service)
        if before.state is State.RUNNING:
            return before
        running = read_pid_file(service.pid_file)
        if before.state is State.NOT_ANSWERING and running is not None:
            say(f"{service.name} runs as pid {running.pid}, waiting until it answers")
            try:
                _wait(service, running)
                return _status(service, State.RUNNING, running)
            except _EndedError:  # it was on its way out, not in
                say(f"{service.name} has ended, starting it again")
        return _status(service, State.RUNNING, _start(service, say))


def down(service: Service, say: Say, *, purge_data: bool = False) -> Status:
    """Stop the service, and with `purge_data` forget all that it kept; harmless when it is stopped already."""
    if service.folder.exists():
        with locked(service.lock_file, timeout_seconds=_LOCK_TIMEOUT_SECONDS, say=say):
            _stop(service, read_pid_file(service.pid_file), say)
            if purge_data:
                say(f"{service.name}: removing {service.folder}")
                _purge(service)
    return _status(service, State.STOPPED, None)


def _status(service: Service, state: State, identity: Identity | None) -> Status:
    return Status(
        name=service.name,
        state=state,
        pid=identity.pid if identity else None,
        address=service.address,
        data=str(service.data),
        since=started_at(identity) if identity else None,
    )


class _EndedError(ServiceError):
    """A service that was waited for is no more."""


def _start(service: Service, say: Say) -> Identity:
    _stop(service, None, say)  # after a crash: a stale pid file, and what the process may have left behind
    require_free(service)
    for folder in (service.data, service.logs):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    service.prepare(say)
    if service.log_file.exists():  # one run, one log, and the one before it: they cannot fill the disk
        service.log_file.replace(service.log_file.with_suffix(".previous.log"))
    say(f"starting {service.name} on {service.address}")
    identity = spawn(service.launch(), service.log_file)
    try:
        write_pid_file(service.pid_file, identity)
        _wait(service, identity)
    except BaseException:  # an interrupted start must not leave half a service behind either
        _stop(service, identity, say)
        raise
    return identity


def _wait(service: Service, identity: Identity) -> None:
    deadline = time.monotonic() + service.settings.services.start_timeout_seconds
    while not service.answers():
        if not is_alive(identity):
            raise _EndedError(f"{service.name} ended while it was starting.{_log_tail(service)}")
        if time.monotonic() > deadline:
            raise ServiceError(
                f"{service.name} (pid {identity.pid}) did not answer on {service.address} within "
                f"{service.settings.services.start_timeout_seconds:.0f} s. Run `headwater down {service.name}` and try "
                f"again, with HEADWATER_SERVICES__START_TIMEOUT_SECONDS where it needs longer.{_log_tail(service)}"
            )
        time.sleep(0.1)
    if not is_alive(identity):  # then it was someone else who answered
        raise _EndedError(f"{service.name} ended while it was starting.{_log_tail(service)}")


def _log_tail(service: Service) -> str:
    if not service.log_file.exists():
        return ""
    with service.log_file.open(errors="replace") as log:
        lines = "".join(f"  {line.rstrip()}\n" for line in deque(log, _LOG_LINES))
    return f" The last lines of {service.log_file}:\n{lines}"


def _stop(service: Service, identity: Identity | None, say: Say) -> None:
    if identity is not None and (group := group_of(identity)):
        say(f"stopping {service.name} (pid {identity.pid})")
        end(group, timeout_seconds=service.stop_timeout_seconds)
    end(service.left_behind(), timeout_seconds=service.stop_timeout_seconds)
    service.pid_file.unlink(missing_ok=True)


def _purge(service: Service) -> None:
    home = service.settings.home.resolve()
    for path in (*service.folder.iterdir(), *service.secrets):
        if not path.parent.resolve().is_relative_to(home):
            raise ServiceError(f"{path} lies outside {home} and is not removed. Remove it by hand if it may go.")
        if path == service.lock_file:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
