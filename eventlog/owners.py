"""Who holds a lease: a name for this very process, and whether a process of that name on this machine is gone.

After a crash on one machine nobody should have to wait for a lease to run out. The name holds host, PID namespace, PID
and the process's start time, so a reused PID is not mistaken for the owner. Only a store whose users are all on one
machine may act on ``is_dead``; a wrong answer would cost no safety (tokens fence the old owner) but could cost a
non-idempotent effect its certainty.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path


def this_process(suffix: str = "") -> str:
    """A name no other living process has."""
    pid = os.getpid()
    name = f"{socket.gethostname()}/{_namespace()}/{pid}/{_started(pid)}"
    return f"{name}/{suffix}" if suffix else name


def is_dead(owner: str) -> bool:
    """Whether ``owner`` ran on this machine and is no more. ``False`` whenever that is not certain."""
    parts = owner.split("/")
    if len(parts) < 4 or parts[0] != socket.gethostname() or parts[1] != _namespace() or not parts[2].isdigit():
        return False
    pid = int(parts[2])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    started = _started(pid)
    return started != parts[3] or _is_zombie(pid)


def _namespace() -> str:
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:  # no /proc: one namespace is all there is
        return "0"


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _started(pid: int) -> str:
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else "0"


def _is_zombie(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] in "ZX"
