"""The lakes that the checks of the templates go over; most differ from the cheapest one in one thing.

All of them have the same name, so that what a setting does not touch is the same template in each.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from spark_app.jvm.classes_jar import CLASSES_JAR
from stacks.processing.spark_package import JARS_LOCK
from tributary.artifacts.lock import read_lock
from tributary.contract.engines.registry import SOURCES

ACCOUNT = "111122223333"
"""One of AWS's own examples, for settings that name an account."""

_LAKE = """
[lake]
name = "shop"

[source.web]
engine = "postgres"
database = "webshop"
tables = ["public.*"]

[table."web.public.orders"]
deletes = "soft"

[table."web.public.customers"]

[aws]
region = "us-east-1"
"""

_SECRET = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:webshop-debezium-AbCdEf"
_OTHER_SINK = b"an S3 sink of the user's own choice"

SETTINGS = {
    "small": "",
    "production": 'profile = "production"',
    "two-sources": """
[source.billing_system]
engine = "postgres"
database = "billing"
tables = ["public.invoices", "!public.audit"]
""",
    "existing-vpc": """
[aws.network.vpc]
id = "vpc-0123456789abcdef0"
private_subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
zones = ["use1-az1", "use1-az2"]
""",
    "existing-database": f"""
[aws.source.web]
host = "webshop.example.org"
sslmode = "verify-full"
secret = "{_SECRET}"
secret_key = "arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d-0000-1111-2222-3333aaaa5555"
""",
    "sql-server": f"""
[source.erp]
engine = "sqlserver"
database = "ERP"
tables = ["dbo.*"]

[aws.source.erp]
host = "erp.example.org"
secret = "{_SECRET.replace("webshop", "erp")}"
ssl_mode = "verified"
""",
    "three-engines": f"""
[source.crm]
engine = "mysql"
tables = ["crm.*"]

[source.stock]
engine = "mariadb"
tables = ["stock.items"]

[aws.source.crm]
host = "crm.example.org"
ssl_mode = "verified"
secret = "{_SECRET.replace("webshop", "crm")}"

[aws.source.stock]
host = "stock.example.org"
port = 3307
secret = "{_SECRET.replace("webshop", "stock")}"
""",
    "hidden-columns": """
[table."web.public.accounts"]
leave_out = ["ssn"]
mask = ["phone"]
hash = ["email"]
rows = "country = 'DE'"

[bronze]
retention = "90d"
""",
    "avro-in-glue": """
[registry]
kind = "glue"

[source.billing_system]
engine = "postgres"
database = "billing"
tables = ["public.invoices"]
format = "avro"
""",
    "avro-in-confluents-registry": f"""
[registry]
kind = "confluent"
address = "http://registry.example.org:8081"

[source.stock]
engine = "mysql"
tables = ["stock.*"]
format = "avro"

[aws.source.stock]
host = "stock.example.org"
secret = "{_SECRET.replace("webshop", "stock")}"
""",
    "items": f"""
[source.web_items]
engine = "dynamodb"
tables = ["orders"]
stream = "arn:aws:kinesis:us-east-1:{ACCOUNT}:stream/web-items"

[source.web_items.exports]
orders = "s3://shop-exports/daily/AWSDynamoDB/01764000000000-0123abcd"

[source.more_items]
engine = "dynamodb"
tables = ["notes*"]
stream = "more-items"
""",
    "own-items": """
[source.web_items]
engine = "dynamodb"
tables = ["orders", "notes*"]
stream = "web-items"

[aws.items.web_items]
capacity = "provisioned"
shards = 2
retention = "7d"

[aws.items.web_items.tables.orders]
partition_key = "customer"
sort_key = "placed_at"
sort_key_type = "number"

[aws.storage]
encryption = "kms"
""",
    "serverless-kafka": """
[aws.kafka]
kind = "serverless"
""",
    "emr-serverless": """
[aws.processing]
on = "emr-serverless"
""",
    "spot-fleets": """
[aws.processing]
groups = "fleets"
spot = true
""",
    "own-sink": f"""
[aws.connect.sink]
plugin = "own-sink.zip"
sha256 = "{hashlib.sha256(_OTHER_SINK).hexdigest()}"

[aws.connect.sink.config]
"connector.class" = "org.example.S3Sink"
"tasks.max" = "1"
""",
    "kms": """
[aws.storage]
encryption = "kms"
""",
    "deletable": """
on_destroy = "delete"
delete_data_of = "shop"
""",
    "endpoints-and-no-nat": """
[aws.network]
nat_gateways = 0
interface_endpoints = true
""",
    "rotation-without-nat": """
[aws.network]
nat_gateways = 0
interface_endpoints = true

[aws.connect]
rotation_days = 7
""",
    "express-brokers": """
[aws.network]
availability_zones = 3

[aws.kafka]
broker = "express.m7g.large"
replication = 3
min_insync = 2
""",
    "stopped": """
[aws.connect]
running = false
""",
    "serverless-production": """
profile = "production"

[aws.kafka]
kind = "serverless"

[aws.processing]
on = "emr-serverless"
""",
    "existing-kafka": f"""
[aws.kafka.cluster]
arn = "arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/company/0a1b2c3d-0000-1111-2222-3333aaaa5555-7"
bootstrap_servers = "b-1.company.abc.c2.kafka.us-east-1.amazonaws.com:9098"
security_group = "sg-0123456789abcdef0"

[aws.network.vpc]
id = "vpc-0123456789abcdef0"
private_subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
zones = ["use1-az1", "use1-az2"]
""",
    "existing-serverless-kafka": f"""
[aws.kafka]
kind = "serverless"

[aws.kafka.cluster]
arn = "arn:aws:kafka:us-east-1:{ACCOUNT}:cluster/company/0a1b2c3d-0000-1111-2222-3333aaaa5555-s3"
bootstrap_servers = "boot-abc.c3.kafka-serverless.us-east-1.amazonaws.com:9098"
security_group = "sg-0123456789abcdef0"

[aws.network.vpc]
id = "vpc-0123456789abcdef0"
private_subnets = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
zones = ["use1-az1", "use1-az2"]
""",
    "everything-else": f"""
account = "{ACCOUNT}"
protected = true
permissions_boundary = "company-boundary"
tags = {{ "cost-center" = "4711" }}

[aws.bootstrap]
qualifier = "company"
key = "arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d-0000-1111-2222-3333aaaa5555"

[aws.network]
flow_logs = false
admin_host = true

[aws.database]
instance = "db.r7g.large"
readers = 1
demo_schema = true

[aws.kafka]
open_monitoring = true

[aws.storage]
readers = ["arn:aws:iam::{ACCOUNT}:role/analyst"]
lake_formation = true

[aws.processing]
restarts = 0
architecture = "x86_64"
primary = "m7i.xlarge"
core = "m7i.xlarge"
task = ["m7i.xlarge"]

[aws.alarms]
email = "lake@example.org"
budget = 900
""",
    "dbt": """
[aws.dbt]
project = "warehouse"
schedule = "cron(0 5 * * ? *)"

[aws.storage]
lake_formation = true
""",
    "dbt-with-kms": f"""
[aws.bootstrap]
key = "arn:aws:kms:us-east-1:{ACCOUNT}:key/0a1b2c3d-0000-1111-2222-3333aaaa5555"

[aws.storage]
encryption = "kms"

[aws.dbt]
project = "warehouse"
schedule = "rate(12 hours)"
time_zone = "Europe/Berlin"
target = "prod"
commands = ["source freshness", "build --exclude tag:slow"]
time_limit = "30m"
""",
    "aurora-mysql": """
[source.orders]
engine = "mysql"
tables = ["shop.*"]
""",
    "aurora-mysql-in-production": """
profile = "production"

[source.orders]
engine = "mysql"
tables = ["shop.*"]

[table."orders.shop.customers"]
hash = ["email"]

[aws.mysql]
binlog_kept = "5d"
""",
    "rds-sql-server": """
[source.erp]
engine = "sqlserver"
database = "ERP"
tables = ["dbo.*", "!dbo.audit"]
""",
    "rds-sql-server-in-production": """
profile = "production"

[source.erp]
engine = "sqlserver"
database = "ERP"
tables = ["dbo.*"]

[source.web_shop]
engine = "sqlserver"
database = "WebShop"
tables = ["sales.orders"]

[table."erp.dbo.customers"]
hash = ["email"]

[aws.sqlserver]
edition = "enterprise"
storage_max_gb = 100
""",
    "verify": """
[aws.verify]
""",
    "verify-three-engines": f"""
[source.crm]
engine = "mysql"
tables = ["crm.*"]

[table."crm.crm.people"]
hash = ["email"]

[aws.source.crm]
host = "crm.example.org"
secret = "{_SECRET.replace("webshop", "crm")}"
ssl_mode = "verified"

[aws.storage]
encryption = "kms"

[aws.connect]
running = false

[aws.verify]
schedule = "cron(0 * * * ? *)"
time_zone = "Europe/Berlin"
time_limit = "30m"
""",
    "studio": """
[aws.processing]
studio = true

[aws.storage]
encryption = "kms"
lake_formation = true
""",
    "serverless-studio": """
[aws.processing]
on = "emr-serverless"
studio = true
""",
    "quicksight": f"""
[aws.quicksight]
principal = "arn:aws:quicksight:us-east-1:{ACCOUNT}:user/default/analyst"

[aws.storage]
encryption = "kms"
lake_formation = true
""",
}
"""By its name, what a lake's `[aws]` says beside the region."""

