"""Everything that can go wrong while an agent decides, as one tree.

::

    AgentError
    ├── TerminalAgentError                    the same turn would fail again: the input is parked at once
    │   ├── DefinitionError                   an agent, aggregate or tool that may not be defined like this
    │   ├── UnknownTool                       a tool that the app does not know
    │   ├── ArgumentRefused                   arguments that do not fit the tool's schema; names the parameter (S-5.1)
    │   ├── WrongToolKind                     a side-effect tool called directly, or a read-only one staged (S-4.7)
    │   ├── InputRefused                      an input that its agent cannot take
    │   ├── ForeignAwait                      agent code awaited something the runtime does not know (S-4.8)
    │   ├── Drift                             a recorded step and the same step now differ; names the first field
    │   │   ├── ModelDrift                    … a model request (S-4.2)
    │   │   ├── ToolDrift                     … a read-only tool call (S-4.7)
    │   │   ├── IntentDrift                   … an intent's content under the same position (S-5.2)
    │   │   └── StepDrift                     … the kind of the step, or a recorded step that was not reached
    │   ├── IntentConflict                    same business key, other content (S-5.3)
    │   ├── JournalMiss                       replay reached a step that was never recorded (S-4.2)
    │   ├── ImpossibleHistory                 events that no run of the state machine could have written
    │   │   └── FoldFailed                    an applier raised when it was given a recorded event
    │   └── EffectFailed                      the outcome of an effect, when the agent did not handle it
    │       ├── EffectErrored, EffectRejected, EffectExpired, EffectCancelled, EffectUnknown, EffectTimedOut
    ├── ActivationCancelled                   the activation, or the one waited for, was cancelled
    └── RetryableAgentError                   the turn may succeed later
        ├── TurnTimedOut                      the turn ran longer than the agent's turn timeout (S-3.3)
        ├── AgentExited                       agent code raised what is no ``Exception``: SystemExit, a cancellation, …
        └── ModelFailed                       the provider did not answer within the client's own retries (S-4.6)

``Superseded`` and ``TurnOver`` stand outside the tree on purpose: they end a turn and are never an ``Exception``.
"""

from __future__ import annotations


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


class IntentConflict(TerminalAgentError):
    """The business key is taken by an intent with other content."""


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


class TurnOver(BaseException):
    """Agent code that is being closed at the end of its turn tried to take another step; it must not catch this."""


class TurnTimedOut(RetryableAgentError):
    """The turn ran longer than the agent's turn timeout."""


class AgentExited(RetryableAgentError):
    """Agent code raised SystemExit, CancelledError or another exception that ends more than a turn."""


class ModelFailed(RetryableAgentError):
    """The provider did not answer within the client's own retries."""


class Superseded(BaseException):
    """This turn's key belongs to somebody else now; agent code must not catch it, so it is not an ``Exception``."""
