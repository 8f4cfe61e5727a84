"""Publishes the questions of a log to a sink: each at least once, those of one key in the order in which they were asked.

The crash argument. The cursor is a checkpoint on the log, and it moves only over questions that the other side has: *publish,
then checkpoint*. Killed before a delivery, the question is behind the checkpoint and is delivered by whoever comes next; killed
between delivery and checkpoint it is delivered again, under the same id, so that the receiver can tell; killed after the
checkpoint, nothing is left to do. Of several replicas the one with the lease publishes. One that lost it without noticing
repeats deliveries and can do no other harm, for a checkpoint never moves back.

A question that is answered or past its deadline when its turn comes is not published: nobody could answer it any more. Neither is
one of a copy (``copies``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from ...agents import facts
from ...agents.approvals import document
from ...agents.intents import fact_id
from ...agents.leasing import beat, between_beats, in_thread
from ...eventlog.clock import SECOND
from ...eventlog.codec import Codec
from ...eventlog.errors import LogError, Undecodable
from ...eventlog.events import StoredEvent
from ...eventlog.log import Claim, EventLog
from ...eventlog.versions import ANY
from ..keeping import pause
from ..tailing import take_in
from ..watching import Watching
from .copies import Whose, whose
from .errors import SinkFailed, SinkRefused, SinkUnavailable
from .pending import TYPES, Again, Question, Questions
from .sink import ApprovalsSink, Publication

PART: Final = "approvals"
"""The part's name in health, the queue of its lease, and how its checkpoints begin."""
_HELPING: Final = 500
_WANTED: Final = ("approval.requested", "approval.redriven")
"""What wants to be published."""
_MOST_AT_ONCE: Final = 16
"""Keys whose questions are under way at once."""
_REFUSALS: Final = 5
"""Refusals after which a question is given up."""
_LONGEST: Final = 30.0
"""Seconds between two deliveries of the same question, at most."""
_LEASE: Final = 10 * SECOND
_AGAIN: Final = 0.5
"""Seconds until it is looked again whether a stream is a copy."""
_OVERDUE: Final = 30.0
"""Seconds after which a delivery counts as hanging. Sinks give up by themselves long before."""
_FAR: Final = 10_000
"""Positions without a question after which the checkpoint moves all the same."""


