"""Ids of intents as a person types them: whole, or how they begin."""

from __future__ import annotations

from typing import Final

from ..eventlog.log import EventLog
from .app import runtime_codec
from .errors import RequestRefused
from .unreadable import facts_of, unheard

SHORTEST: Final = 6
"""Characters that name an intent when no other one begins with them."""
_WHOLE: Final = 36
"""Characters of an id that a runtime made."""
_NAMED: Final = 5
_STAGED: Final = ("intent.staged",)


def intent_named(log: EventLog, given: str, stream: str | None = None) -> str:
    """The id of the intent that ``given`` is, or that alone begins with it, in the log or in one stream.

    What names none comes back as it is, for whoever looks it up to say so. Raises ``RequestRefused`` when several begin with it,
    naming them. A whole id costs nothing; for the beginning of one every ``intent.staged`` is looked at.
    """
    if len(given) >= _WHOLE:
        return given
    codec, found = runtime_codec(), dict[str, str]()
    for event, fact in facts_of(codec, log.read_all(types=_STAGED) if stream is None else log.read(stream), _STAGED, unheard):
        intent_id = fact.intent_id
        if intent_id == given:
            return given
        if len(given) >= SHORTEST and intent_id.startswith(given):
            found[intent_id] = event.stream
    if len(found) > 1:
        named = ", ".join(f"{intent_id} of {place}" for intent_id, place in list(found.items())[:_NAMED])
        more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise RequestRefused(f"{len(found)} intents begin with {given!r}: {named}{more}. Nothing was written. Give more of the one you mean.")
    return next(iter(found), given)
