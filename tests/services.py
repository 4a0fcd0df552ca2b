"""A PostgreSQL server, an S3 server and a browser for the tests, on this machine and stopped with them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

PASSWORD = "not-to-be-shown-4711"


@dataclass(frozen=True)
class Postgres:
    """A running server: SQLAlchemy URLs with the password, and with the variable that holds it."""

    port: int

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://tester:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def url_with(self, variable: str) -> str:
        return f"postgresql+psycopg://tester:${{{variable}}}@127.0.0.1:{self.port}/postgres"


def absent(what: str) -> NoReturn:
    """Skip and say so; in CI it is a failure, so that nothing is left untested unseen."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not installed, and CI must have it")
    pytest.skip(f"{what} is not installed")


def chromium() -> str:
    """The program of a browser."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        absent("Chromium")
    return found


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server with one user and a password, in a folder of its own."""
    programs = _programs()
    if programs is None:
        absent("PostgreSQL")
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    data, secret = folder / "data", folder / "password"
    try:
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres")
            shutil.chown(secret, "postgres")
        options = ["--username=tester", f"--pwfile={secret}", "--auth=scram-sha-256", "--encoding=UTF8"]
        _run([str(programs / "initdb"), f"--pgdata={data}", "--no-sync", "--locale=C", *options], folder)
        port = free_port()
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        control = [str(programs / "pg_ctl"), f"--pgdata={data}", "--wait", f"--log={folder / 'log'}"]
        _run([*control, f"--options={settings}", "start"], folder)
        try:
            yield Postgres(port)
        finally:
            _run([*control, "--mode=immediate", "stop"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder of the server's programs: on the path, or where Debian keeps them."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def _run(command: list[str], folder: Path) -> None:
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    with (folder.parent / f"{folder.name}.out").open("w+") as output:  # a pipe would wait for the server
        done = subprocess.run(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd="/", check=False, timeout=120
        )
        output.seek(0)
        text = output.read()
    (folder.parent / f"{folder.name}.out").unlink()
    assert done.returncode == 0, text


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
