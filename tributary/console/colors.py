"""The colors of all pages: text has a contrast of at least 4.5 to 1, by day and in the dark."""

from __future__ import annotations

from nicegui import ui

QUIET_COLOR = "getComputedStyle(document.body).getPropertyValue('--quiet')"
"""JavaScript that returns the color of the class `quiet`, for what is drawn on a canvas."""

_STYLE = """
@layer overrides {
  body {
    --q-primary: #1f5f9e !important;
    --q-positive: #15803d !important;
    --q-negative: #b91c1c !important;
    --q-warning: #a83b06 !important;
    --q-info: #0369a1 !important;
    --q-grey: #5b6472;
    --quiet: #5b6472;
    --chosen: #3f6ea3;
  }
  body.body--dark {
    --q-primary: #8ab8f0 !important;
    --q-positive: #4ade80 !important;
    --q-negative: #fca5a5 !important;
    --q-warning: #fdba74 !important;
    --q-info: #7dd3fc !important;
    --q-grey: #a8b1bf;
    --quiet: #a8b1bf;
  }
  .quiet { color: var(--quiet) !important; }
  .nicegui-link { color: var(--q-primary) !important; }
  .cm-activeLine, .cm-activeLineGutter { background: none !important; }
  .q-header { background: #1d4e89 !important; }
  .q-header, .q-header .nicegui-link { color: #ffffff !important; }
  .q-header [aria-current] { background: var(--chosen) !important; }
  .q-badge--outline, .text-grey { color: var(--q-grey) !important; }
  .body--dark .q-badge:not(.q-badge--outline), .body--dark .bg-primary { color: #101418 !important; }
}
"""
"""`overrides` comes before Quasar's own layer, so its `!important` wins."""


def add() -> None:
    """Let all pages have these colors. Buttons, badges and icons take them from Quasar's variables."""
    ui.add_head_html(f"<style>{_STYLE}</style>", shared=True)
