"""From one line of a webhook recording to an input: whom it concerns, its id, and the few fields the agent needs.

A payload is somebody else's document: any field may be missing or null, and reads as an empty value then.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from intentlog.agents import Input
from intentlog.agents.errors import InputRefused
from intentlog.eventlog import event

#: (event, action) pairs by which a person opens, reopens or comments on an issue or a pull request.
ASKS: Final = frozenset(
    {
        ("issues", "opened"),
        ("issues", "reopened"),
        ("pull_request", "opened"),
        ("pull_request", "reopened"),
        ("issue_comment", "created"),
        ("pull_request_review_comment", "created"),
    }
)


@event("github.delivery", version=1)
class Delivery:
    """What GitHub told us, as far as triage reads it."""

    event: str
    action: str
    repository: str
    number: int | None
    #: Of the issue or pull request: ``open`` or ``closed``; empty when the delivery is about neither.
    state: str
    title: str
    body: str
    comment: str
    author: str
    sender: str
    from_bot: bool
    #: Labels the issue or pull request bears already.
    labels: tuple[str, ...]

    @property
    def asks_for_triage(self) -> bool:
        """Whether a person (not a bot, which might be ourselves) says something that labels could follow from."""
        return (self.event, self.action) in ASKS and self.number is not None and not self.from_bot


def intake(line: dict[str, Any]) -> Input:
    """The input of one recorded delivery ``{source, event, index, repository, number, payload}``.

    Its key is the issue or pull request where there is one, else the repository, else the kind of event. Raises
    ``InputRefused`` for a line that is no delivery.
    """
    kind, index, payload = line.get("event"), line.get("index"), line.get("payload")
    if not isinstance(kind, str) or not kind or not isinstance(index, int) or not isinstance(payload, dict):
        raise InputRefused(f"This line is no webhook delivery: it needs an 'event' (text), an 'index' (number) and a 'payload' (object), and has {line!r:.200}")
    repository, number = _text(line.get("repository")), line.get("number")
    key = repository or kind
    if repository and isinstance(number, int):
        key = f"{repository}#{number}"
    return Input(agent="triage", key=unicodedata.normalize("NFC", key), payload=_delivery(kind, repository, number, payload), id=f"delivery-{kind}-{index}")


def _delivery(kind: str, repository: str, number: object, payload: dict[str, Any]) -> Delivery:
    subject = _object(payload.get("issue")) or _object(payload.get("pull_request"))
    sender = _object(payload.get("sender"))
    labels = subject.get("labels")
    return Delivery(
        event=kind,
        action=_text(payload.get("action")),
        repository=repository,
        number=number if isinstance(number, int) else None,
        state=_text(subject.get("state")),
        title=_text(subject.get("title")),
        body=_text(subject.get("body")),
        comment=_text(_object(payload.get("comment")).get("body")),
        author=_text(_object(subject.get("user")).get("login")),
        sender=_text(sender.get("login")),
        from_bot=sender.get("type") == "Bot",
        labels=tuple(sorted({_text(_object(label).get("name")) for label in labels if _object(label)})) if isinstance(labels, list) else (),
    )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
