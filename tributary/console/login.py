"""The page on which a person gives the console's token, once for each browser."""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from html import escape
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

PATH = "/login"
COOKIE = "tributary-console"
LOGOUT = "/logout"
SECONDS = 12 * 3600
"""How long a browser stays logged in."""
_LONGEST_FORM = 4096

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · Tributary</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}
body {{ display: grid; place-items: center; min-height: 90vh; margin: 0; }}
form {{ display: grid; gap: 0.75rem; width: min(22rem, 90vw); }}
input, button {{ font: inherit; padding: 0.5rem; }}
p {{ margin: 0; }}
</style>
</head>
<body>
<form method="post">
<h1>Tributary</h1>
<label for="token">The console's token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<p role="alert">{problem}</p>
<button>Log in</button>
</form>
</body>
</html>
"""


def session_until(token: str, end: int) -> str:
    """Return the cookie of a login that ends then, in seconds since 1970, or with the token."""
    signature = hmac.new(token.encode(), f"a login at the console until {end}".encode(), sha256)
    return f"{end}.{signature.hexdigest()}"


def is_session(token: str, cookie: str) -> bool:
    """Tell whether the cookie is of a login that has not ended."""
    end = cookie.partition(".")[0]
    if not (end.isascii() and end.isdecimal() and len(end) < 20 and int(end) > time.time()):
        return False
    return hmac.compare_digest(cookie.encode(), session_until(token, int(end)).encode())


def path_to(wanted: str) -> str:
    """Return the path of the login page that leads on to the wanted page."""
    return f"{PATH}?next={quote(wanted, safe='')}"


def add(app: FastAPI, token: str) -> None:
    """Register the login page."""

    @app.get(PATH)
    async def ask() -> Response:
        return _page("")

    @app.post(PATH)
    async def log_in(request: Request) -> Response:
        given = await _given(request)
        if not hmac.compare_digest(given.encode(), token.encode()):
            return _page("This is not the token.", status=403)
        answer = RedirectResponse(_own_path(request.query_params.get("next", "/")), status_code=303)
        cookie = session_until(token, int(time.time()) + SECONDS)
        # So a link in a chat leads to the page. Forms of other sites are refused by their origin.
        answer.set_cookie(COOKIE, cookie, max_age=SECONDS, secure=True, httponly=True, samesite="lax")
        return answer

    @app.get(LOGOUT)
    async def log_out() -> Response:
        answer = RedirectResponse(PATH, status_code=303)
        answer.delete_cookie(COOKIE, secure=True, httponly=True, samesite="lax")
        return answer


async def _given(request: Request) -> str:
    """Return the form's token. A form that is too long has none."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _LONGEST_FORM:
            return ""
    return parse_qs(content.decode("utf-8", "replace")).get("token", [""])[0]


def _own_path(wanted: str) -> str:
    """Return the path if it is one of the console, else the first page."""
    is_own = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if is_own else "/"


def _page(problem: str, status: int = 200) -> Response:
    return HTMLResponse(_PAGE.format(problem=escape(problem)), status_code=status)
