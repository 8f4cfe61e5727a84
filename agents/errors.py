"""Everything that can go wrong while an agent decides, as one tree.

::

    AgentError
    ├── TerminalAgentError                    the same turn would fail again: the input is parked at once
    │   ├── DefinitionError                   an agent, aggregate or tool that may not be defined like this
    │   ├── UnknownTool                       a tool that the app does not know
    │   ├── ArgumentRefused                   arguments that do not fit the tool's schema; names the parameter (S-5.1)
    │   ├── WrongToolKind                     a side-effect tool called directly, or a read-only one staged (S-4.7)
    │   ├── InputRefused                      an input that its agent cannot take
    │   │   └── InputConflict                 its id was used on another key before, with another payload (S-2.2)
    │   ├── ForeignAwait                      agent code awaited something the runtime does not know (S-4.8)
    │   ├── Drift                             a recorded step and the same step now differ; names the first field
    │   │   ├── ModelDrift                    … a model request (S-4.2)
    │   │   ├── ToolDrift                     … a read-only tool call (S-4.7)
    │   │   ├── IntentDrift                   … an intent's content under the same position (S-5.2)
    │   │   └── StepDrift                     … the kind of the step, or a recorded step that was not reached
    │   ├── RequestRefused                    what was asked of a key from outside cannot be done any more, or not yet
    │   │   ├── AnotherQuestion               … an answer to something else than what was asked (S-7.5)
    │   │   └── NotAuthentic                  … a signed answer or delivery for which nobody vouches; it drives nothing
    │   ├── OutcomeDistrusted                 an outcome for which nobody vouches: no turn is run that would see it
    │   ├── NotAllowed                        the aggregate's state machine has no way for it
    │   │   ├── EventNotAllowed               … an event, refused when staged
    │   │   └── CommandNotAllowed             … a command
    │   ├── StaleAggregate                    a loaded aggregate was changed after the turn it was loaded in
    │   ├── AggregateNotFound                 a library aggregate that has no events
    │   ├── AggregateExists                   a library aggregate was added under an id that is taken
    │   ├── IntentConflict                    same business key, other content (S-5.3)
    │   ├── BudgetExceeded                    a model call that the agent's budget leaves nothing for
    │   ├── ModelRefused                      the provider refused the request itself
    │   ├── JournalMiss                       replay reached a step that was never recorded (S-4.2)
    │   ├── ImpossibleHistory                 events that no run of the state machine could have written
    │   │   └── FoldFailed                    an applier raised when it was given a recorded event
    │   └── EffectFailed                      the outcome of an effect, when the agent did not handle it
    │       ├── EffectErrored, EffectRejected, EffectExpired, EffectCancelled, EffectUnknown, EffectTimedOut
    ├── ActivationCancelled                   the activation, or the one waited for, was cancelled
    ├── ActivationParked                      the input waited for was given up for now; names the error (a dead letter)
    ├── HistoryWarning                        an activation's history has grown long; nothing has failed
    └── RetryableAgentError                   the turn may succeed later
        ├── AggregateContended                others changed what the turn had loaded, again and again
        ├── TurnTimedOut                      the turn ran longer than the agent's turn timeout (S-3.3)
        ├── AgentExited                       agent code raised what is no ``Exception``: SystemExit, a cancellation, …
        ├── ResultTimedOut                    no result within the time somebody wanted to wait; the activation goes on
        └── ModelFailed                       the provider did not answer within the client's own retries (S-4.6)

``Superseded`` and ``TurnOver`` stand outside the tree on purpose: they end a turn and are never an ``Exception``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .budgets import Spent
    from .facts import BudgetReached, Failure


class AgentError(Exception):
    """Base of every error raised by ``intentlog.agents``."""


class TerminalAgentError(AgentError):
    """Running the same turn again would fail again."""


class RetryableAgentError(AgentError):
    """Running the same turn later may succeed."""


class DefinitionError(TerminalAgentError):
    """An agent, aggregate or tool that may not be defined like this."""


class UnknownTool(TerminalAgentError):
    """A tool name that the app does not know."""


class ArgumentRefused(TerminalAgentError):
    """Arguments that do not fit the tool's schema."""


class WrongToolKind(TerminalAgentError):
    """A side-effect tool called directly, or a read-only tool staged."""


class InputRefused(TerminalAgentError):
    """An input that its agent cannot take."""


class InputConflict(InputRefused):
    """``ctx.send``: the id was used on the other key before, with another payload."""


class ForeignAwait(TerminalAgentError):
    """Agent code awaited something the runtime does not know."""


class Drift(TerminalAgentError):
    """A recorded step and the same step as decided now differ."""

    def __init__(self, place: str, recorded: str, decided: str, field: str = "") -> None:
        marker = f"\n  first difference: {field}" if field else ""
        super().__init__(
            f"{place}\n  recorded  {recorded}\n  decided   {decided}{marker}\n"
            "  The agent's code or an unrecorded input changed under a running activation.\n"
            "  See what changed: eventlog replay STREAM --app MODULE:APP"
        )
        self.place, self.recorded, self.decided, self.field = place, recorded, decided, field


class ModelDrift(Drift):
    """A model request differs from the recorded one at the same step."""


class ToolDrift(Drift):
    """A read-only tool call differs from the recorded one at the same place."""


class IntentDrift(Drift):
    """An intent's content differs from the recorded one at the same position."""


class StepDrift(Drift):
    """A step is of another kind than the recorded one, or a recorded step was not reached."""


class NotAllowed(TerminalAgentError):
    """What the state machine of an aggregate has no way for."""


class EventNotAllowed(NotAllowed):
    """An event that the present state does not allow; names state, event and what is allowed."""


