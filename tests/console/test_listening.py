"""A console that is open to a network shows nothing without TLS and the token."""

from __future__ import annotations

import asyncio
import ipaddress
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import FastAPI, Request

from tests.browser.chromium import chromium
from tests.local.landed import wait_until
from tests.ports import free_port
from tributary.console import login
from tributary.console.guard import WithToken
from tributary.console.listening import TOKEN_VARIABLE, Loopback, Network, NetworkUnfit

TOKEN = "0123456789abcdef0123"
HOST = "lake.example.org"
LATER = 9_999_999_999
PAGE = {"accept": "text/html"}
BEARER = {"authorization": f"Bearer {TOKEN}"}


def certificate_files(folder: Path, names: tuple[str, ...], days: int = 1) -> tuple[Path, Path]:
    """Write a certificate for these names that ends after some days, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "console")])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
    )
    if names:
        alternatives = [_general(name) for name in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, private


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """A console's guards, in front of an app with one page, on loopback."""
    names = (HOST, "*.lakes.example.org", "127.0.0.1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TOKEN_VARIABLE, TOKEN)
        files = certificate_files(tmp_path_factory.mktemp("tls"), names)
        found = Network.open("127.0.0.1", free_port(), *files)
        server = uvicorn.Server(
            uvicorn.Config(
                guarded(found),
                host=found.address,
                port=found.port,
                ssl_certfile=found.certificate,
                ssl_keyfile=found.key,
                log_level="error",
            )
        )
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            wait_until(lambda: server.started, "the server")
            yield found
        finally:
            server.should_exit = True
            thread.join()


def guarded(network: Network) -> FastAPI:
    app = FastAPI()
    network.guard(app)

    @app.get("/tables")
    async def page(request: Request) -> dict[str, str]:
        return dict(request.query_params)

    return app


@dataclass
class Browser:
    """A browser that believes the network's certificate, and follows no redirect by itself."""

    network: Network
    session: requests.Session = field(default_factory=requests.Session)

    def ask(self, path: str, method: str = "GET", host: str | None = None, **options: Any) -> Any:
        own = f"{HOST}:{self.network.port}" if host is None else host
        return self.session.request(
            method,
            f"https://127.0.0.1:{self.network.port}{path}",
            headers={"host": own, **options.pop("headers", {})},
            verify=str(self.network.certificate),
            allow_redirects=False,
            timeout=30,
            **options,
        )

    def log_in(self, token: str = TOKEN, path: str = "/login?next=%2Ftables", **headers: str) -> Any:
        return self.ask(path, "POST", data={"token": token}, headers=headers)


@pytest.fixture
def browser(network: Network) -> Browser:
    return Browser(network)


def test_without_the_token_a_person_is_sent_to_the_login_and_a_program_is_refused(browser: Browser) -> None:
    sent = browser.ask("/tables?q=a%26b", headers=PAGE)
    assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Ftables%3Fq%3Da%2526b")
    assert browser.ask("/tables").status_code == 401
    for wrong in ("Bearer", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer größe"):
        assert browser.ask("/tables", headers={"authorization": wrong.encode("latin-1")}).status_code == 401
    assert browser.ask("/tables", headers={"cookie": f"{login.COOKIE}={TOKEN}; a=1; =;"}).status_code == 401


def test_nothing_is_said_without_tls(network: Network) -> None:
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://127.0.0.1:{network.port}/login", timeout=30)


def test_a_program_with_the_token_gets_in(browser: Browser) -> None:
    assert browser.ask("/tables", headers=BEARER).json() == {}


def test_a_person_logs_in_once_and_arrives_where_they_wanted_to_go(browser: Browser) -> None:
    quoted = browser.ask("/table/shop.public.a%3Fb", headers=PAGE).headers["location"]
    assert quoted == "/login?next=%2Ftable%2Fshop.public.a%253Fb"
    wanted = browser.ask("/tables?q=a%26b", headers=PAGE).headers["location"]
    assert browser.ask(wanted).status_code == 200
    answer = browser.log_in(path=wanted)
    assert (answer.status_code, answer.headers["location"]) == (303, "/tables?q=a%26b")
    cookie = answer.headers["set-cookie"].lower()
    for part in ("httponly", "secure", "samesite=lax", f"max-age={login.SECONDS}"):
        assert part in cookie
    assert TOKEN not in cookie
    assert browser.ask(answer.headers["location"], headers=PAGE).json() == {"q": "a&b"}
    browser.ask("/logout")
    assert browser.ask("/tables", headers=PAGE).status_code == 303
    # Whoever is not logged in need not log in to log out.
    assert browser.ask("/logout", headers=PAGE).headers["location"] == "/login"


@pytest.mark.parametrize("token", ["", "x", TOKEN.upper(), TOKEN + " ", "x" * 100_000, "ß"])
def test_a_wrong_token_logs_nobody_in(browser: Browser, token: str) -> None:
    assert browser.log_in(token).status_code == 403
    assert browser.ask("/tables", headers=PAGE).status_code == 303


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", ""])
def test_the_login_leads_to_no_other_site(browser: Browser, wanted: str) -> None:
    assert browser.log_in(path=login.path_to(wanted)).headers["location"] == "/"


def test_only_a_request_for_a_name_of_the_certificate_from_a_page_of_the_console_is_answered(
    browser: Browser,
) -> None:
    port = browser.network.port
    for host in (HOST, f"{HOST}:{port}", HOST.upper(), f"a.lakes.example.org:{port}", "127.0.0.1:443"):
        assert browser.ask("/tables", headers=BEARER, host=host).status_code == 200, host
    for host in ("evil.example", f"{HOST}.evil.example", "lakes.example.org", "10.1.2.4", "127.0.0.1.evil"):
        assert browser.ask("/tables", headers=BEARER, host=host).status_code == 403, host
    for origin in (
        "https://evil.example",
        f"https://{HOST}:9999",
        f"http://{HOST}:{port}",
        "null",
        "http://[",
    ):
        assert browser.log_in(origin=origin).status_code == 403, origin
    assert browser.log_in(origin=f"https://{HOST}:{port}").status_code == 303


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({}, False),
        ({"authorization": f"Bearer {TOKEN}"}, True),
        ({"cookie": f"other=1; {login.COOKIE}={login.session_until(TOKEN, LATER)}"}, True),
        ({"cookie": f"{login.COOKIE}={login.session_until(TOKEN[::-1], LATER)}"}, False),
        ({"cookie": f"{login.COOKIE}={login.session_until(TOKEN, 1_000_000_000)}"}, False),
        ({"cookie": f"{login.COOKIE}={login.session_until(TOKEN, LATER).replace('9', '8')}"}, False),
        ({"cookie": f"{login.COOKIE}=²³.0"}, False),
    ],
)
def test_a_web_socket_needs_the_token_or_the_cookie(
    network: Network, headers: dict[str, str], is_let_in: bool
) -> None:
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})

    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "websocket", "path": "/login", "headers": encoded}
    asyncio.run(WithToken(app, network.token)(scope, receive, send))
    assert sent == ["websocket.accept" if is_let_in else "websocket.close"]


