"""Servers of this machine, stopped with the tests: PostgreSQL, S3, and those that notices are sent to."""

import itertools
import json
import os
import shutil
import signal
import socket
import socketserver
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs

import pytest

from support.processes import run_program, running_program, wait_until

PASSWORD = "not-to-be-shown-4711"
FOUR_HOURS = 4 * 3600


# What runs until the session ends: see `stop`.
_RUNNING = ExitStack()


def stop() -> None:
    _RUNNING.close()
    _postgres_port.cache_clear()


@dataclass(frozen=True)
class Postgres:
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
    if engine.startswith("duckdb") and not (find_spec("ibis") and find_spec("duckdb")):
        absent("ibis or duckdb")


def chromium() -> str:
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
    status = data / "postmaster.pid"

    def is_ready() -> bool:
        return status.exists() and "ready" in status.read_text()

    wait_until(is_ready, "PostgreSQL did not come up", process)
    return port


def _programs() -> Path | None:
    """The folder of the server's programs: on the path, or where Debian keeps them."""
    initdb = shutil.which("initdb")
    folders = [Path(initdb).parent] if initdb else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def s3() -> Iterator[str]:
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


@dataclass
class Posted:
    """The path, headers and body of each request that arrived at a web server."""

    port: int
    # How it answers, one after the other; the last for ever.
    answers: list[int] = field(default_factory=lambda: [200])
    location: str = ""
    delay: float = 0.0
    body: bytes = b"{}"
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def contents(self) -> list[dict[str, Any]]:
        return [
            json.loads(body)
            if "json" in headers["Content-Type"]
            else {name: values[0] for name, values in parse_qs(body.decode()).items()}
            for _, headers, body in self.requests
        ]


@contextmanager
def notice_server() -> Iterator[Posted]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.requests.append((self.path, dict(self.headers), body))
            time.sleep(posted.delay)
            answer = posted.answers.pop(0) if len(posted.answers) > 1 else posted.answers[0]
            with suppress(OSError):  # of a client that did not wait
                self.send_response(answer)
                if posted.location:
                    self.send_header("Location", posted.location)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(posted.body)))
                self.end_headers()
                self.wfile.write(posted.body)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        posted = Posted(server.server_port)
        with _served(server):
            yield posted


@dataclass
class Mailbox:
    """The logins at a mail server, and each message with its recipients."""

    port: int
    logins: list[str] = field(default_factory=list)
    messages: list[tuple[list[str], str]] = field(default_factory=list)


@contextmanager
def mail_server(certificate: Path, encryption: str, password: str) -> Iterator[Mailbox]:
    """A server that takes e-mail over TLS after a login: from the first byte, or after STARTTLS."""
    from aiosmtpd.controller import Controller
    from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

    class Handler:
        async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
            assert isinstance(envelope.content, bytes)
            mailbox.messages.append((envelope.rcpt_tos, envelope.content.decode("ascii")))
            return "250 taken"

    def log_in(
        server: SMTP, session: Session, envelope: Envelope, way: str, given: LoginPassword
    ) -> AuthResult:
        mailbox.logins.append(given.login.decode())
        return AuthResult(success=given.password.decode() == password, handled=False)

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    from_the_start = encryption == "SSL"
    mailbox = Mailbox(free_port())
    server = Controller(
        Handler(),
        "127.0.0.1",
        mailbox.port,
        ssl_context=tls if from_the_start else None,
        tls_context=None if from_the_start else tls,
        require_starttls=not from_the_start,
        authenticator=log_in,
        auth_required=True,
        auth_require_tls=not from_the_start,
    )
    server.start()
    try:
        yield mailbox
    finally:
        server.stop()


@contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def certificate(folder: Path) -> Path:
    """Return the file of a key and a certificate of this machine, which nobody trusts yet."""
    import trustme

    path, authority = folder / "certificate.pem", trustme.CA()
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(path)
    authority.cert_pem.write_to_path(path, append=True)
    return path
