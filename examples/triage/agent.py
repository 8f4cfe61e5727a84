"""The agent: what it asks, what it decides, and what it remembers of each issue, repository or kind of event."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import attrs

from intentlog.agents import ActivationContext, Aggregate, Complete, Suspend, agent, applies
from intentlog.eventlog import event

from .deliveries import Delivery
from .tools import add_label, known_labels, post_comment

SYSTEM = "You sort issues and pull requests. Choose the labels that fit from those offered, and write one sentence to the author."


@attrs.frozen
class Labels:
    """The model's answer."""

    labels: list[str]
    comment: str


@event("triage.delivery_seen", version=1)
class DeliverySeen:
    """A delivery was taken in."""

    event: str
    action: str
    state: str


@event("triage.triaged", version=1)
class Triaged:
    """Labels and a comment are on the issue."""

    labels: tuple[str, ...]
    comment_id: str


class Thread(Aggregate):
    """What a key's deliveries add up to."""

    deliveries: int = 0
    by_event: dict[str, int] = attrs.field(factory=dict)
    last: str = ""
    #: Last known state of the issue or pull request.
    state: str = ""
    labels: frozenset[str] = frozenset()
    comment_ids: tuple[str, ...] = ()

    @applies(DeliverySeen)
    def _(self, seen: DeliverySeen) -> Thread:
        return self.evolve(
            deliveries=self.deliveries + 1,
            by_event={**self.by_event, seen.event: self.by_event.get(seen.event, 0) + 1},
            last=f"{seen.event} {seen.action}".strip(),
            state=seen.state or self.state,
        )

    @applies(Triaged)
    def _(self, triaged: Triaged) -> Thread:
        return self.evolve(labels=self.labels | set(triaged.labels), comment_ids=(*self.comment_ids, triaged.comment_id))


@agent("triage", state=Thread)
async def triage(ctx: ActivationContext[Thread], delivery: Delivery) -> Complete | Suspend:
    """Count every delivery; where a person says something, ask the model and act on its answer."""
    if ctx.is_resume:
        return finish(ctx)
    ctx.emit(DeliverySeen(delivery.event, delivery.action, delivery.state))
    if not delivery.asks_for_triage:
        return Complete("seen")
    assert delivery.number is not None
    offered = await ctx.run_tool(known_labels, repository=delivery.repository)
    answer: Labels = await ctx.call_model(messages(delivery, offered, ctx.state), reply=Labels)
    for label in answer.labels:
        if label in offered and label not in delivery.labels:  # the model may make labels up
            ctx.act(add_label, repository=delivery.repository, number=delivery.number, label=label)
    ctx.act(post_comment, repository=delivery.repository, number=delivery.number, text=answer.comment)
    return Suspend(timeout=timedelta(minutes=10))


def finish(ctx: ActivationContext[Thread]) -> Complete:
    """Every effect has its outcome; the value of one that failed raises, and parks the delivery for a person to see."""
    values = [(result.tool, result.value) for result in ctx.resume_results]
    labels = tuple(value for tool, value in values if tool == add_label.name)
    (comment_id,) = [value for tool, value in values if tool == post_comment.name]
    ctx.emit(Triaged(labels, comment_id))
    return Complete(f"triaged: {', '.join(labels) or 'no new label'}")


def messages(delivery: Delivery, offered: list[str], thread: Thread) -> list[dict[str, Any]]:
    """The prompt. Everything in it comes from the log, so that a replay asks the very same thing."""
    lines = [
        f"Labels offered: {', '.join(offered)}",
        f"Labels it bears: {', '.join(sorted(thread.labels.union(delivery.labels))) or 'none'}",
        f"{delivery.event} {delivery.action} in {delivery.repository}, number {delivery.number}, by {delivery.sender or 'somebody'}",
        f"Title: {delivery.title}",
        f"Body: {delivery.body or 'none'}",
        *([f"Comment: {delivery.comment}"] if delivery.comment else []),
    ]
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "\n".join(lines)}]
