"""Which instance types EC2 has, as the installed botocore lists them."""

from __future__ import annotations

from functools import cache

import botocore.session
from botocore.model import StringShape


@cache
def ec2_instance_types() -> frozenset[str]:
    """Return all instance types."""
    shape = botocore.session.get_session().get_service_model("ec2").shape_for("InstanceType")
    assert isinstance(shape, StringShape)
    return frozenset(shape.enum)