_ITEMS_ALONE = """
[lake]
name = "shop"

[source.web_items]
engine = "dynamodb"
tables = ["orders"]
stream = "web-items"

[aws]
region = "us-east-1"
"""

WHOLE_FILES = {
    "mysql-alone": """
[lake]
name = "shop"

[source.orders]
engine = "mysql"
tables = ["shop.*"]

[aws]
region = "us-east-1"
""",
    "sql-server-alone": """
[lake]
name = "shop"

[source.erp]
engine = "sqlserver"
database = "ERP"
tables = ["dbo.*"]

[aws]
region = "us-east-1"
""",
    "items-alone": _ITEMS_ALONE
    + """
[aws.items.web_items.tables.orders]
partition_key = "id"
""",
    "existing-items-alone": _ITEMS_ALONE
    + """
[aws.processing]
on = "emr-serverless"

[aws.network]
nat_gateways = 0
interface_endpoints = true
""",
}
"""Lakes without the source of the others: the whole lake file."""

SETTINGS = {**SETTINGS, **dict.fromkeys(WHOLE_FILES, "")}


def write_lake_file(settings: str, folder: Path) -> Path:
    """A lake file with the settings of this name, and what it points at, in an existing folder."""
    (folder / "own-sink.zip").write_bytes(_OTHER_SINK)
    _write_dbt_project(folder / "warehouse")
    shutil.copytree(Path(__file__).parents[2] / "boards", folder / "boards", dirs_exist_ok=True)
    path = folder / "lake.toml"
    path.write_text(WHOLE_FILES.get(settings, _LAKE + SETTINGS[settings]))
    return path


def _write_dbt_project(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("dbt_project.yml", "profiles.yml", "packages.yml"):
        (folder / name).write_text("{}\n")


def write_assets(folder: Path) -> Path:
    """A folder with files in place of the plugins and the packages: no template holds their bytes."""
    assets = folder / "assets"
    assets.mkdir()
    sources = [f"debezium-connector-{name}" for name in SOURCES]
    of_avro = [f"{name}-avro-{kind}" for name in sources for kind in ("confluent", "glue")]
    for plugin in (*sources, *of_avro, "iceberg-sink"):
        (assets / f"{plugin}-0123456789ab.zip").write_text(plugin)
    for platform in ("linux-amd64", "linux-arm64"):
        (assets / f"tributary-spark-app-{platform}-0123456789ab.zip").write_text(platform)
    (assets / "spark-jars").mkdir()
    for jar in (*(locked.filename for locked in read_lock(JARS_LOCK)["emr"]), CLASSES_JAR):
        (assets / "spark-jars" / jar).write_text(jar)
    return assets
