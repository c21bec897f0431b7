"""Equal names and contents give equal zips."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import BadZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tributary.artifacts.zips import unpack_zip, write_zip

FILES = st.dictionaries(
    st.from_regex(r"[a-z]{1,3}/[a-z]{1,5}\.[a-z]{1,3}", fullmatch=True), st.binary(), max_size=8
)


@given(FILES)
def test_the_bytes_of_a_zip_depend_on_names_and_contents_only(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("zip")
    on_disk: dict[str, Path | bytes] = {}
    for number, (name, content) in enumerate(reversed(files.items())):
        path = folder / str(number)
        path.write_bytes(content)
        path.chmod(0o600)
        os.utime(path, (number, number))
        on_disk[name] = path
    write_zip(folder / "a.zip", files)
    write_zip(folder / "b.zip", on_disk)
    assert (folder / "a.zip").read_bytes() == (folder / "b.zip").read_bytes()

    unpack_zip(folder / "a.zip", folder / "unpacked")
    unpacked = (path for path in (folder / "unpacked").rglob("*") if path.is_file())
    assert {str(path.relative_to(folder / "unpacked")): path.read_bytes() for path in unpacked} == files


def test_damage_in_a_zip_is_noticed_when_it_is_unpacked(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.zip", {"file": b"content" * 100})
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[100] ^= 1
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(BadZipFile):
        unpack_zip(tmp_path / "a.zip", tmp_path / "unpacked")
