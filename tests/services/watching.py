"""A folder for a server, and a watcher that outlives the session: it ends the server and removes the folder, however the session ended.

A parent-death signal would follow the thread that started the server, and a fixture's `finally` does not run after SIGKILL.
The watcher reads a pipe whose other end only the session holds: the kernel closes that end when the session is gone.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

# Each line names the server that now runs, an empty one says that none does. $1: how to end it at once, $2: the folder.
# The wait has a bound because an orphan may stay a zombie where the first process of a container reaps none.
SCRIPT = """
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ] && kill -s "$1" "$pid" 2>/dev/null; then
    turns=0
    while [ "$turns" -lt 100 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; turns=$((turns + 1)); done
    kill -s KILL "$pid" 2>/dev/null
fi
rm -rf "$2"
"""
# Below the range from which the kernel takes ports for outgoing connections: a restart finds its port free.
PORTS = range(20_000, 32_768)


class Watched:
    """A new folder that the server's account owns; :attr:`account` holds the arguments of Popen that start a server as this account."""

    def __init__(self, name: str, *, ended_by: str) -> None:
        owner = _unprivileged()
        self.account: dict[str, Any] = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self.folder = Path(tempfile.mkdtemp(prefix=f"intentlog-{name}-", dir=_open_to_all() if owner else None))
        if owner is not None:
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        # A session of its own: ^C in a terminal reaches the tests, and the watcher only by way of the pipe.
        self._watcher = subprocess.Popen(
            [shutil.which("sh") or "/bin/sh", "-c", SCRIPT, "watcher", ended_by, str(self.folder)], stdin=subprocess.PIPE, cwd="/", start_new_session=True
        )

    def tell(self, pid: int | None) -> None:
        """The server runs as ``pid``, or does not run."""
        assert self._watcher.stdin is not None
        self._watcher.stdin.write(b"\n" if pid is None else b"%d\n" % pid)
        self._watcher.stdin.flush()

    def close(self) -> None:
        """The folder goes, and with it a server that still runs."""
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher.wait(timeout=30)


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens at this moment."""
    while True:
        port = secrets.choice(PORTS)
        with socket.socket() as tried:
            # As servers do: a port in TIME_WAIT is free, one that somebody listens on is not.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom a server runs as when the tests run as root; None: as the tests do."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL refuses to run as root, and there is neither an account postgres nor nobody: run the tests as another user, or add one")


def _open_to_all() -> str:
    """A folder for temporary files that every account can enter; pytest's own is closed to all but its owner."""
    tried = (tempfile.gettempdir(), "/tmp", "/var/tmp")
    for name in tried:
        path = Path(name).resolve()
        if path.is_dir() and all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents)):
            return str(path)
    raise RuntimeError(f"no account but root can enter any of {', '.join(tried)}: set TMPDIR to a folder that others may enter")
