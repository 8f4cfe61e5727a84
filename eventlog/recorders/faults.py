"""Our errors as the library's, which follow PEP 249."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eventsourcing.persistence import DatabaseError, DataError, IntegrityError, OperationalError

from ..errors import EventIdConflict, InvalidName, LogError, LogUnavailable, StoreSchemaError, WrongExpectedVersion


@contextmanager
def translated() -> Iterator[None]:
    """Raise what a caller of the library expects, with our error as its cause."""
    try:
        yield
    except (WrongExpectedVersion, EventIdConflict) as error:
        raise IntegrityError(str(error)) from error
    except (LogUnavailable, StoreSchemaError) as error:
        raise OperationalError(str(error)) from error
    except InvalidName as error:
        raise DataError(str(error)) from error
    except LogError as error:
        raise DatabaseError(str(error)) from error
