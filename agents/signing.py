"""Keys and signatures: who may stage what an effector carries out, and who vouches for an outcome, a delivery, an answer.

Every signature is HMAC-SHA256 over a purpose and the parts of what is signed, so that one given for one purpose is of no use for
another. A worker with keys appends ``intent.signed`` directly behind each ``intent.staged``, in the same append. The signature
covers the stream, the schema and the payload's bytes as they are stored, and the payload holds the intent's id: neither another
stream nor another intent can use it. A key ring is rotated in three steps: add the new key behind the old one everywhere, put it
first where intents are staged, take the old one out when nothing that it signed is open.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from .errors import AgentError

if TYPE_CHECKING:
    from .facts import IntentReadmitted

OFF: Final = "off"
PERMISSIVE: Final = "permissive"
REQUIRE: Final = "require"
VERIFYING: Final = (OFF, PERMISSIVE, REQUIRE)
"""Nobody looks; wrong signatures are refused; missing ones are, too."""
_LEAST: Final = 32
_MOST: Final = 65_536
"""Bytes of a ring, hundreds of keys: what is longer is something else, and is not read to its end."""
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_INTENT: Final = b"intentlog.intent.v1"
_OUTCOME: Final = b"intentlog.outcome.v1"
_DECISION: Final = b"intentlog.decision.v1"
_READMISSION: Final = b"intentlog.readmission.v1"
_WEBHOOK: Final = b"intentlog.webhook.v1"
_ANSWER: Final = b"intentlog.answer.v1"


class KeysRefused(AgentError):
    """A key ring that cannot be used. Says where it came from and what is wrong, never a secret."""


@attrs.frozen
class Signature:
    """A signature and the id of the key it was made with."""

    key_id: str
    signature: bytes


class KeyRing:
    """Secrets by id. The first one signs; all of them verify. Shows ids only, whoever prints it."""

    def __init__(self, keys: Mapping[str, bytes], *, source: str = "the key ring") -> None:
        """``keys``: id → secret, the signing key first. Raises ``KeysRefused``; ``source`` names the ring in it."""
        if not keys:
            raise KeysRefused(f"{source} holds no key; a line is ID:HEX, for example one made with: openssl rand -hex 32")
        for number, (key_id, secret) in enumerate(keys.items(), 1):
            if not _ID.fullmatch(key_id):  # it may be a secret in the wrong place: not shown
                raise KeysRefused(f"{source}, key {number}: its id must be up to 64 letters, digits, '_', '.' and '-'")
            if len(secret) < _LEAST:
                raise KeysRefused(f"{source}, key {number} ({key_id}): its secret has {len(secret)} bytes and must have {_LEAST} or more")
        self._keys = dict(keys)
        self.signing_id = next(iter(keys))

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the keys, the signing one first."""
        return tuple(self._keys)

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a key ring is not pickled: its secrets would go with it")

    @classmethod
    def read(cls, reference: str, environment: Mapping[str, str] | None = None) -> KeyRing:
        """The ring that ``env:NAME`` or ``file:/path`` holds: ``ID:HEX`` a line (or between blanks), the signing key first.

        Lines that begin with ``#`` are remarks. A relative path is one from the current folder. Raises ``KeysRefused``, also for what
        is no regular file or has more than 64 KiB.
        """
        kind, _, where = reference.partition(":")
        if kind not in ("env", "file") or not where:  # it may be a secret: not shown
            raise KeysRefused("signing keys are named by a reference, env:NAME or file:/path, never given themselves")
        if kind == "env":
            found = (os.environ if environment is None else environment).get(where)
            if found is None:
                raise KeysRefused(f"{reference}: there is no environment variable {where}")
            return cls.parse(found, source=reference)
        try:
            text = _read(where, reference).decode()
        except (OSError, ValueError) as problem:  # a path with a null byte is a ValueError, too
            raise KeysRefused(f"{reference} cannot be read: {getattr(problem, 'strerror', None) or 'it is no text'}") from None
        return cls.parse(text, source=reference)

    @classmethod
    def parse(cls, text: str, *, source: str = "the key ring") -> KeyRing:
        """The ring of ``ID:HEX`` entries. Raises ``KeysRefused``, naming the entry by its number alone."""
        keys: dict[str, bytes] = {}
        lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
        for number, entry in enumerate(" ".join(lines).split(), 1):
            key_id, separator, digits = entry.partition(":")
            try:
                secret = bytes.fromhex(digits)
            except ValueError:
                separator = ""
            if not separator:
                raise KeysRefused(f"{source}, key {number}: an entry is ID:HEX, the secret as hexadecimal digits") from None
            if key_id in keys:
                raise KeysRefused(f"{source}, key {number}: its id is used twice; a retired id is not used again")
            keys[key_id] = secret
        return cls(keys, source=source)

    def sign_intent(self, stream: str, schema: int, payload: bytes) -> Signature:
        """The signature of an ``intent.staged`` by the ring's first key. ``payload``: its bytes as they are stored."""
        return self._sign(_INTENT, _parts(stream, schema, payload))

    def verify_intent(self, signature: Signature, stream: str, schema: int, payload: bytes) -> str | None:
        """Why ``signature`` is not one by these keys of exactly this, without any secret; ``None`` when it is. In constant time."""
        return self._verify(signature, _INTENT, _parts(stream, schema, payload))

    def sign_outcome(self, stream: str, schema: int, payload: bytes) -> Signature:
        """The signature of an ``intent.settled``, like ``sign_intent``."""
        return self._sign(_OUTCOME, _parts(stream, schema, payload))

    def verify_outcome(self, signature: Signature, stream: str, schema: int, payload: bytes) -> str | None:
        """Like ``verify_intent``, for an ``intent.settled``."""
        return self._verify(signature, _OUTCOME, _parts(stream, schema, payload))

    def sign_decision(self, stream: str, schema: int, payload: bytes) -> Signature:
        """The signature of an ``approval.decided``, like ``sign_intent``."""
        return self._sign(_DECISION, _parts(stream, schema, payload))

    def verify_decision(self, signature: Signature, stream: str, schema: int, payload: bytes) -> str | None:
        """Like ``verify_intent``, for an ``approval.decided``."""
        return self._verify(signature, _DECISION, _parts(stream, schema, payload))

    def sign_readmission(self, stream: str, number: int, by: str, reason: str, attempts: int, schema: int, payload: bytes) -> Signature:
        """The signature of an ``intent.readmitted``: the ``number``-th of the intent whose ``intent.staged`` has these bytes."""
        return self._sign(_READMISSION, (*_parts(stream, schema, payload), *_texts(number, by, reason, attempts)))

    def verify_readmission(
        self, signature: Signature, stream: str, number: int, by: str, reason: str, attempts: int, schema: int, payload: bytes
    ) -> str | None:
        """Like ``verify_intent``, for an ``intent.readmitted``."""
        return self._verify(signature, _READMISSION, (*_parts(stream, schema, payload), *_texts(number, by, reason, attempts)))

    def sign_webhook(self, seconds: int, body: bytes) -> Signature:
        """The signature of a delivery made ``seconds`` after 1970-01-01 UTC."""
        return self._sign(_WEBHOOK, (*_texts(seconds), body))

    def verify_webhook(self, signature: Signature, seconds: int, body: bytes) -> str | None:
        """Like ``verify_intent``, for a delivery. Whether it is fresh is another question."""
        return self._verify(signature, _WEBHOOK, (*_texts(seconds), body), "of this body at this time")

    def sign_answer(self, stream: str, approval_id: str, digest: bytes, approved: bool, by: str, reason: str, decided_at: int) -> Signature:
        """The signature of a person's answer to an approval."""
        return self._sign(_ANSWER, _answer(stream, approval_id, digest, approved, by, reason, decided_at))

    def verify_answer(
        self, signature: Signature, stream: str, approval_id: str, digest: bytes, approved: bool, by: str, reason: str, decided_at: int
    ) -> str | None:
        """Like ``verify_intent``, for an answer."""
        return self._verify(signature, _ANSWER, _answer(stream, approval_id, digest, approved, by, reason, decided_at), "of this answer")

    def _sign(self, purpose: bytes, parts: Iterable[bytes]) -> Signature:
        return Signature(self.signing_id, _mac(self._keys[self.signing_id], purpose, parts))

    def _verify(self, signature: Signature, purpose: bytes, parts: Iterable[bytes], what: str = "of these bytes on this stream") -> str | None:
        secret = self._keys.get(signature.key_id)
        if secret is None:
            return f"it is signed with the key {signature.key_id!r:.80}, which is not in the ring ({', '.join(self._keys)})"
        if not hmac.compare_digest(_mac(secret, purpose, parts), signature.signature):
            return f"its signature with the key {signature.key_id} is not one {what}"
        return None


