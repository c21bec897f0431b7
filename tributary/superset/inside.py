"""Prepare Superset's own database, inside Superset's environment: its tables, its roles, and one user.

Superset's command could do so only with the password among its arguments. This script reads it from a file.
"""

import json
import sys
from pathlib import Path


def prepare(secrets: Path) -> None:
    import superset
    from flask_migrate import upgrade
    from superset.app import create_app

    with create_app().app_context():
        upgrade(str(Path(superset.__file__).parent / "migrations"))
        from superset import security_manager
        from superset.extensions import appbuilder

        appbuilder.add_permissions(update_perms=True)
        security_manager.sync_role_definitions()
        login = json.loads(secrets.read_text())
        if security_manager.find_user(login["user"]) is None:
            role = security_manager.find_role("Admin")
            email = f"{login['user']}@localhost"
            security_manager.add_user(login["user"], "Lake", "Owner", email, role, password=login["password"])


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
