"""What a surface must offer to be published to. Values and a protocol only."""

from __future__ import annotations

from typing import Protocol

import attrs


@attrs.frozen
class Publication:
    """One question on its way: exactly what is written on the log, as bytes."""

    #: The same for every delivery of this question.
    id: str
    stream: str
    approval_id: str
    body: bytes = attrs.field(repr=False)


class ApprovalsSink(Protocol):
    """Takes questions. One key's come one after the other; those of several keys may come at once."""

    #: As it may be shown: no credentials, no path.
    shown: str
    #: Where answers may be sent; empty when nothing is known of it.
    answer_url: str

    async def publish(self, publication: Publication) -> None:
        """Return when the other side has it. Raises ``SinkRefused`` or ``SinkUnavailable``."""
        ...

    async def close(self) -> None:
        """Give connections back; to publish once more is possible."""
        ...
