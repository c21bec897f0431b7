"""Unformatted Java is reported, and formatted on request."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tributary.artifacts.java_formatter import NoFormatter, NotFormatted, check_format, format_java


def test_files_that_are_not_formatted_are_named_until_they_are_formatted(tmp_path: Path) -> None:
    formatted, untidy = (tmp_path / name for name in ("Formatted.java", "Untidy.java"))
    formatted.write_text("class Formatted {\n    int number = 1;\n}\n")
    untidy.write_text("class Untidy { int number=1; }\n")

    with pytest.raises(NotFormatted, match=r"^\S*/Untidy\.java: .* not formatted\. Run `python"):
        check_format([formatted, untidy])
    format_java([formatted, untidy])

    check_format([formatted, untidy])
    assert untidy.read_text() == "class Untidy {\n    int number = 1;\n}\n"


def test_java_that_cannot_be_read_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    broken = tmp_path / "Broken.java"
    broken.write_text("class Broken {")
    with pytest.raises(NotFormatted, match=r"Broken\.java:1"):
        format_java([broken])
    assert broken.read_text() == "class Broken {"


def test_a_platform_without_a_formatter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Plan9")
    with pytest.raises(NoFormatter, match=r"found plan9-.*expected one of linux-amd64"):
        check_format([])
