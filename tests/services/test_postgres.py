"""The tests' own PostgreSQL: durable or not as asked, whole after a crash, gone with the session."""

from __future__ import annotations

import psycopg


def test_every_test_gets_an_empty_database_of_its_own(postgres_server, postgres_url):
    other = postgres_server.create_database()
    with psycopg.connect(postgres_url) as connection, psycopg.connect(other) as beside:
        connection.execute("CREATE TABLE kept (number int)")
        connection.commit()
        assert (None,) == beside.execute("SELECT to_regclass('kept')").fetchone()
    postgres_server.drop_database(other)
