"""Which files may go: just those that no state of the history is read from."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from spark_app.file_slices import outdated_files

FIRST = 20261121110000000
INSTANTS = st.integers(FIRST, FIRST + 9)


@dataclass(frozen=True)
class Slice:
    folder: str
    file_id: str
    instant: int
    has_base: bool
    logs: int

    @property
    def paths(self) -> set[str]:
        token = "0-21-43"
        logs = {
            f"{self.folder}/.{self.file_id}_{self.instant}.log.{version}_{token}"
            for version in range(1, self.logs + 1)
        }
        return logs | (
            {f"{self.folder}/{self.file_id}_{token}_{self.instant}.parquet"} if self.has_base else set()
        )


SLICES = st.sets(
    st.builds(
        Slice,
        folder=st.sampled_from(["s3a://silver/t", "s3a://silver/t/a=1"]),
        file_id=st.sampled_from(["00000000-a1", "00000001-b2-0"]),
        instant=INSTANTS,
        has_base=st.booleans(),
        logs=st.integers(0, 3),
    )
)
OTHERS = {
    "s3a://silver/t/.hoodie/hoodie.properties",
    f"s3a://silver/t/.hoodie/{FIRST}.deltacommit",
    "s3a://silver/t/.hoodie_partition_metadata",
    "s3a://silver/t/a=1/.hoodie_partition_metadata",
    "s3a://silver/t/.hoodie/archived/.commits_.archive.1_1-0-1",
    "s3a://silver/t/notes.parquet",
}


@given(SLICES, INSTANTS)
def test_a_file_goes_if_no_state_from_the_oldest_on_is_read_from_its_slice(
    slices: set[Slice], oldest: int
) -> None:
    stored = [one for one in slices if one.paths]
    needed: set[str] = set()
    for state in range(oldest, FIRST + 11):
        for group in {(one.folder, one.file_id) for one in stored}:
            theirs = [one for one in stored if (one.folder, one.file_id) == group and one.instant <= state]
            last = max((one.instant for one in theirs), default=None)
            needed |= {path for one in theirs if one.instant == last for path in one.paths}
    every = {path for one in stored for path in one.paths}
    younger = {path for one in stored if one.instant > oldest for path in one.paths}

    assert set(outdated_files(every | OTHERS, str(oldest))) == every - needed - younger
