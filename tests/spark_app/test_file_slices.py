"""A file may be removed if no state of the history needs it, and some log files may be merged."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from spark_app.hudi.file_slices import FileGroup, LogMerge, log_merges, outdated_files

FIRST = 20261121110000000
PARTITIONS = st.sampled_from(["", "a=1", "a=1/b=2"])
FILE_IDS = st.sampled_from(["00000000-a1", "00000001-b2-0"])
INSTANTS = st.integers(FIRST, FIRST + 9)


@dataclass(frozen=True)
class Slice:
    partition: str
    file_id: str
    instant: int
    has_base: bool
    logs: int
    is_merged: bool = False

    @property
    def group(self) -> FileGroup:
        return FileGroup(self.partition, self.file_id)

    @property
    def paths(self) -> set[str]:
        base_file = f"{self._folder}{self.file_id}_0-21-43_{self.instant}.parquet"
        merged = {self.log_file(0, "0-0-0")} if self.is_merged else set()
        return merged | {*self.log_files} | ({base_file} if self.has_base else set())

    @property
    def log_files(self) -> tuple[str, ...]:
        """The log files in the order in which they were written."""
        return tuple(self.log_file(version, f"0-{10 * version}-0") for version in range(1, self.logs + 1))

    def log_file(self, version: int, write_token: str) -> str:
        return f"{self._folder}.{self.file_id}_{self.instant}.log.{version}_{write_token}"

    @property
    def _folder(self) -> str:
        return f"{self.partition}/" if self.partition else ""


SLICES = st.lists(
    unique_by=lambda one: (one.group, one.instant),
    elements=st.builds(
        Slice,
        partition=PARTITIONS,
        file_id=FILE_IDS,
        instant=INSTANTS,
        has_base=st.booleans(),
        logs=st.sampled_from([0, 1, 2, 12]),
        is_merged=st.booleans(),
    ),
)
OTHERS = {
    ".hoodie/hoodie.properties",
    f".hoodie/{FIRST}.deltacommit",
    ".hoodie_partition_metadata",
    "a=1/.hoodie_partition_metadata",
    ".hoodie/archived/.commits_.archive.1_1-0-1",
    "notes.parquet",
}


@given(SLICES, INSTANTS, st.frozensets(st.builds(FileGroup, PARTITIONS, FILE_IDS)))
def test_a_file_goes_if_no_state_from_the_oldest_on_is_read_from_its_slice(
    slices: list[Slice], oldest: int, replaced: frozenset[FileGroup]
) -> None:
    stored = [one for one in slices if one.paths]
    needed: set[str] = set()
    for state in range(oldest, FIRST + 11):
        for group in {one.group for one in stored} - replaced:
            theirs = [one for one in stored if one.group == group and one.instant <= state]
            last = max((one.instant for one in theirs), default=None)
            needed |= {path for one in theirs if one.instant == last for path in one.paths}
    every = {path for one in stored for path in one.paths}

    assert set(outdated_files(every | OTHERS, str(oldest), replaced)) == every - needed


@given(SLICES, INSTANTS)
def test_the_log_files_of_a_slice_are_merged_once_another_has_superseded_it(
    slices: list[Slice], superseded_before: int
) -> None:
    stored = [one for one in slices if one.paths]
    every = {path for one in stored for path in one.paths}
    superseded = [
        one
        for one in stored
        if any(
            one.group == other.group and one.instant < other.instant < superseded_before for other in stored
        )
    ]

    assert set(log_merges(every | OTHERS, str(superseded_before))) == {
        LogMerge(one.log_file(0, "0-0-0"), one.log_files, one.is_merged)
        for one in superseded
        if one.logs + one.is_merged > 1
    }
