"""Rights that a replica's role in the database lacks: from the start, and taken away in the middle of everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from intentlog.eventlog.postgres.grants import grants
from tests.effector.service.replicas import Replica, World, eventually


class Roles:
    """A log whose roles have what ``eventlog grants`` says."""

    def __init__(self, url: str, folder: Path) -> None:
        self.world, self.url, suffix = World(folder, url), url, url[-6:]
        self.names = {kind: f"{kind}_{suffix}" for kind in ("effector", "reader")}
        self.run(*(f"CREATE ROLE {name} LOGIN" for name in self.names.values()), *grants("intentlog", list(self.names.items())))

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for each in statements:
                connection.execute(each.encode())

    def start(self, kind: str = "effector", *words: str) -> Replica:
        return self.world.start("--log", self.url.replace("//postgres@", f"//{self.names[kind]}@"), *words)


@pytest.fixture
def roles(postgres_url: str, tmp_path: Path) -> Iterator[Roles]:
    made = Roles(postgres_url, tmp_path)
    yield made
    made.world.close()
    made.run(*(f"DROP OWNED BY {name}; DROP ROLE {name}" for name in made.names.values()))


TAKEN = {
    "the right to append": ("REVOKE INSERT ON intentlog.events FROM {role}", "GRANT INSERT ON intentlog.events TO {role}"),
    "the schema": ("REVOKE USAGE ON SCHEMA intentlog FROM {role}", "GRANT USAGE ON SCHEMA intentlog TO {role}"),
    "a table": ("ALTER TABLE intentlog.schedule RENAME TO mislaid", "ALTER TABLE intentlog.mislaid RENAME TO schedule"),
}


@pytest.mark.parametrize("what", TAKEN)
def test_an_outcome_that_is_known_is_kept_until_what_was_taken_away_is_there_again(roles: Roles, what: str):
    """Of tools that are not idempotent: each is called once, and none is UNKNOWN. Not ready meanwhile, and alive."""
    taken, given = (each.format(role=roles.names["effector"]) for each in TAKEN[what])
    world = roles.world
    during = [world.stage(f"k{n}", "gated", name="x") for n in range(4)]
    behind = [world.stage(f"k{n}", name="x") for n in range(4)]
    replica = roles.start()
    eventually(lambda: len(world.ledger()) == 4)
    roles.run(taken)
    world.open_gate()
    eventually(lambda: len(world.ledger("ended")) == 4)
    parts = eventually(lambda: {name: each for name, each in replica.health()["parts"].items() if name == "appends" and "error" in each})
    assert "StoreSchemaError" in parts["appends"]["error"]
    assert (503, 200) == (replica.get("/readyz")[0], replica.get("/healthz")[0])
    roles.run(given)
    eventually(lambda: world.statuses(*during, *behind) == ["OK"] * 8, 60)
    assert sorted([*during, *behind]) == sorted(world.ledger())
    eventually(lambda: replica.get("/readyz")[0] == 200, 60)
    assert 0 == replica.end()


def test_a_role_that_may_only_read_is_refused_at_the_start_with_what_it_lacks(roles: Roles):
    intent = roles.world.stage("k")
    replica = roles.start("reader")
    assert 3 == replica.process.wait(30)
    said = replica.errors.read_text()
    for each in ("INSERT on events", "INSERT, UPDATE on schedule", "INSERT, UPDATE on checkpoints", f"eventlog grants --effector {roles.names['reader']}"):
        assert each in said
    assert ([], [""]) == (replica.lines("serving"), roles.world.statuses(intent))


def test_a_right_that_an_effector_does_not_need_is_not_asked_for(roles: Roles):
    intent = roles.world.stage("k")
    replica = roles.start()
    eventually(lambda: roles.world.statuses(intent) == ["OK"])
    assert 0 == replica.end()
