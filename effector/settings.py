"""Everything an effector of its own can be told. One class: options, environment variables and the page's table come from it.

Values are read as text, all of them, before the first mistake is told, so that a deployment is put right in one go. What an
option holds is told back with credentials masked, and not at all where it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

import attrs
import click

from ..eventlog.console import DEFAULT_URL, masked
from ..eventlog.printing import as_text

F = TypeVar("F", bound=Callable[..., Any])
PREFIX: Final = "EFFECTOR_"
LOG_SCHEME: Final = "eventlog:"
_DAY_MS: Final = 86_400_000
_USER: Final = re.compile(r"(://)[^/@\s'\"]+@")
_NAMED: Final = 5
"""Tools that one mistake names; the others are counted."""


class Refused(ValueError):
    """A value that an option does not take; says what it does take."""


class SettingsRefused(click.UsageError):
    """A configuration that cannot be, with everything that is wrong with it. Exit code 2."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = [_hidden(each) for each in problems]
        count = len(self.problems)
        head = "One thing is" if count == 1 else f"{count} things are"
        super().__init__("\n".join((f"{head} wrong with this effector's configuration:", *(f"  {each}" for each in self.problems), "")))


def _hidden(text: str) -> str:
    return _USER.sub(r"\1***@", masked(text))


def _as_given(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return as_text(value)
    raise Refused(f"must be given as text or as a whole number, and not as a {type(value).__name__}")  # which may be a secret


def _text(value: str) -> str:
    return value


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", value.strip()) or not least <= int(value) <= most:
            raise Refused(f"{value!r:.80} must be a whole number from {least:,} to {most:,}")
        return int(value)

    return read


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value.strip().lower() not in choices:
            raise Refused(f"{value!r:.80} must be one of {', '.join(choices)}")
        return value.strip().lower()

    return read


def _name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", value):
        raise Refused(f"{value!r:.80} must be letters, digits, '_', '.', '-', at most 100 of them")
    return value


def _reference(value: str) -> str:
    if not re.fullmatch(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+", value):
        raise Refused("must be env:NAME or file:/path, a reference to the keys; what was given is not shown, in case it is a key")
    return value


def _url(value: str) -> str:
    if not re.match(r"[a-z][a-z0-9+.-]*:", value):
        raise Refused(f"{value!r:.200} is no URL; it must begin with a scheme, for example {LOG_SCHEME}")
    return value


def _setting(read: Callable[[str], Any], default: Any, metavar: str, text: str, *, also: str = "") -> Any:
    return attrs.field(default=default, metadata={"read": read, "metavar": metavar, "text": text, "also": also})


@attrs.frozen(kw_only=True)
class Settings:
    """What one replica of the effector runs by. Lengths of time are in milliseconds."""

    registry: str = _setting(
        _text, "", "MODULE:ATTRIBUTE", "The tools: a ToolSet, a list of tools, or an App. Its module is found from the current folder first."
    )
    log: str = _setting(_url, DEFAULT_URL, "URL", "The log, where `eventlog:` stands for it.", also="EVENTLOG_URL")
    intents_from: str = _setting(
        _url, LOG_SCHEME, "URL", "Where intents come from: `eventlog:`, the log's own tail; `eventlog:URL`, which names the log as well; a topic of a bus."
    )
    results_to: str = _setting(_url, LOG_SCHEME, "URL", "Where outcomes go. `eventlog:` is the stream of each intent.")
    approvals_to: str = _setting(
        _url,
        LOG_SCHEME,
        "URL",
        "Where questions to people go. With `eventlog:` they stand on the log already; `webhook+https://…` gets each of them.",
    )
    dedup: str = _setting(_url, LOG_SCHEME, "URL", "Who decides which replica carries out an intent. With `eventlog:` the log's leases and event ids do.")
    dead_letters_to: str = _setting(_url, LOG_SCHEME, "URL", "Where what cannot be taken goes.")
    consumer_group: str = _setting(_name, "effector", "NAME", "The group in which replicas share a message bus. The log needs none.")
    tool_timeout_ms: int = _setting(_whole(1, _DAY_MS), 60_000, "N", "The longest one call of a tool may take, for tools that name no timeout of their own.")
    lease_ms: int = _setting(_whole(100, _DAY_MS), 300_000, "N", "How long a silent replica keeps its keys. Longer than every tool's timeout.")
    result_ttl_ms: int = _setting(_whole(1_000, 365 * _DAY_MS), _DAY_MS, "N", "How long a dedup store keeps an outcome. The log keeps it for ever.")
    grace_ms: int = _setting(_whole(0, _DAY_MS), 10_000, "N", "How long running tools may still take when the effector stops.")
    max_concurrent_partitions: int = _setting(_whole(1, 100_000), 8, "N", "What is carried out at once: partitions of a bus, keys of the log.")
    poll_ms: int = _setting(_whole(1, 60_000), 200, "N", "How often to look at the log when nothing wakes the effector.")
    unknown_tools: str = _setting(
        _one_of("reject", "hold"), "reject", "WORD", "Intents of unknown tools: `reject` them, or `hold` them for a replica that knows the tool."
    )
    verify_intents: str = _setting(
        _one_of("off", "permissive", "require"), "off", "WORD", "Signatures: `off`; `permissive` refuses wrong ones; `require` missing ones too."
    )
    signing_keys: str = _setting(_reference, "", "REFERENCE", "The key ring: `env:NAME` or `file:/path`. Never the keys themselves.")
    owner: str = _setting(_name, "", "NAME", "A name for this replica beside host and process, in attempts, outcomes and log lines.")
    log_level: str = _setting(_one_of("debug", "info", "warning", "error"), "info", "WORD", "The least that is logged: `debug`, `info`, `warning`, `error`.")
    health_host: str = _setting(_text, "127.0.0.1", "ADDRESS", "Where health and metrics are served.")
    health_port: int = _setting(_whole(0, 65_535), 0, "N", "Their port; `0` is any free one, which the log's first lines tell.")
    traces: str = _setting(_one_of("off", "otlp"), "off", "WORD", "`otlp`: send OpenTelemetry spans, by the `OTEL_…` variables.")

    @classmethod
    def read(cls, given: Mapping[str, str | int | None]) -> tuple[Settings, list[str]]:
        """Settings of the texts that are given, and what is wrong with them; where a value is wrong the default stands in.

        A whole number may be given as one.
        """
        values: dict[str, Any] = {}
        names = [each.name for each in attrs.fields(cls)]
        unknown = [str(name) for name in given if name not in names]
        problems = {name: f"{name!r:.80} is no setting; there are: {', '.join(names)}" for name in unknown}
        for each in attrs.fields(cls):
            value = given.get(each.name)
            if value is None or value == "":
                continue
            try:
                values[each.name] = each.metadata["read"](_as_given(value))
            except Refused as problem:
                problems[each.name] = f"{named(each.name)}: {problem}"
        made = cls(**values)
        return made, [*problems.values(), *(text for name, text in made.problems() if name not in problems)]

    @property
    def from_log(self) -> bool:
        """Whether intents come from the log's tail."""
        return self.intents_from.startswith(LOG_SCHEME)

    @property
    def log_url(self) -> str:
        """The log itself."""
        return self.intents_from.removeprefix(LOG_SCHEME) if self.from_log and self.intents_from != LOG_SCHEME else self.log

    def problems(self) -> Iterator[tuple[str, str]]:
        """What does not fit together: the field, and what is wrong with it."""
        if not self.registry:
            yield "registry", f"{named('registry')}: give the tools, for example --registry refunds:TOOLS"
        if self.lease_ms <= self.tool_timeout_ms:
            yield (
                "lease_ms",
                f"{named('lease_ms')}: {self.lease_ms} must be more than --tool-timeout-ms, {self.tool_timeout_ms}: a lease that ends in mid-call is no lease",
            )
        if self.verify_intents != "off" and not self.signing_keys:
            yield "signing_keys", f"{named('signing_keys')}: --verify-intents {self.verify_intents} needs keys to verify with"
        yield from self._of_the_log() if self.from_log else self._of_the_bus()

    def _of_the_log(self) -> Iterator[tuple[str, str]]:
        if self.log not in (DEFAULT_URL, self.log_url):
            yield "intents_from", f"{named('intents_from')}: names the log {self.log_url}, while --log names {self.log}; give one of the two"
        if self.log_url.startswith("memory:"):
            yield "log", f"{named('log')}: {self.log_url} ends with the process that opened it; name a log that others can reach, for example {DEFAULT_URL}"
        yield from self._of_webhook()
        for name, why in _LOG_ONLY.items():
            value = getattr(self, name)
            if name == "approvals_to" and (self.to_webhook or self._is_bare):
                continue
            if value not in (LOG_SCHEME, LOG_SCHEME + self.log_url):
                yield name, f"{named(name)}: {value} does not go with intents from the log, {why}; leave it out"

    @property
    def to_webhook(self) -> bool:
        """Whether questions to people go to a webhook."""
        return self.approvals_to.startswith("webhook+")

    @property
    def _is_bare(self) -> bool:
        return self.approvals_to.partition("://")[0] in ("https", "http")

    def _of_webhook(self) -> Iterator[tuple[str, str]]:
        if not self.to_webhook and not self._is_bare:
            return
        from .approvals import InvalidWebhookUrl, parse_webhook

        try:
            parse_webhook(self.approvals_to)
        except InvalidWebhookUrl as problem:  # the URL itself is not shown: its path may be a secret
            yield "approvals_to", f"{named('approvals_to')}: {problem}"
        if not self.signing_keys:
            yield "signing_keys", f"{named('signing_keys')}: what goes to a webhook is signed, so that its receiver knows whose it is; give the keys"

    def _of_the_bus(self) -> Iterator[tuple[str, str]]:
        if self.to_webhook:  # the URL itself is not shown: its path may be a secret
            yield "approvals_to", f"{named('approvals_to')}: with intents from a bus, questions go to a topic, and not to a webhook"
        for name, example in _BUS_NEEDS.items():
            if getattr(self, name).startswith(LOG_SCHEME):
                yield name, f"{named(name)}: intents from a bus need it, for example {example}"

    def tool_problems(self, timeouts: Mapping[str, timedelta]) -> Iterator[str]:
        """Tools whose own timeout the lease does not cover."""
        longer = {name: timeout for name, timeout in timeouts.items() if timeout >= timedelta(milliseconds=self.lease_ms)}
        own = sorted((name for name, timeout in longer.items() if timeout != timedelta(milliseconds=self.tool_timeout_ms)), key=lambda name: -longer[name])
        if own:  # those that have the default timeout are told of with it
            of = "the timeout of the tool" if len(own) == 1 else "the timeouts of the tools"
            told = ", ".join(f"{name}, {longer[name] // timedelta(milliseconds=1)} ms" for name in own[:_NAMED])
            more = f", and {len(own) - _NAMED} more" if len(own) > _NAMED else ""
            yield f"{named('lease_ms')}: {self.lease_ms} must be more than {of} {told}{more}"


_LOG_ONLY: Final = {
    "results_to": "whose outcomes go to the streams of the intents",
    "approvals_to": "where questions to people stand already",
    "dedup": "which is its own dedup store",
    "dead_letters_to": "which keeps what cannot be taken",
}

_BUS_NEEDS: Final = {
    "results_to": "a topic for outcomes",
    "approvals_to": "a topic for questions to people",
    "dedup": "postgresql://effects@db/effects, the same for every replica",
    "dead_letters_to": "a topic for what cannot be taken",
}


def flag(name: str) -> str:
    """The option of a field."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """The environment variable of a field."""
    return PREFIX + name.upper()


def named(name: str) -> str:
    """A field as a message names it."""
    return f"{flag(name)} ({variable(name)})"


def options(command: F) -> F:
    """Every field as an option whose value is text; ``Settings.read`` makes sense of it."""
    for each in reversed(attrs.fields(Settings)):
        meta = each.metadata
        envvar = [variable(each.name), *([meta["also"]] if meta["also"] else [])]
        text = f"{meta['text']} {_default_of(each)}".replace("`", "")
        command = click.option(flag(each.name), each.name, metavar=meta["metavar"], envvar=envvar, show_envvar=True, help=text)(command)
    return command


def table() -> str:
    """The options as a table in Markdown."""
    lines = ["| option | variable | default | |", "|---|---|---|---|"]
    for each in attrs.fields(Settings):
        default = f"`{each.default}`" if each.default not in ("", None) else ""
        lines.append(f"| `{flag(each.name)}` | `{variable(each.name)}` | {default} | {each.metadata['text']} |")
    return "\n".join(lines)


def _default_of(field: Any) -> str:
    return f"[default: {field.default}]" if field.default not in ("", None) else ""
