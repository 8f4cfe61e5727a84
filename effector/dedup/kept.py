"""A store whose records are read and written under one lock: the rules, and where the records lie is somebody else's affair."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager

from ...eventlog.clock import Micros
from . import rules
from .checking import MARGIN, SWEEP, CheckedStore
from .rules import Record
from .store import Busy, Claimed, Done, Free


class KeptStore(CheckedStore):
    """A ``DedupStore`` over ``_find`` and ``_put``."""

    def _claim(self, intent_id: str, owner: str, now: Micros, until: Micros, call: str) -> Claimed | Busy | Done:
        found = self._look(intent_id, now)  # without the lock: whoever waits for an intent keeps nobody from his own
        if not isinstance(found, Free):
            return found
        with self._locked(durable=False):
            record = self._find(intent_id)
            found = self._seen(intent_id, record, now)
            if not isinstance(found, Free):
                return found
            held = rules.claimed(record, found, owner, now, until)
            self._put(intent_id, held)
            return Claimed(held.token, held.attempts)

    def _attempt(self, intent_id: str, token: int, now: Micros, call: str) -> int:
        with self._locked(durable=True):
            record = self._find(intent_id)
            self._refuse_done(intent_id, record, token, now)
            begun = rules.attempted(record, intent_id, token, now)
            self._put(intent_id, begun)
            return begun.attempts

    def _complete(self, intent_id: str, token: int, outcome: Done, now: Micros, expires_at: Micros) -> None:
        with self._locked(durable=True):
            record = self._find(intent_id)
            if record is not None and record.done(now) and record.token == token and self._outcome(intent_id) == outcome:
                return
            self._refuse_done(intent_id, record, token, now)
            held = rules.holding(record, intent_id, token)
            self._put(intent_id, Record(held.owner, token, held.until, held.attempts, outcome.status, expires_at), outcome.result)
            self._sweep(now - MARGIN, SWEEP)

    def _release(self, intent_id: str, token: int) -> None:
        with self._locked(durable=False):
            record = self._find(intent_id)
            if record is not None and record.status is None and record.token == token:
                self._put(intent_id, rules.released(record))

    def _renew(self, intent_id: str, token: int, until: Micros) -> bool:
        with self._locked(durable=False):
            record = self._find(intent_id)
            if record is None or record.status is not None or record.token != token:
                return False
            self._put(intent_id, rules.renewed(record, until))
            return True

    def _refuse_done(self, intent_id: str, record: Record | None, token: int, now: Micros) -> None:
        if record is not None and record.done(now):
            raise rules.outcome_stands(intent_id, token, self._outcome(intent_id))

    def _seen(self, intent_id: str, record: Record | None, now: Micros) -> Done | Busy | Free:
        """Called under the lock."""
        found = rules.seen(record, now)
        return self._outcome(intent_id) if found is None else found

    @abstractmethod
    def _locked(self, *, durable: bool) -> AbstractContextManager[object]:
        """The lock; what is put within it is there as a whole, on the disk too when ``durable``, or not at all."""

    @abstractmethod
    def _find(self, intent_id: str) -> Record | None: ...

    @abstractmethod
    def _outcome(self, intent_id: str) -> Done:
        """The outcome of a record that has one."""

    @abstractmethod
    def _put(self, intent_id: str, record: Record, result: bytes | None = None) -> None:
        """Keep ``record``; with its status comes its ``result``, without it there is none."""

    @abstractmethod
    def _sweep(self, before: Micros, most: int) -> None:
        """Remove up to ``most`` outcomes that had expired at ``before``."""
