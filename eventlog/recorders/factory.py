"""From an application's environment to its recorders: one factory, one log, closed with the application."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar, cast

from eventsourcing.persistence import AggregateRecorder, ApplicationRecorder, InfrastructureFactory, Recorder
from eventsourcing.utils import Environment, EnvType, resolve_topic, strtobool

from ..errors import InvalidName, InvalidUrl
from ..log import EventLog
from ..opening import open_log
from .faults import translated
from .layout import DEFAULT_CATEGORY, Layout
from .recording import LogAggregateRecorder, LogApplicationRecorder
from .snapshots import LogSnapshotRecorder
from .tracking import LogProcessRecorder, LogTrackingRecorder

R = TypeVar("R", bound=Recorder)
_ID_TYPES: Final = ("uuid", "text")


class LogFactory(InfrastructureFactory[LogTrackingRecorder]):
    """Recorders over the log that ``EVENTLOG_URL`` names.

    Variables, each also with the application's name in front as everywhere in the library: ``EVENTLOG_URL``,
    ``EVENTLOG_CATEGORY`` (``aggregate``), ``ORIGINATOR_ID_TYPE`` (``uuid`` or ``text``), ``CREATE_TABLE`` (``no``: refuse
    to make a log that is not there), and the library's own topics for mapper, cipher, compressor and recorder classes.
    Raises ``OSError`` for a variable that is missing or wrong, ``OperationalError`` when the log cannot be opened.
    """

    EVENTLOG_URL = "EVENTLOG_URL"
    EVENTLOG_CATEGORY = "EVENTLOG_CATEGORY"
    ORIGINATOR_ID_TYPE = "ORIGINATOR_ID_TYPE"
    CREATE_TABLE = "CREATE_TABLE"

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        self.layout = self._layout()
        self.log = self._open(self._url())

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """A recorder of aggregates, or of their snapshots when ``purpose`` is ``snapshots``."""
        if purpose == "snapshots":
            return LogSnapshotRecorder(self.log, self.layout)
        if purpose != "events":
            raise ValueError(f"A recorder's purpose is 'events' or 'snapshots', not {purpose!r:.80}. Give other aggregates their own EVENTLOG_CATEGORY.")
        return LogAggregateRecorder(self.log, self.layout)

    def application_recorder(self) -> ApplicationRecorder:
        """A recorder of aggregates in one order."""
        return self._class(self.APPLICATION_RECORDER_TOPIC, LogApplicationRecorder)(self.log, self.layout)

    def tracking_recorder(self, tracking_recorder_class: type[LogTrackingRecorder] | None = None) -> LogTrackingRecorder:
        """A recorder of what has been followed; of ``tracking_recorder_class`` if given."""
        chosen = tracking_recorder_class or self._class(self.TRACKING_RECORDER_TOPIC, LogTrackingRecorder)
        return chosen(self.log, self.layout)

    def process_recorder(self) -> LogProcessRecorder:
        """A recorder of events together with what they answer."""
        return self._class(self.PROCESS_RECORDER_TOPIC, LogProcessRecorder)(self.log, self.layout)

    def close(self) -> None:
        """Close the log, and with it every recorder of this factory."""
        self.log.close()

    def _open(self, url: str) -> EventLog:
        with translated():
            try:
                return open_log(url, create=self._may_create())
            except InvalidUrl as error:
                raise OSError(str(error)) from error

    def _url(self) -> str:
        """The log's URL; a factory of one store looks at other variables."""
        return self._required(self.EVENTLOG_URL, "the URL of a log, for example sqlite:///eventlog.db")

    def _may_create(self) -> bool:
        return strtobool(self.env.get(self.CREATE_TABLE, "yes") or "yes")

    def _required(self, name: str, meaning: str) -> str:
        value = self.env.get(name)
        if not value:
            raise OSError(f"None of the environment variables {', '.join(self.env.create_keys(name))} is set. Set one to {meaning}.")
        return value

    def _layout(self) -> Layout:
        id_type = (self.env.get(self.ORIGINATOR_ID_TYPE) or "uuid").lower()
        if id_type not in _ID_TYPES:
            raise OSError(f"Invalid {self.ORIGINATOR_ID_TYPE} {id_type!r:.80}: it must be 'uuid' or 'text'.")
        try:
            return Layout(self.env.get(self.EVENTLOG_CATEGORY) or DEFAULT_CATEGORY, cast("Literal['uuid', 'text']", id_type))
        except InvalidName as error:
            raise OSError(f"Invalid {self.EVENTLOG_CATEGORY}: {error}") from error

    def _class(self, variable: str, default: type[R]) -> type[R]:
        topic = self.env.get(variable)
        chosen: Any = resolve_topic(topic) if topic else default
        if not (isinstance(chosen, type) and issubclass(chosen, default)):
            raise TypeError(f"{variable} names {topic!r:.200}, which is no subclass of {default.__name__}.")
        return chosen
