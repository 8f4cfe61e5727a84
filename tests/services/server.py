"""A server with a folder of its own, and a watcher that outlives the session: it ends the server and removes the folder, however the session ended.

A parent-death signal would follow the thread that started the server, and a fixture's `finally` does not run after SIGKILL.
The watcher reads a pipe whose other end only the session holds: the kernel closes that end when the session is gone.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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
PATIENCE_S = 60.0


class Server:
    """A new folder, owned by the account that the server will run as, and the server itself while it runs.

    ``ended_by`` names the signal that ends this kind of server at once; ``below`` the folder in which its own is made, for whoever measures
    and wants a disk. Without it that is where temporary files are, which ``make test`` keeps in memory where it can.
    """

    def __init__(self, name: str, *, ended_by: signal.Signals, below: str | None = None) -> None:
        owner = _unprivileged()
        self._account: dict[str, Any] = {} if owner is None else {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self._ended_by = ended_by
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix=f"intentlog-{name}-", dir=below or (_open_to_all() if owner else None)))
        if owner is not None:
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        # A session of its own: ^C in a terminal reaches the tests, and the watcher only by way of the pipe.
        self._watcher = subprocess.Popen(
            [shutil.which("sh") or "/bin/sh", "-c", SCRIPT, "watcher", ended_by.name.removeprefix("SIG"), str(self.folder)],
            stdin=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The server's process, of several the first, until it is stopped."""
        return self._process.pid if self._process is not None else None

    @property
    def log(self) -> str:
        """What the server has written since it was made."""
        path = self.folder / "server.log"
        return path.read_text("utf-8", errors="replace") if path.exists() else ""

    def close(self) -> None:
        """End the server if it runs, and remove its folder."""
        if self._process is not None:
            self._end(self._ended_by)
        assert self._watcher.stdin is not None
        self._watcher.stdin.close()
        self._watcher.wait(timeout=PATIENCE_S)

    def _launch(self, command: Sequence[str], answers: Callable[[], bool]) -> bool:
        """Whether ``command`` came to give answers; False when it ended by itself, or gave none for a minute."""
        assert self._process is None, "the server runs already"
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._account,
            )
        self._tell(self._process.pid)
        until = time.monotonic() + PATIENCE_S
        while self._process.poll() is None and time.monotonic() < until:
            if answers():
                return True
            time.sleep(0.01)
        self._end(self._ended_by)
        return False

    def _run(self, *command: str) -> None:
        """Run to its end, as the server's account, what is not the server itself."""
        done = subprocess.run(command, cwd=self.folder, env=_environment(), capture_output=True, text=True, timeout=PATIENCE_S, **self._account)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {done.stderr or done.stdout}")

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None, "the server does not run"
        self._process.send_signal(how)
        try:
            self._process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self._ended()
            raise
        self._ended()

    def _ended(self) -> None:
        self._process = None
        self._tell(None)

    def _tell(self, pid: int | None) -> None:
        assert self._watcher.stdin is not None
        self._watcher.stdin.write(b"\n" if pid is None else b"%d\n" % pid)
        self._watcher.stdin.flush()


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


def _environment() -> dict[str, str]:
    """The caller's, without what libpq and the servers would take from it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))} | {"LC_ALL": "C"}
