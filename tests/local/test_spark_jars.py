"""The jar of the app's own Java classes is reproducible, and a compiler's error or warning is reported."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from spark_app.jvm.classes_jar import CLASSES_JAR
from tributary.artifacts.cache import cache_root, sha256_of
from tributary.artifacts.java_compiler import NotCompiled, compile_jar
from tributary.local.spark_jars import classes_jar


def test_the_same_sources_give_the_same_jar_in_another_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, fetched = classes_jar(), cache_root() / "maven"
    monkeypatch.setenv("TRIBUTARY_CACHE", str(tmp_path / "cache"))
    cache_root().mkdir()
    (cache_root() / "maven").symlink_to(fetched)

    again = classes_jar()

    assert again != first
    assert sha256_of(again) == sha256_of(first)
    assert again.name == CLASSES_JAR
    with ZipFile(again) as jar:
        assert "io/tributary/spark/PayloadReader.class" in jar.namelist()


def test_java_that_does_not_compile_is_reported_with_the_compiler_s_message(tmp_path: Path) -> None:
    sources = tmp_path / "java"
    sources.mkdir()
    (sources / "Thing.java").write_text("class Thing { int number = unknown; }")
    with pytest.raises(NotCompiled, match=r"Thing\.java.*unknown cannot be resolved"):
        compile_jar(tmp_path / "things.jar", sources, ())
    assert not (tmp_path / "things.jar").exists()


def test_a_warning_of_the_compiler_is_an_error(tmp_path: Path) -> None:
    sources = tmp_path / "java"
    sources.mkdir()
    (sources / "Thing.java").write_text("import java.util.List;\nclass Thing { List numbers; }")
    with pytest.raises(NotCompiled, match=r"Thing\.java.*List is a raw type"):
        compile_jar(tmp_path / "things.jar", sources, ())
    assert not (tmp_path / "things.jar").exists()
