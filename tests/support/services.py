"""A PostgreSQL server, an S3 server and a browser for the tests, on this machine and stopped with them."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from support.processes import PATIENCE, Process, run_program, running_program

PASSWORD = "not-to-be-shown-4711"
FOUR_HOURS = 4 * 3600


# What runs until the session ends: see `stop`.
_RUNNING = ExitStack()


def stop() -> None:
    """Stop what was started for a whole session."""
    _RUNNING.close()
    _postgres_port.cache_clear()


@dataclass(frozen=True)
class Postgres:
    """A database of a server: SQLAlchemy URLs with the password, and with the variable that holds it."""

    port: int
    database: str

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}/{self.database}"

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://tester:{PASSWORD}@{self.place}"

    def url_with(self, variable: str) -> str:
        return f"postgresql+psycopg://tester:${{{variable}}}@{self.place}"


def absent(what: str) -> NoReturn:
    """Skip and say so; in CI it is a failure, so that nothing is left untested unseen."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not installed, and CI must have it")
    pytest.skip(f"{what} is not installed")


def require_engine(engine: str) -> None:
    """Skip where the packages of an engine are missing."""
    if engine.startswith("duckdb") and not (find_spec("ibis") and find_spec("duckdb")):
        absent("ibis or duckdb")


def chromium() -> str:
    """The program of a browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        absent("Chromium")
    return program


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def postgres() -> Postgres:
    """An empty database. The server is one for the whole session, started for the first database."""
    programs = _programs()
    if programs is None:
        absent("PostgreSQL")
    psycopg = pytest.importorskip("psycopg")
    port = _postgres_port(programs)
    database = f"tests_{next(_numbers)}"
    with psycopg.connect(
        host="127.0.0.1", port=port, user="tester", password=PASSWORD, dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f"CREATE DATABASE {database} TEMPLATE template0")
    return Postgres(port, database)


_numbers = itertools.count()


@cache
def _postgres_port(programs: Path) -> int:
    """Start a server with one user and a password, in a folder of its own; its port."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    _RUNNING.callback(shutil.rmtree, folder, ignore_errors=True)
    data, secret = folder / "data", folder / "password"
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    secret.write_text(PASSWORD)
    if user is not None:
        shutil.chown(folder, user)
        shutil.chown(secret, user)
    options = ["--username=tester", f"--pwfile={secret}", "--auth=scram-sha-256", "--encoding=UTF8"]
    command: list[str | Path] = [programs / "initdb", "-D", data, "--no-sync", "--locale=C", *options]
    made = run_program(command, cwd=folder, user=user)
    assert made.returncode == 0, made.stderr
    port = free_port()
    # Compiling a query takes ten times as long as running it over so few records.
    settings = ("listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "fsync=off", "jit=off")
    command = [programs / "postgres", "-D", data, "-p", str(port)]
    command += [argument for setting in settings for argument in ("-c", setting)]
    process = _RUNNING.enter_context(
        running_program(command, cwd=folder, user=user, limit=FOUR_HOURS, stop=signal.SIGQUIT)
    )
    _wait_until_ready(data / "postmaster.pid", process)
    return port


def _wait_until_ready(status: Path, process: Process) -> None:
    """The server writes into this file how far it is."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if status.exists() and "ready" in status.read_text():
            return
        time.sleep(0.05)
    raise AssertionError("PostgreSQL did not come up")


def _programs() -> Path | None:
    """The folder of the server's programs: on the path, or where Debian keeps them."""
    initdb = shutil.which("initdb")
    folders = [Path(initdb).parent] if initdb else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def s3() -> Iterator[str]:
    """An S3 server with an empty bucket "tables"; its address."""
    try:
        import boto3
        from moto.server import ThreadedMotoServer
    except ModuleNotFoundError as missing:
        absent(f"moto with its server ({missing.name})")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=address,
            aws_access_key_id="tester",
            aws_secret_access_key=PASSWORD,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="tables")
        yield address
    finally:
        server.stop()
