"""Serve the console's pages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from fastapi import HTTPException, Request, Response
from fastapi.exception_handlers import http_exception_handler
from nicegui import Client, app, ui

from tributary.console import colors
from tributary.console.console import Console
from tributary.console.listening import Listening
from tributary.console.metrics import CONTENT_TYPE, exposition
from tributary.console.pages import alerts, ask, boards, logs, pipeline, quarantine, row, table, tables
from tributary.console.pages.frame import page_frame

_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_RECONNECT = 30.0
"""How long a page may be without its connection before it loads again, and loses what was typed or clicked.

With NiceGUI's three seconds, a browser that Spark keeps from the processor for longer does that."""
_is_over = threading.Event()


def serve(console: Console, listening: Listening, on_start: Callable[[], None]) -> None:
    """Serve the console until a signal ends it. `on_start` is called once it answers."""
    add_routes(console)
    # Uvicorn's lifespan task logs the signal that ends the server as an error, with a traceback.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "CancelledError" not in record.getMessage())
    listening.guard(app)
    app.on_startup(on_start)
    # The first look loads drivers and opens connections, which the first page should not wait for.
    app.on_startup(console.view)
    app.timer(_SECONDS_BETWEEN_LOOKS, lambda: app.shutdown() if _is_over.is_set() else None)
    app.on_shutdown(console.jobs.close)
    ui.run(
        host=listening.address,
        port=listening.port,
        title=f"{console.shown.lake.name} · Tributary",
        dark=None,
        show=False,
        reload=False,
        reconnect_timeout=_SECONDS_TO_RECONNECT,
        show_welcome_message=False,
        binding_refresh_interval=None,  # No page binds values, so nothing has to be compared all the time.
        favicon="🌊",
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )


def stop_serving() -> None:
    """Let `serve` return, from any thread, even before it answers."""
    _is_over.set()


def add_routes(console: Console) -> None:
    """Register all pages, the metrics and the health check."""
    colors.add()
    for page in (pipeline, tables, table, row, quarantine, alerts, logs, ask, boards):
        page.add(console)

    @app.exception_handler(404)
    async def no_such_page(request: Request, error: HTTPException) -> Response:
        if request.url.path.startswith("/_nicegui"):
            return await http_exception_handler(request, error)
        with Client(ui.page(""), request=request) as client, page_frame(console, "No such page"):
            ui.label(f"The console has no page {request.url.path}.").classes("text-lg break-all")
        return client.build_response(request, 404)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(exposition(await console.view()), media_type=CONTENT_TYPE)

    @app.get("/healthz")
    async def health() -> Response:
        view = await console.view()
        state = "well" if view.is_well else "something has to be done: see the page"
        return Response(f"{state}\n", status_code=200 if view.is_well else 503, media_type="text/plain")
