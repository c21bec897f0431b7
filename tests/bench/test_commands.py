"""`python -m bench` finds each of its benchmarks, full and quick."""

from __future__ import annotations

from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.benchmarks import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_has_its_settings_and_can_run(name: str) -> None:
    benchmark = BENCHMARKS[name]
    module = import_module(benchmark.module)
    assert callable(module.run)
    for settings in (benchmark.full, benchmark.quick):
        assert settings is None or is_dataclass(getattr(module, settings))


def test_an_unknown_name_gets_the_list_of_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "unknown benchmark: nothing; choose from freshness" in capsys.readouterr().err


def test_an_unusable_folder_is_reported_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SystemExit):
        main(["start", "--against", str(tmp_path / "missing"), "--into", str(tmp_path)])
    assert f"the folder {tmp_path / 'missing'} does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["start", "--into", str(file)])
    assert f"cannot write results to {file}" in capsys.readouterr().err
