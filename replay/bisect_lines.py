"""What a search came to, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..agents.app import App
from ..eventlog.log import EventLog
from ..eventlog.printing import cut, one_line, styled
from .bisect import Found
from .minimizing import Minimal
from .over_code import CANNOT, FoundCommit, Trial
from .reports import counted, divergence_lines, replay_tree
from .story import as_text, story
from .verdicts import Verdict

_MOST: Final = 12
_SHA: Final = 10


def found_lines(found: Found, text: str, log: EventLog, app: App, *, width: int) -> Iterator[str]:
    """Where a condition begins or stops to hold, the event there, and how that is known."""
    name, said = one_line(found.stream), styled(cut(one_line(text), max(width - 60, 40)), bold=True)
    if found.version is None:
        state = "does not hold" if found.holds else "holds"
        where = "at any version" if found.scanned else f"at its end (version {found.upto}), as before its first event"
        yield f"{name}: {said} {state} {where}"
        return
    yield f"{name}: {said} {'holds' if found.holds else 'stops holding'} after version {found.version}"
    for line in story(log, found.stream, app, first=found.version, last=found.version):
        yield as_text(line, versions=len(str(found.version)), names=min(max(24, len(one_line(line.name))), max(24, width // 4)), width=width)
    if found.monotone:
        yield styled("  It changes nowhere else.", dim=True)
    elif found.scanned:
        places = ", ".join(map(str, found.changes[:_MOST]))
        more = f" … ({len(found.changes):,} or more)" if len(found.changes) > _MOST else ""
        yield styled(f"  It is not monotone: it changes after versions {places}{more}. Every version was looked at; this is the first.", dim=True)
    else:
        yield styled(f"  {counted(found.looks, 'state')} looked at; that it changes nowhere else was taken for granted.", dim=True)


def minimal_lines(minimal: Minimal, *, width: int) -> Iterator[str]:
    """The inputs that are left, and whether they alone lead there."""
    kept = len(minimal.kept)
    yield styled(f"{counted(kept, 'input')} of {minimal.of:,} {'shows' if kept == 1 else 'show'} it, after version {minimal.version}", bold=True)
    for each in minimal.kept[:100]:
        yield f"  version {each.version}  {one_line(each.input_id, width - 20)}"
    if kept > 100:
        yield f"  … and {kept - 100:,} more; --json lists them all"
    if not minimal.whole:
        yield styled(f"  Given up after {minimal.tries:,} tries: there may be fewer.", dim=True)
    elif kept > 1:
        yield styled("  None of them can be left out alone.", dim=True)
    replayed = minimal.replayed
    if replayed.verdict is Verdict.SAME:
        yield "  Run again with these inputs only, the code decides the same."
    elif replayed.divergence is not None:
        yield "  With these inputs only, the code would have decided otherwise:"
        yield from (f"  {line}" for line in list(divergence_lines(replayed.divergence, width=width - 2))[:-2])
    else:
        yield f"  These inputs alone cannot be run again: {one_line(replayed.reason)}"


def commit_lines(found: FoundCommit, *, width: int) -> Iterator[str]:
    """Every commit that was tried, and which one it is."""
    yield styled(f"{one_line(found.stream)}: {len(found.trials)} of {counted(found.of, 'commit')} tried", bold=True)
    for trial in found.trials:
        yield from _trial_lines(trial, found.first, width)
    if found.first is None:
        yield f"Both ends come to the same: {found.last.verdict}."
    elif found.between:
        yield f"It is {_short(found.first)}, or one of {counted(len(found.between), 'commit')} before it that cannot be run."
    else:
        yield f"{_short(found.first)} is the first that comes to: {found.first.verdict}."


def _trial_lines(trial: Trial, first: Trial | None, width: int) -> Iterator[str]:
    colour = "yellow" if trial.verdict == CANNOT else "red" if first is not None and trial.verdict == first.verdict else "green"
    line = f"{_short(trial)}  {trial.commit.date[:10]}  {styled(f'{trial.verdict:<13}', fg=colour)}  {one_line(trial.commit.subject)}"
    yield ("→ " if trial is first else "  ") + cut(line, max(width - 2, 40))
    if trial.detail and (trial is first or trial.verdict == CANNOT):
        yield styled(f"    {cut(one_line(trial.detail), max(width - 4, 40))}", dim=True)


def _short(trial: Trial) -> str:
    return trial.commit.sha[:_SHA]


def found_tree(found: Found, text: str, minimal: Minimal | None) -> dict[str, Any]:
    """As ``--json`` prints it."""
    return {
        "stream": found.stream,
        "expression": text,
        "upto": found.upto,
        "version": found.version,
        "type": found.type,
        "holds": found.holds,
        "monotone": found.monotone,
        "changes": list(found.changes),
        "looks": found.looks,
    } | ({} if minimal is None else {"minimal": _minimal_tree(minimal)})


def _minimal_tree(minimal: Minimal) -> dict[str, Any]:
    return {
        "inputs": [{"seq": each.seq, "version": each.version, "input_id": each.input_id} for each in minimal.kept],
        "of": minimal.of,
        "tries": minimal.tries,
        "whole": minimal.whole,
        "version": minimal.version,
        "replay": replay_tree(minimal.replayed),
    }


def commit_tree(found: FoundCommit) -> dict[str, Any]:
    """As ``--json`` prints it."""
    return {
        "stream": found.stream,
        "commits": found.of,
        "trials": [_trial_tree(each) for each in found.trials],
        "first": _trial_tree(found.first) if found.first is not None else None,
        "last": _trial_tree(found.last),
        "between": [each.sha for each in found.between],
    }


def _trial_tree(trial: Trial) -> dict[str, Any]:
    commit = trial.commit
    return {"commit": commit.sha, "date": commit.date, "subject": commit.subject, "verdict": trial.verdict, "detail": trial.detail}