@pytest.mark.slow
def test_a_browser_logs_in(network: Network) -> None:
    with chromium() as browser:
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(f"https://127.0.0.1:{network.port}/tables?q=1")
        for token, shown in (("wrong", "This is not the token."), (TOKEN, '{"q":"1"}')):
            page.get_by_label("The console's token").fill(token)
            page.get_by_role("button", name="Log in").click()
            page.get_by_text(shown).wait_for()


@pytest.mark.parametrize("value", [None, "", "x" * 19])
def test_a_network_needs_a_token_that_nobody_guesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv(TOKEN_VARIABLE)
    else:
        monkeypatch.setenv(TOKEN_VARIABLE, value)
    with pytest.raises(NetworkUnfit, match=r"openssl rand") as error:
        Network.open("0.0.0.0", 8642, *certificate_files(tmp_path, (HOST,)))
    assert not value or value not in str(error.value)


def test_a_certificate_that_browsers_would_refuse_is_refused_at_the_start(tmp_path: Path) -> None:
    certificate, key = certificate_files(tmp_path, (HOST,), days=-1)
    with pytest.raises(NetworkUnfit, match="expired"):
        Network.open("0.0.0.0", 8642, certificate, key)
    with pytest.raises(NetworkUnfit, match="no subject alternative name"):
        Network.open("0.0.0.0", 8642, *certificate_files(tmp_path, ()))
    other = tmp_path / "other"
    other.mkdir()
    _, foreign = certificate_files(other, (HOST,))
    with pytest.raises(NetworkUnfit, match="this key"):
        Network.open("0.0.0.0", 8642, certificate, foreign)
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    locked = other / "locked.pem"
    locked.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"a password"),
        )
    )
    with pytest.raises(NetworkUnfit, match="without a password"):
        Network.open("0.0.0.0", 8642, certificate, locked)
    certificate.write_text("nothing")
    with pytest.raises(NetworkUnfit, match="PEM"):
        Network.open("0.0.0.0", 8642, certificate, key)


def test_the_token_is_in_no_text_of_the_network(network: Network) -> None:
    assert TOKEN not in repr(network)
    assert network.url == f"https://{HOST}:{network.port}"
    for names, url in (
        ((f"*.{HOST}", HOST), f"https://{HOST}:1"),
        (("::1",), "https://[::1]:1"),
        (("*.a",), "https://b:1"),
    ):
        assert Network("b", 1, network.certificate, network.key, names, TOKEN).url == url
    assert (Loopback(8642).address, Loopback(8642).url) == ("127.0.0.1", "http://127.0.0.1:8642")
