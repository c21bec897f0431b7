"""Which files may go: just those that no state of the history is read from."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from spark_app.file_slices import FileGroup, outdated_files

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

    @property
    def group(self) -> FileGroup:
        return FileGroup(self.partition, self.file_id)

    @property
    def paths(self) -> set[str]:
        token, folder = "0-21-43", f"{self.partition}/" if self.partition else ""
        logs = {
            f"{folder}.{self.file_id}_{self.instant}.log.{version}_{token}"
            for version in range(1, self.logs + 1)
        }
        return logs | ({f"{folder}{self.file_id}_{token}_{self.instant}.parquet"} if self.has_base else set())


SLICES = st.sets(
    st.builds(
        Slice,
        partition=PARTITIONS,
        file_id=FILE_IDS,
        instant=INSTANTS,
        has_base=st.booleans(),
        logs=st.integers(0, 3),
    )
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
    slices: set[Slice], oldest: int, replaced: frozenset[FileGroup]
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
