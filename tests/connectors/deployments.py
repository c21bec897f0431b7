"""Two deployments of one lake: on one machine and on AWS."""

from __future__ import annotations

from connectors.deployment import (
    ApicurioAccess,
    ConfluentAccess,
    DatabaseAccess,
    Deployment,
    DirectorySecret,
    GlueAccess,
    GlueCatalog,
    JdbcCatalog,
    MskIamKafka,
    PlaintextKafka,
    RegistryAccess,
    S3Endpoint,
    SecretReference,
    SecretsManagerSecret,
)
from connectors.engines.postgres.connector import encrypted, encrypted_on_aws
from connectors.engines.registry import engine_of
from tributary.contract.lake import Lake, parse_lake

LAKE = parse_lake(
    """
    [lake]
    name = "shop"

    [source.web_shop]
    engine = "postgres"
    database = "shop"
    tables = ["public.*", "sales.order_*", "!sales.order_tmp"]
    partitions = 3

    [source.crm]
    engine = "postgres"
    database = "crm"
    tables = ["*.*"]

    [table."web_shop.public.Order Items"]
    key = ["order,id", "line:no", "ł;x"]

    [table."web_shop.sales.order_a"]
    key = ["id"]
    """
)


def local_deployment(lake: Lake = LAKE) -> Deployment:
    return Deployment(
        kafka=PlaintextKafka("127.0.0.1:19092"),
        catalog=JdbcCatalog(
            "jdbc:postgresql://127.0.0.1:5432/catalog",
            "catalog",
            DirectorySecret("/state/secrets", "catalog"),
        ),
        bronze_bucket=lake.names.bronze_bucket,
        s3_endpoint=S3Endpoint("http://127.0.0.1:19000"),
        databases={
            source.name: DatabaseAccess(
                host="127.0.0.1",
                port=5432,
                user=engine_of(source).user(lake, source),
                password=DirectorySecret("/state/secrets", source.name),
                options=encrypted("disable"),
            )
            for source in lake.sources
        },
        hash_salt=DirectorySecret("/state/secrets", "hash-salt") if lake.hashes_columns else None,
        registry=registry_of(lake, "127.0.0.1", DirectorySecret("/state/secrets", "registry")),
    )


def registry_of(lake: Lake, host: str, password: SecretReference) -> RegistryAccess | None:
    """Return a registry of the kind that the lake file names. Only Confluent's asks for a login."""
    match lake.registry and lake.registry.kind:
        case "apicurio":
            return ApicurioAccess(f"http://{host}:8080")
        case "confluent":
            return ConfluentAccess(f"http://{host}:8081", "ann", password)
        case "glue":
            return GlueAccess("eu-west-1", lake.name)
        case _:
            return None


def aws_deployment(lake: Lake = LAKE) -> Deployment:
    return Deployment(
        kafka=MskIamKafka("b-1.example.amazonaws.com:9098"),
        catalog=GlueCatalog("eu-west-1"),
        bronze_bucket=f"{lake.names.bronze_bucket}-123456789012-eu-west-1",
        databases={
            source.name: DatabaseAccess(
                host="db.example.amazonaws.com",
                port=5432,
                user=engine_of(source).user(lake, source),
                password=SecretsManagerSecret(f"{lake.name}/{source.name}", "password"),
                options=encrypted_on_aws("verify-full"),
            )
            for source in lake.sources
        },
        hash_salt=(
            SecretsManagerSecret(f"tributary/{lake.name}/hash-salt", "salt") if lake.hashes_columns else None
        ),
        registry=registry_of(lake, "registry", SecretsManagerSecret(f"{lake.name}/registry", "password")),
    )
