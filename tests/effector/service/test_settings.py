"""One class, three readers: the command line, the environment, the page."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import attrs
import click
import pytest
from click.testing import CliRunner, Result

from intentlog.effector.commands_effector import effector
from intentlog.effector.settings import Settings, SettingsRefused, flag, table, variable
from intentlog.eventlog.cli import group
from tests.effector.service.replicas import TOOLS
from tests.house.tree import ROOT


@pytest.fixture
def call(tmp_path, monkeypatch):
    (tmp_path / "tools.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in os.environ if name.startswith("EFFECTOR_")]:
        monkeypatch.delenv(name)

    def run(*words: str, **environment: str) -> Result:
        return CliRunner().invoke(group, ["effector", *words], env=environment, prog_name="eventlog")

    return run


def test_the_page_holds_the_table_that_the_class_gives():
    assert table() in (ROOT / "docs" / "effector.md").read_text("utf-8")


def test_every_field_is_an_option_with_a_variable_and_every_option_a_field():
    known = {each.name for each in attrs.fields(Settings)}
    options = {each.name: each for each in effector.params if isinstance(each, click.Option) and not each.hidden}
    assert known == set(options)
    assert {name: flag(name) for name in known} == {name: each.opts[0] for name, each in options.items()}
    assert {name: variable(name) for name in known} == {name: (each.envvar or [""])[0] for name, each in options.items()}


def test_the_defaults_are_those_that_were_promised():
    settings, problems = Settings.read({"registry": "tools:TOOLS"})
    assert [] == problems
    assert (60_000, 300_000, 86_400_000, 8) == (settings.tool_timeout_ms, settings.lease_ms, settings.result_ttl_ms, settings.max_concurrent_partitions)
    assert ("off", "eventlog:", "eventlog:", "127.0.0.1") == (settings.verify_intents, settings.intents_from, settings.results_to, settings.health_host)


def test_everything_that_is_wrong_is_told_at_once_and_nothing_secret_with_it(call):
    done = call(
        *("--lease-ms", "ages", "--tool-timeout-ms", "0", "--unknown-tools", "guess", "--signing-keys", "hunter2", "--registry", "tools:GONE"),
        *("--intents-from", "kafka://me:hunter2@broker/intents", "--health-port", "70000", "--traces", "paper"),
        EFFECTOR_OWNER="a b",
        EFFECTOR_LOG_LEVEL="loud",
    )
    assert (2, "") == (done.exit_code, done.stdout)
    told = [line.strip().partition(" ")[0] for line in done.stderr.splitlines() if line.startswith("  --")]
    expected = ["lease-ms", "tool-timeout-ms", "unknown-tools", "signing-keys", "registry", "intents-from", "health-port", "traces", "owner", "log-level"]
    expected += ["results-to", "approvals-to", "dedup", "dead-letters-to"]  # which a bus needs
    assert sorted(f"--{each}" for each in expected) == sorted(told)
    assert "14 things are wrong" in done.stderr
    assert "hunter2" not in done.stderr
    assert "kafka://***@broker/intents" in done.stderr


BUS: dict[str, Any] = {
    "intents_from": "memory://here/intents",
    "results_to": "memory://here/results",
    "approvals_to": "memory://here/approvals",
    "dead_letters_to": "memory://here/dead",
    "dedup": "memory://",
}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no registry": ({"registry": None}, "--registry (EFFECTOR_REGISTRY): give the tools"),
    "no such module": ({"registry": "nowhere:TOOLS"}, "there is no module 'nowhere'"),
    "something else": ({"registry": "tools:TOOLS.add"}, "no ToolSet, list of tools or App"),
    "a lease no longer than the timeout": ({"lease_ms": "60000"}, "60000 must be more than --tool-timeout-ms, 60000"),
    "a lease shorter than one tool's timeout": ({"registry": "tools:SLOW"}, "300000 must be more than the timeout of the tool slow, 600000 ms"),
    "no such keys": ({"verify_intents": "require", "signing_keys": "env:NO_SUCH_KEYS"}, "there is no environment variable NO_SUCH_KEYS"),
    "keys that are none": ({"signing_keys": "env:PATH"}, "key 1: an entry is ID:HEX"),
    "no keys": ({"verify_intents": "require"}, "--verify-intents require needs keys"),
    "two logs": ({"log": "sqlite:///a.db", "intents_from": "eventlog:sqlite:///b.db"}, "names the log sqlite:///b.db, while --log names sqlite:///a.db"),
    "a log in memory": ({"log": "memory://"}, "ends with the process"),
    "a parameter that no SQLite log has": ({"log": "sqlite:///x.db?bogus=hunter3"}, "Unknown parameter 'bogus' in 'sqlite:///x.db?bogus=***'"),
    "a parameter that libpq lacks": ({"log": "postgresql://me:hunter2@h/x?bogus=hunter3"}, "'postgresql://***@h/x?bogus=***'"),
    "a parameter that no bus has": (BUS | {"results_to": "memory://here/x?bogus=hunter3"}, "'memory://here/x?bogus=***'"),
    "a parameter that redis-py lacks": (BUS | {"dedup": "redis://:hunter2@h?bogus=hunter3"}, "cannot read redis://***@h?bogus=***"),
    "a parameter that libpq lacks, of a dedup store": (BUS | {"dedup": "postgresql://h/x?bogus=hunter3"}, "cannot read postgresql://h/x?bogus=***"),
    "no log": ({"log": "ftp://x/y"}, "No store understands"),
    "a dedup store beside the log": ({"dedup": "redis://:hunter2@r:6379"}, "redis://***@r:6379 does not go with intents from the log"),
    "a webhook without keys": (
        {"approvals_to": "webhook+https://chat.example/hunter2"},
        "EFFECTOR_SIGNING_KEYS): what goes to a webhook is signed",
    ),
    "a webhook in the open": ({"approvals_to": "webhook+http://me:hunter2@chat.example/hunter2", "signing_keys": "env:RING"}, "over the network in the open"),
    "a webhook of another kind": ({"approvals_to": "webhook+ftp://chat.example/hunter2", "signing_keys": "env:RING"}, "it must be webhook+https://HOST/PATH"),
    "a webhook without the word for it": (
        {"approvals_to": "https://chat.example/hunter2", "signing_keys": "env:RING"},
        "write webhook+https:// instead of https://",
    ),
    "a lease that is no number": ({"lease_ms": 61.5}, "--lease-ms (EFFECTOR_LEASE_MS): must be given as text or as a whole number, and not as a float"),
    "keys instead of where they are": ({"signing_keys": b"hunter2"}, "must be given as text or as a whole number, and not as a bytes"),
    "a number for a word": ({"verify_intents": True}, "and not as a bool"),
    "a setting that there is not": ({"lease": 61_000}, "'lease' is no setting; there are: registry, log,"),
    "results elsewhere": ({"results_to": "kafka://b/r"}, "kafka://b/r does not go with intents from the log"),
    "a bus without a sink": (BUS | {"results_to": None}, "--results-to (EFFECTOR_RESULTS_TO): intents from a bus need it"),
    "a bus without a dedup store": (BUS | {"dedup": None}, "--dedup (EFFECTOR_DEDUP): intents from a bus need it"),
    "no such bus": (BUS | {"intents_from": "pigeon://me:hunter2@loft/x"}, "no bus here understands 'pigeon://***@loft/x'"),
    "the scheme of no bus": (BUS | {"approvals_to": "https://"}, "https:// alone names nothing, and no bus here is called so"),
    "a bus that nobody could reach": (BUS, "a memory:// bus ends with its process"),
    "a webhook beside a bus": (BUS | {"approvals_to": "webhook+https://x/hunter2", "signing_keys": "env:K"}, "questions go to a topic, and not to a webhook"),
    "no topic": (BUS | {"results_to": "memory://here"}, "it is memory://NAME/TOPIC"),
    "no such dedup store": (BUS | {"dedup": "ftp://me:hunter2@x/y"}, "No dedup store understands 'ftp://***@x/y'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_refused_before_anything_runs(call, case):
    from intentlog.effector.replica import prepare

    given, text = WRONG[case]
    with pytest.raises(SettingsRefused) as refused:
        prepare({"registry": "tools:TOOLS", **given})
    assert not any("hunter3" in each for each in refused.value.problems)
    assert 2 == refused.value.exit_code
    (problem, *_) = [each for each in refused.value.problems if text in each]
    assert "hunter2" not in problem


def test_a_variable_is_read_and_a_flag_outranks_it(call):
    assert "'x' must be a whole number" in call(EFFECTOR_LEASE_MS="x").stderr
    assert "'y' must be a whole number" in call("--lease-ms", "y", EFFECTOR_LEASE_MS="x").stderr
    assert "'x' must" not in call("--lease-ms", "y", EFFECTOR_LEASE_MS="x").stderr


def test_a_log_that_is_not_there_is_no_fault_of_the_configuration(call):
    done = call("--registry", "tools:TOOLS", "--log", "sqlite:///gone.db")
    assert (3, True) == (done.exit_code, "gone.db" in done.stderr)


def test_tools_that_name_no_timeout_get_the_one_that_is_told(call):
    from intentlog.effector.tool_registry import load_registry

    timeouts = {each.name: each.timeout for each in load_registry("tools:TOOLS", timedelta(seconds=7)).tools}
    assert {timedelta(seconds=7)} == set(timeouts.values())
    assert [timedelta(minutes=10)] == [each.timeout for each in load_registry("tools:SLOW", timedelta(seconds=7)).tools]


def test_keys_are_named_as_everywhere_else(call, tmp_path):
    """By an absolute path, a relative one, a variable; never by themselves."""
    for reference in (f"file:{tmp_path}/keys", "file:keys", "file:./a folder/keys", "env:KEYS"):
        settings, problems = Settings.read({"registry": "tools:TOOLS", "signing_keys": reference})
        assert ([], reference) == (problems, settings.signing_keys)
    for secret in ("hunter2", "hunter2:" + "00" * 32, "file:", "env:"):
        (problem,) = Settings.read({"registry": "tools:TOOLS", "signing_keys": secret})[1]
        assert "must be env:NAME or file:/path" in problem
        assert "hunter2" not in problem


def test_tools_that_outlast_the_lease_are_one_mistake():
    settings, _ = Settings.read({"registry": "tools:TOOLS", "lease_ms": "1000", "tool_timeout_ms": "5000"})
    timeouts = {f"slow{n}": timedelta(seconds=10 + n) for n in range(7)} | {"usual": timedelta(seconds=5), "quick": timedelta(milliseconds=999)}
    (told,) = settings.tool_problems(timeouts)
    named = ", ".join(f"slow{n}, {10 + n}000 ms" for n in (6, 5, 4, 3, 2))
    assert told.endswith(f"1000 must be more than the timeouts of the tools {named}, and 2 more")
    assert [] == list(settings.tool_problems({"usual": timedelta(seconds=5)}))  # told with the default timeout already


def test_a_registry_that_is_none_is_not_called_an_app(call):
    told = call("--registry", "tools5").stderr
    assert "--registry (EFFECTOR_REGISTRY): 'tools5' names no registry. It must be module:attribute, for example refunds:TOOLS" in told
    assert "app" not in told.replace("an App", "")


def test_whole_numbers_are_taken_as_such():
    settings, problems = Settings.read({"registry": "tools:TOOLS", "lease_ms": 61_000, "grace_ms": 0})
    assert (61_000, 0, []) == (settings.lease_ms, settings.grace_ms, problems)
    for number in (-1, 99, 10**5000):
        (problem,) = Settings.read({"registry": "tools:TOOLS", "lease_ms": number})[1]
        assert "must be a whole number from 100 to 86,400,000" in problem
