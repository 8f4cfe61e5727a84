"""The agents that are measured, and a model that answers at once. Prompt of about 1 KB, answer of about 200 bytes."""

from __future__ import annotations

from typing import Final

from intentlog.agents import ActivationContext, App, Complete, Input, ModelRequest, ModelResponse, Suspend, Usage, agent, tool
from intentlog.agents.sending import deliver, typed_input
from intentlog.eventlog import EventLog, event

_HOUR_MS: Final = 3_600_000
_POLICY: Final = (
    "You decide refunds for a shop. Read the order and the customer's words, then answer with one line: refund or refuse, the amount, the reason. "
    "Refund in full when the parcel never came, came broken, or was not what had been ordered, and less than sixty days have passed since it was sent. "
    "Refund half when the article was used for longer than two weeks but failed before its guarantee ended, and say so in the reason. "
    "Refuse when the article was made to measure, when the seal of software or of hygiene articles is broken, or when the same order was refunded before. "
    "Never promise a date. Never name another customer. When the words are abusive, answer the matter and nothing else. "
    "When the amount is above two hundred, name the person in charge and do not decide. When anything is missing, ask for exactly that and decide nothing."
)
ANSWER: Final = (
    "refund: full amount, because the carrier's record shows no delivery within the promised time and the customer reported it "
    "within sixty days; the order had not been refunded before, no seal matters here."
)


@event("bench.asked", version=1)
class Asked:
    order: str
    cents: int
    words: str


@tool(side_effect=True)
async def pay(order: str, cents: int) -> str:
    return "paid"


@agent("waiting")
async def waiting(ctx: ActivationContext[None], asked: Asked) -> Suspend:
    await ctx.call_model(prompt(asked.order, asked.cents, asked.words))
    ctx.act(pay, order=asked.order, cents=asked.cents)
    return Suspend(timeout_ms=_HOUR_MS)


@agent("finishing")
async def finishing(ctx: ActivationContext[None], asked: Asked) -> Complete:
    await ctx.call_model(prompt(asked.order, asked.cents, asked.words))
    ctx.act(pay, order=asked.order, cents=asked.cents)
    return Complete("on its way")


@agent("brief")
async def brief(ctx: ActivationContext[None], asked: Asked) -> Complete:
    """The same with a short prompt, for logs of a million events."""
    await ctx.call_model("Refund this order, yes or no?")
    ctx.act(pay, order=asked.order, cents=asked.cents)
    return Complete("on its way")


class AnswersAtOnce:
    """A provider in the same process."""

    provider = "in-process"
    model = "at-once"

    async def complete(self, request: ModelRequest, *, idempotency_key: str) -> ModelResponse:
        return ModelResponse(ANSWER, self.model, usage=Usage(260, 48), finish="stop")


def prompt(order: str, cents: int, words: str) -> str:
    """What the model is asked about one order."""
    return f"{_POLICY}\n\nOrder {order}, {cents / 100:.2f}. The customer writes: {words}"


def asked(number: int) -> Asked:
    """The input with this number."""
    return Asked(f"o-{number:07}", 1_000 + number % 9_000, f"My order o-{number:07} has not come. Where is it?")


def make_app() -> App:
    """The agents and the model."""
    return App([waiting, finishing, brief], models=AnswersAtOnce())


def record_inputs(app: App, log: EventLog, inputs: list[Input]) -> None:
    """Make them durable, many a commit."""
    for begin in range(0, len(inputs), 500):
        part = inputs[begin : begin + 500]
        deliver(log, [typed_input(app, each) for each in part], [each.id for each in part])