def _read(path: str, reference: str) -> bytes:
    """The file's bytes. Never waits for a writer of a pipe, and ends for a device that has no end. Raises ``OSError``, ``KeysRefused``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise KeysRefused(f"{reference} is no regular file. Write the key ring to one, ID:HEX a line, or give env:NAME")
        with open(descriptor, "rb", closefd=False) as file:
            text = file.read(_MOST + 1)
    finally:
        os.close(descriptor)
    if len(text) > _MOST:
        raise KeysRefused(f"{reference} has {found.st_size:,} bytes, and a key ring at most {_MOST:,}; a line of one is ID:HEX. Is it another file?")
    return text


def _parts(stream: str, schema: int, payload: bytes) -> tuple[bytes, ...]:
    return *_texts(stream, schema), payload


def _answer(stream: str, approval_id: str, digest: bytes, approved: bool, by: str, reason: str, decided_at: int) -> tuple[bytes, ...]:
    return *_texts(stream, approval_id), digest, *_texts("yes" if approved else "no", by, reason, decided_at)


def _texts(*parts: str | int) -> tuple[bytes, ...]:
    return tuple(str(part).encode("utf-8", "surrogatepass") for part in parts)


def _mac(secret: bytes, purpose: bytes, parts: Iterable[bytes]) -> bytes:
    """Each part behind its length, so that no two different lists read the same."""
    mac = hmac.new(secret, purpose, hashlib.sha256)
    for part in parts:
        mac.update(b"%d:" % len(part))
        mac.update(part)
    return mac.digest()


@attrs.frozen
class Verifier:
    """How an effector looks at signatures of intents, and with what it signs their outcomes."""

    #: ``off`` looks at none, ``permissive`` refuses wrong ones, ``require`` missing ones too.
    mode: str = attrs.field(validator=attrs.validators.in_(VERIFYING))
    keys: KeyRing

    def objection(self, signature: Signature | None, stream: str, schema: int, payload: bytes) -> str | None:
        """Why nothing may be done about this intent, or ``None``."""
        if self.mode == OFF:
            return None
        if signature is None:
            return "it is not signed" if self.mode == REQUIRE else None
        return self.keys.verify_intent(signature, stream, schema, payload)

    def objection_to_readmission(self, fact: IntentReadmitted, stream: str) -> str | None:
        """Why the intent that ``fact`` readmits on ``stream`` may not be touched all the same, or ``None``."""
        if self.mode == OFF:
            return None
        signature = Signature(fact.key_id, fact.signature)
        return self.keys.verify_readmission(signature, stream, fact.number, fact.by, fact.reason, fact.attempts, fact.schema, fact.payload)


def verifier(mode: str, keys: KeyRing | None) -> Verifier | None:
    """What ``mode``, one of ``VERIFYING``, asks for; ``None`` for ``off`` without keys. Raises ``KeysRefused`` when there is nothing to verify with."""
    if keys is None:
        if mode == OFF:
            return None
        raise KeysRefused(f"signatures cannot be verified ({mode}) without keys: give --signing-keys")
    return Verifier(mode, keys)
