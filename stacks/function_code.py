"""The code of a function with pinned packages, and reasons that functions of custom resources share."""

from __future__ import annotations

import shutil
from pathlib import Path

from tributary.artifacts.pip import LAMBDA, fetch_wheels
from tributary.artifacts.zips import unpack_zip

ONE_CALL = "CloudFormation calls it once in a deployment, so there are never two calls at a time."
NO_CALL_LOST = (
    "The function answers CloudFormation in every case, and a failure fails the deployment. No call is lost."
)


def write_code(function: Path, folder: Path) -> None:
    """Write the code to an empty folder: `main.py` and the wheels of `requirements.txt` in `function`."""
    shutil.copyfile(function / "main.py", folder / "main.py")
    for wheel in fetch_wheels(function / "requirements.txt", LAMBDA):
        unpack_zip(wheel, folder)
