import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.history.summary import summarize
from harness.model.history import Summary
from harness.model.run import Machine
from tests.factories import cells, rounds, run
from tests.lacking import ALL, lacking

ROOT = Path(__file__).parents[2]


@pytest.fixture
def night() -> Summary:
    """A run of four cells in two environments, the last of which takes 20 % longer than the reference."""
    planned = cells()
    seconds = {entry: 0.012 if entry == planned[-1] else 0.01 for entry in planned}
    of_night = run(planned, controlled=True, machine=Machine("m-00000001", "lab"), kit="c0ffee", own={"step": "ab12"})
    return summarize(Results(of_night, rounds(seconds, 5, 0.002, 1)))


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The DSN of a PostgreSQL server: HARNESS_TEST_POSTGRES, else one that lives as long as the tests."""
    named = os.environ.get("HARNESS_TEST_POSTGRES")
    if named:
        yield named
        return
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        lacking("PostgreSQL is not installed: .ci/postgres does so", ALL)
    script = str(ROOT / ".ci" / "postgres")
    dsn = subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    yield dsn
    subprocess.run([script, "stop", dsn], check=True)


@pytest.fixture
def postgres(server: str) -> Iterator[str]:
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield psycopg.conninfo.make_conninfo(server, dbname=name)
        connection.execute(f"DROP DATABASE {name}".encode())