class CommandNotAllowed(NotAllowed):
    """A command that the present state does not allow."""


class StaleAggregate(TerminalAgentError):
    """A loaded aggregate is good for the turn it was loaded in; after a wait it must be loaded again."""


class AggregateNotFound(TerminalAgentError):
    """An aggregate of the eventsourcing library that has no events yet: nothing can be loaded."""


class AggregateExists(TerminalAgentError):
    """A new aggregate of the eventsourcing library was added under an id that is taken."""


class IntentConflict(TerminalAgentError):
    """The business key is taken by an intent with other content."""


class BudgetExceeded(TerminalAgentError):
    """Nothing is left of the budget for another model call. Catch it to ask for more (``ctx.raise_budget``) or to end without."""

    def __init__(self, message: str, spent: Spent, limits: tuple[int | None, int | None], per: str) -> None:
        super().__init__(message)
        self.spent, self.limits, self.per = spent, limits, per

    @classmethod
    def of(cls, stream: str, seq: int, reached: BudgetReached) -> BudgetExceeded:
        """From the fact, so that it reads the same live and replayed."""
        from .budgets import Spent, amount

        spent = Spent(reached.tokens, reached.picos)
        limits = reached.limit_tokens, reached.limit_picos
        allowed = [f"{limits[0]} tokens"] * (limits[0] is not None) + ([f"{amount(limits[1])}"] if limits[1] is not None else [])
        return cls(
            f"{stream}, activation {seq}, step {reached.step} (model call): the {reached.per} has spent {spent} of {' and '.join(allowed)}.\n"
            "  Nothing paid for is lost. Ask for more (ctx.raise_budget), end without it, or give the agent a larger budget and redrive the input.",
            spent,
            limits,
            reached.per,
        )


class ModelRefused(TerminalAgentError):
    """The provider refused the request itself, or answered something that is no answer."""


class JournalMiss(TerminalAgentError):
    """A replay reached a step that was never recorded; a replay never calls out."""

    def __init__(self, message: str, step: int = -1) -> None:
        super().__init__(message)
        self.step = step


class ImpossibleHistory(TerminalAgentError):
    """Events that no run of the state machine could have written."""


class FoldFailed(ImpossibleHistory):
    """An applier raised when it was given a recorded event: as this code has it, that cannot have happened."""


class EffectFailed(TerminalAgentError):
    """An effect did not end OK and the agent used its value all the same (S-7.3: it fails closed)."""


class EffectErrored(EffectFailed):
    """ERROR: the tool ran, or may have run, and raised, timed out or returned something unencodable."""


class EffectRejected(EffectFailed):
    """REJECTED: the tool never ran."""


class EffectExpired(EffectFailed):
    """EXPIRED: past its deadline when first looked at; it never ran."""


class EffectCancelled(EffectFailed):
    """CANCELLED: withdrawn before it ran."""


class EffectUnknown(EffectFailed):
    """UNKNOWN: an attempt was begun and its end was never seen."""


class EffectTimedOut(EffectFailed):
    """The suspension's deadline passed before the outcome was recorded."""


class ActivationCancelled(AgentError):
    """The activation was cancelled (``Client.cancel``): thrown where it waits, so that it can clean up, and told to whoever waits for it."""


class RequestRefused(TerminalAgentError):
    """A cancellation, an approval or a denial for which there is nothing open any more; nothing was written."""


class AnotherQuestion(RequestRefused):
    """The answer is bound to something else than what was asked; nothing was written."""


class NotAuthentic(RequestRefused):
    """A signed answer or delivery is not by a key of the ring, not fresh, or about something else than what was asked."""


class OutcomeDistrusted(TerminalAgentError):
    """The outcome of an intent is not signed by a key of the ring: its stream stands still, other keys go on."""

    def __init__(self, message: str, stream: str, version: int) -> None:
        super().__init__(message)
        self.stream, self.version = stream, version


class ActivationParked(AgentError):
    """The input failed for good and is a dead letter now: ``failure`` says of what."""

    def __init__(self, stream: str, seq: int, input_id: str, failure: Failure) -> None:
        super().__init__(
            f"{stream}, input {seq} ({input_id}), is parked: {failure.type}: {failure.message}\n"
            f"  Once the cause is gone: eventlog dead-letters redrive {stream} --seq {seq}"
        )
        self.stream, self.seq, self.input_id, self.failure = stream, seq, input_id, failure


class ResultTimedOut(RetryableAgentError, TimeoutError):
    """No result yet. Nothing is lost: the same handle, or one made of the same input id, can ask again."""


class HistoryWarning(AgentError):
    """An activation has recorded so much that running it again takes long; it should go on afresh."""

    def __init__(self, stream: str, seq: int, events: int) -> None:
        super().__init__(f"{stream}, activation {seq}, has a history of {events} events. End it now and then with `return ctx.continue_with(input)`.")
        self.stream, self.seq, self.events = stream, seq, events


class TurnOver(BaseException):
    """Agent code that is being closed at the end of its turn tried to take another step; it must not catch this."""


class AggregateContended(RetryableAgentError):
    """Others changed what the turn had loaded, again and again, before it could be committed."""


class TurnTimedOut(RetryableAgentError):
    """The turn ran longer than the agent's turn timeout."""


class AgentExited(RetryableAgentError):
    """Agent code raised SystemExit, CancelledError or another exception that ends more than a turn."""


class ModelFailed(RetryableAgentError):
    """The provider did not answer within the client's own retries."""


class Superseded(BaseException):
    """This turn's key belongs to somebody else now; agent code must not catch it, so it is not an ``Exception``."""
