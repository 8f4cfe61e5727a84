"""The code to replay with: a folder, or a revision of the repository around the current folder.

A revision is written out by ``git archive`` into a folder of its own; nothing of the checkout, its index or its
references is touched.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from .errors import CodeUnusable

_PATIENCE: Final = 300.0


@attrs.frozen
class Code:
    """Where modules are looked for first."""

    #: What it was asked for as, for people.
    label: str
    #: Folders, in order.
    paths: tuple[str, ...]
    #: The checkout that the revision is one of: modules that come from there are not of the revision. Empty for a folder.
    checkout: str = ""


@contextmanager
def code_at(given: str, folder: Path | None = None) -> Iterator[Code]:
    """The code that ``given`` names, as long as the block lasts; ``folder``: the current one unless given.

    A folder of that name comes before a revision. Raises ``CodeUnusable``.
    """
    here = folder or Path.cwd()
    place = here / given
    if place.is_dir():
        root = place.resolve()
        yield Code(given, _paths(root))
        return
    if place.exists():
        raise CodeUnusable(f"--code {given}: that is a file. Give the folder that the app's module is found from, or a git revision.")
    commit = _commit(here, given)
    top, prefix = git(here, "rev-parse", "--show-toplevel").strip(), git(here, "rev-parse", "--show-prefix").strip()
    with tempfile.TemporaryDirectory(prefix="eventlog-code-") as made, _gone_with_the_process(made):
        root = Path(made).resolve()
        _write_out(Path(top), commit, root)
        if prefix and not (root / prefix).is_dir():
            raise CodeUnusable(f"--code {given}: the revision {commit[:12]} has no folder {prefix}, which is the current one. Go to the folder of that time.")
        yield Code(f"{given} ({commit[:12]})" if not commit.startswith(given) else commit[:12], _paths(root / prefix, root), top)


@contextmanager
def _gone_with_the_process(folder: str) -> Iterator[None]:
    """A signal that ends the process leaves no copy of a repository behind; who has other plans with the signal is left alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {}

    def end(number: int, frame: Any) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(number, before[signal.Signals(number)])  # which may be this function for another folder
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        found = signal.getsignal(number)
        if found is signal.SIG_DFL or getattr(found, "__module__", "") == __name__:
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _paths(*roots: Path) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(each) for root in roots for each in (root, root / "src") if each.is_dir()))


def check_revision(here: Path, given: str) -> None:
    """Raise ``CodeUnusable`` naming ``given`` when git knows no commit by this name in ``here``."""
    try:
        git(here, "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}")
    except CodeUnusable as problem:
        why = _said(problem)
        raise CodeUnusable(f"{given!r:.200} is no revision of the git repository around {here}{why}. git tag and git log list revisions.") from problem


def _commit(here: Path, given: str) -> str:
    unknown = f"--code {given!r:.200} is neither a folder here nor a revision of the git repository around {here}"
    if not given or given.startswith("-"):
        raise CodeUnusable(f"{unknown}. Give a path, or a revision such as HEAD~1, main or v1.2.")
    try:
        return git(here, "rev-parse", "--verify", "--quiet", f"{given}^{{commit}}").strip()
    except CodeUnusable as problem:
        raise CodeUnusable(f"{unknown}{_said(problem)}. git tag and git log list revisions.") from problem


def _said(problem: CodeUnusable) -> str:
    text = str(problem).partition("\n")[2].strip()
    return f" ({text})" if text else ""


def _write_out(top: Path, commit: str, root: Path) -> None:
    archive = _git_bytes(top, "archive", "--format=tar", commit)
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(root, filter="data")
    except (tarfile.TarError, OSError) as problem:
        raise CodeUnusable(f"the revision {commit[:12]} cannot be written out to {root}: {problem}") from problem


def git(here: Path, *words: str) -> str:
    """What git answers in ``here``; it writes nothing. Raises ``CodeUnusable``."""
    return _git_bytes(here, *words).decode("utf-8", "surrogateescape")


def _git_bytes(here: Path, *words: str) -> bytes:
    settings = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(["git", "-C", str(here), *words], env=settings, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False)
    except FileNotFoundError as problem:
        raise CodeUnusable("a revision needs git, which is not installed here. Give --code a folder instead.") from problem
    except subprocess.TimeoutExpired as problem:
        raise CodeUnusable(f"git {words[0]} in {here} did not end within {_PATIENCE:.0f} s") from problem
    if done.returncode != 0:
        raise CodeUnusable(f"git {words[0]} in {here} failed with {done.returncode}:\n{done.stderr.decode(errors='replace').strip():.500}")
    return done.stdout
