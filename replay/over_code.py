"""The first commit with which a stream's history comes out otherwise: git's commits between two revisions, a few of them tried.

Each is written out into a folder of its own and run in a process of its own; the checkout is not touched. What a commit
comes to is its replay's verdict, or whether a condition holds of the state that its code folds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

import attrs
import msgspec

from .child import Order
from .errors import CannotBisect, CodeUnusable
from .revisions import check_revision, code_at, git
from .sharing import Child, Died
from .verdicts import Divergence, StreamReplay, Verdict

CANNOT: Final = "cannot"
HOLDS: Final = "holds"
NOT: Final = "does not hold"


@attrs.frozen
class Commit:
    """One commit of the range."""

    sha: str
    #: ISO 8601.
    date: str
    subject: str


@attrs.frozen
class Trial:
    """What one commit's code came to."""

    commit: Commit
    #: ``same``, ``diverged``, ``holds``, ``does not hold``, or ``cannot``.
    verdict: str
    detail: str = ""
    #: Modules that were not the commit's, but the checkout's.
    beside: tuple[str, ...] = ()


@attrs.frozen
class FoundCommit:
    """What a search over commits came to."""

    stream: str
    #: Commits in the range, its beginning included.
    of: int
    #: Every commit that was tried, oldest first.
    trials: tuple[Trial, ...]
    #: The first commit that comes out otherwise; ``None``: both ends come to the same.
    first: Trial | None
    #: The last one known to come out as the beginning does.
    last: Trial
    #: Commits between the two that could not be run: it may be one of them.
    between: tuple[Commit, ...]


def parse_range(text: str) -> tuple[str, str]:
    """``REV1..REV2``; without a second one it is HEAD. Raises ``CannotBisect``.

    >>> parse_range("v1.2..main"), parse_range("v1.2..")
    (('v1.2', 'main'), ('v1.2', 'HEAD'))
    """
    first, dots, second = text.partition("..")
    if not first or not dots or second.startswith((".", "-")) or first.startswith("-"):
        raise CannotBisect(f"{text!r:.200} is no range of revisions: give REV1..REV2, for example v1.2..HEAD")
    return first, second or "HEAD"


def commits_of(first: str, second: str, folder: Path | None = None) -> list[Commit]:
    """``first``, and the commits that lead from it to ``second``, oldest first; of merges the main line.

    Raises ``CannotBisect``, or ``CodeUnusable`` naming the one that git does not know.
    """
    here = folder or Path.cwd()
    for revision in (first, second):
        check_revision(here, revision)
    form = "--format=%H%x1f%cI%x1f%s"
    begin = git(here, "log", "--no-show-signature", "-1", form, f"{first}^{{commit}}", "--").splitlines()
    behind = git(here, "log", "--no-show-signature", "--reverse", "--first-parent", form, f"{first}..{second}", "--").splitlines()
    found = [Commit(*line.split("\x1f", 2)) for line in (*begin, *behind)]
    if len(found) < 2:
        raise CannotBisect(f"there is no commit between {first} and {second}: nothing to search. Is {second} older than {first}?")
    return found


def bisect_code(commits: list[Commit], trial: Callable[[Commit], Trial], stream: str) -> FoundCommit:
    """The first of ``commits`` whose trial comes out otherwise than that of the first, by halving. Raises ``CannotBisect`` when an end cannot be run."""
    done: dict[int, Trial] = {}

    def verdict(place: int) -> str:
        if place not in done:
            done[place] = trial(commits[place])
        return done[place].verdict

    low, high = 0, len(commits) - 1
    for end in (low, high):
        if verdict(end) == CANNOT:
            raise CannotBisect(f"{commits[end].sha[:12]} ({commits[end].subject}) cannot be run: {done[end].detail}")
    begin = verdict(low)
    found = verdict(high) != begin
    while found and (untried := [place for place in range(low + 1, high) if place not in done]):
        middle = min(untried, key=lambda place: abs(place - (low + high) / 2))
        if verdict(middle) == begin:
            low = middle
        elif verdict(middle) != CANNOT:
            high = middle
    trials = tuple(done[place] for place in sorted(done))
    between = tuple(commits[low + 1 : high]) if found else ()
    return FoundCommit(stream, len(commits), trials, done[high] if found else None, done[low] if found else done[len(commits) - 1], between)


def trial_of(source: str, app: str, stream: str, condition: str = "", folder: Path | None = None) -> Callable[[Commit], Trial]:
    """Tries a commit: replays ``stream`` with its code, or folds it and asks ``condition``."""

    def tried(commit: Commit) -> Trial:
        try:
            with code_at(commit.sha, folder) as code:
                order = Order("condition" if condition else "replay", source, app, code.paths, code.checkout, condition=condition)
                with closing(Child(order)) as child:
                    return Trial(commit, *_told(child.ask(stream)), tuple(child.beside))
        except CodeUnusable as problem:
            return Trial(commit, CANNOT, str(problem))

    return tried


def _told(found: object) -> tuple[str, str]:
    if isinstance(found, Died):
        return CANNOT, found.reason
    if isinstance(found, dict) and "holds" in found:
        return (CANNOT, str(found["problem"])) if found.get("problem") else (HOLDS if found["holds"] else NOT, "")
    replayed = msgspec.convert(found, StreamReplay)
    if replayed.verdict is Verdict.CANNOT:
        return CANNOT, replayed.reason
    return replayed.verdict.value, _where(replayed.divergence) if replayed.divergence is not None else ""


def _where(found: Divergence) -> str:
    field = f": {found.field}" if found.field else ""
    return f"at version {found.version} ({found.event}), {found.place}{field}"