class Publisher:
    """Publishes for one replica. ``run`` is endless; a supervisor begins it again when the log fails it."""

    def __init__(
        self,
        log: EventLog,
        codec: Codec,
        sink: ApprovalsSink,
        *,
        owner: str,
        categories: Iterable[str] = (),
        watching: Watching | None = None,
        lines: Any = None,
        boundary: Callable[[str, str], None] = lambda name, stream: None,
        poll: float = 0.2,
        patience: Callable[[int], float] = lambda failures: pause(failures, _LONGEST),
        overdue: float = _OVERDUE,
    ) -> None:
        self._log, self._codec, self._sink, self._owner = log, codec, sink, owner
        self._categories = tuple(sorted(set(categories)))
        self._name = ":".join((PART, *self._categories))
        self._watching, self._lines, self._boundary, self._poll, self._patience = watching or Watching(), lines, boundary, poll, patience
        self._questions: Questions | None = None
        self._under_way: dict[str, asyncio.Task[None]] = {}
        #: When each of them was begun, by the loop's clock; how many of them hang.
        self._begun: dict[str, float] = {}
        self._overdue, self._hanging = overdue, 0
        self._saved = 0
        #: Something is over since the checkpoint was saved.
        self._moved = False
        self.published = self.undelivered = 0
        #: The failure of each key's last delivery, until one goes through.
        self._failing: dict[str, SinkFailed] = {}
        self._leading = False

    def report(self) -> dict[str, Any]:
        """What health says of it; from any thread."""
        failing = list(self._failing.values())
        told = {"to": self._sink.shown, "leading": self._leading, "waiting": len(self._questions or ()), "retrying": len(failing)}
        told["hanging"] = self._hanging
        told |= {"published": self.published, "undelivered": self.undelivered, "last_error": str(failing[-1]) if failing else None}
        return {"approvals": told}

    async def run(self) -> None:
        """Publish for as long as this replica has the lease, and wait for it while another has."""
        while True:
            claim = await self._claim()
            if claim is None:
                self._watching.beat(PART)
                await asyncio.sleep(self._poll)
                continue
            try:
                self._leading = True
                await self._lead(claim)
            finally:
                self._leading = False
                for each in self._under_way.values():
                    each.cancel()
                await asyncio.gather(*self._under_way.values(), return_exceptions=True)
                self._under_way.clear()
                self._begun.clear()
                self._questions, self._hanging = None, 0
                self._failing.clear()
                await self._let_go(claim)
                await self._sink.close()

    async def _claim(self) -> Claim | None:
        now = self._log.clock()
        tokens = await in_thread(lambda: self._log.schedule.acquire(PART, [self._name], self._owner, now=now, until=now + _LEASE))
        return Claim(PART, self._name, tokens[self._name], None) if self._name in tokens else None

    async def _let_go(self, claim: Claim) -> None:
        try:
            await asyncio.shield(asyncio.ensure_future(in_thread(lambda: self._log.schedule.release([claim]))))
        except LogError as problem:  # then the lease runs out by itself
            self._watching.failed(PART, problem)

    async def _lead(self, claim: Claim) -> None:
        """Until the lease is lost."""
        loop = asyncio.get_running_loop()
        questions = self._questions = Questions(await in_thread(lambda: self._log.checkpoints.load(self._name)))
        self._saved, renewed = questions.cursor, loop.time()
        while True:
            if loop.time() - renewed > between_beats(_LEASE):
                if await beat(self._log, [claim], _LEASE):
                    return
                renewed = loop.time()
            await take_in(self._log, questions, self._read, TYPES, self._categories, _HELPING)
            self._begin(questions, loop.time())
            await self._checkpoint(questions)
            self._tell(loop.time())
            await self._pause(questions)

    def _read(self, event: StoredEvent) -> Any:
        try:
            fact = self._codec.decode_stored(event)
            return self._again(event.stream, fact.approval_id) if isinstance(fact, facts.ApprovalRedriven) else fact
        except Undecodable as problem:  # its worker stands still at it, too, and says so; here the others go on
            self._warn("question cannot be read", stream=event.stream, version=event.version, reason=str(problem))
            return None

    def _again(self, stream: str, approval_id: str) -> Again | None:
        """The question that a person redrives, from its stream: the checkpoint may lie behind it."""
        for event in self._log.read(stream):
            if event.type == "approval.requested" and (asked := self._codec.decode_stored(event)).approval_id == approval_id:
                return Again(event, asked)
        return None

    def _begin(self, questions: Questions, now: float) -> None:
        for question in questions.firsts():
            stream = question.event.stream
            if len(self._under_way) >= _MOST_AT_ONCE:
                return
            if stream in self._under_way or question.not_before > now:
                continue
            if question.asked.expires_at <= self._log.clock():
                if question.failures:
                    self._warn("approval expired before it was published", **_of(question), failures=question.failures)
                self._over(questions, question)
                continue
            self._begun[stream], self._under_way[stream] = now, asyncio.create_task(self._publish(questions, question))

    async def _publish(self, questions: Questions, question: Question) -> None:
        """One delivery, and what follows from how it went."""
        stream, asked = question.event.stream, question.asked
        try:
            if not await self._is_to_go(questions, question):
                return
            try:
                await self._sink.publish(Publication(str(question.event.id), stream, asked.approval_id, self._body(question)))
            except SinkFailed as problem:
                await self._failed(questions, question, problem)
            else:
                self._boundary("approval.published", stream)
                self.published += 1
                self._watching.approval_published(stream)
                self._over(questions, question)
                if self._lines is not None:
                    self._lines.info("approval published", **_of(question))
        except Exception as problem:  # the log is away, or a sink raised what none should: whatever it is, the others go on
            self._put_off(question, SinkUnavailable(f"{type(problem).__name__} while it was published"))
        finally:
            self._under_way.pop(stream, None)
            self._begun.pop(stream, None)

    async def _is_to_go(self, questions: Questions, question: Question) -> bool:
        """Not what a copy of another history asks."""
        found = await in_thread(lambda: whose(self._log, self._codec, question.event.stream, f"{self._owner} {PART}"))
        if found is Whose.COPIED:
            self._over(questions, question)
        elif found is Whose.UNSURE:
            question.not_before = asyncio.get_running_loop().time() + _AGAIN
        return found is Whose.OWN

    def _body(self, question: Question) -> bytes:
        try:
            return document(question.event, question.asked, self._sink.answer_url)
        except Exception as problem:  # whatever the details hold, the other questions go on
            raise SinkRefused(f"it cannot be written as JSON: {type(problem).__name__}") from problem

    def _over(self, questions: Questions, question: Question) -> None:
        self._failing.pop(question.event.stream, None)
        questions.over(question.event.stream, question.asked.approval_id)
        self._moved = True

    def _put_off(self, question: Question, problem: SinkFailed) -> None:
        """It is offered again after a pause; health hears of it until then."""
        question.failures += 1
        self._failing[question.event.stream] = problem
        seconds = self._patience(question.failures)
        question.not_before = asyncio.get_running_loop().time() + seconds
        self._warn("approval not published", **_of(question), failures=question.failures, again_in=round(seconds, 3), reason=str(problem))

    async def _failed(self, questions: Questions, question: Question, problem: SinkFailed) -> None:
        stream = question.event.stream
        question.refusals += isinstance(problem, SinkRefused)
        self._put_off(question, problem)
        if question.refusals < _REFUSALS:
            return
        fact = facts.ApprovalUndelivered(question.asked.approval_id, self._sink.shown, str(problem), question.failures, self._owner)
        event_id = fact_id("undelivered", stream, fact.approval_id, question.position)
        event = self._codec.stage(fact, event_id=event_id, correlation=question.event.correlation, causation=question.event.event_id)
        await in_thread(lambda: self._log.append(stream, [event], ANY))
        self.undelivered += 1
        self._watching.approval_undelivered(stream)
        self._over(questions, question)
        self._warn("approval given up", **_of(question), failures=question.failures, reason=str(problem))

    async def _checkpoint(self, questions: Questions) -> None:
        position = questions.low_water
        if position > self._saved and (self._moved or position - self._saved > _FAR):
            self._moved = False
            await in_thread(lambda: self._log.checkpoints.save(self._name, position))
            self._saved = position
            self._boundary("approvals.checkpointed", "")

    def _tell(self, now: float) -> None:
        """Health hears of every failure until its key's next delivery goes through, and nothing while one hangs: then the part is stuck."""
        hung, self._hanging = self._hanging, sum(now - begun > self._overdue for begun in self._begun.values())
        if self._hanging > hung:
            many = "a delivery" if self._hanging == 1 else f"{self._hanging} deliveries"
            self._watching.failed(PART, SinkUnavailable(f"{self._sink.shown}: {many} under way for more than {self._overdue:g} s"))
        if self._hanging:
            return
        problem = next(reversed(self._failing.values()), None)
        if problem is None:
            self._watching.beat(PART)
        else:
            self._watching.failed(PART, problem)

    async def _pause(self, questions: Questions) -> None:
        """Until a delivery is over, or something is appended, or a question is due again; not longer than a poll or so."""
        if self._under_way:
            await asyncio.wait(self._under_way.values(), timeout=self._poll, return_when=asyncio.FIRST_COMPLETED)
            return
        after = questions.cursor
        await in_thread(lambda: self._log.wait(after, self._poll))

    async def idle(self) -> bool:
        """Whether everything that can be published is, and the checkpoint says so."""
        last, questions = await in_thread(self._log.last_position), self._questions
        if self._leading and questions is not None:
            return not len(questions) and questions.cursor >= last and not self._moved

        def nothing() -> bool:  # another replica sees to it, or this one has not begun
            after = self._log.checkpoints.load(self._name)
            asked = self._log.read_all(after=after, types=_WANTED, categories=self._categories, limit=1)
            return next(iter(asked), None) is None

        return await in_thread(nothing)

    def _warn(self, event: str, **said: Any) -> None:
        if self._lines is not None:
            self._lines.warning(event, **said)


def _of(question: Question) -> dict[str, Any]:
    stream = question.event.stream
    return {"approval_id": question.asked.approval_id, "stream": stream, "key": stream.partition("-")[2]}
