"""The DynamoDB tables of one source, and the Kinesis data stream to which they send their changes."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.base import TributaryStack
from stacks.checks.findings import acknowledge, skip
from tributary.contract.aws_items import KeyType, OwnItems, OwnItemTable
from tributary.contract.item_stream import ItemStream

_HOUR = 3600


class ItemStreamAndTables(Construct):
    """A stream of the lake's own, and tables that send every change of an item to it.

    key  encrypts both; None: AWS's own keys do
    """

    def __init__(
        self, stack: TributaryStack, source: str, stream: ItemStream, own: OwnItems, key: kms.IKey | None
    ) -> None:
        super().__init__(stack, f"Items-{source}")
        self._stack, self._key = stack, key
        is_provisioned = own.capacity == "provisioned"
        self.stream = kinesis.Stream(
            self,
            "Stream",
            stream_name=stream.name,
            stream_mode=kinesis.StreamMode.PROVISIONED if is_provisioned else kinesis.StreamMode.ON_DEMAND,
            shard_count=own.shards or 1 if is_provisioned else None,
            retention_period=Duration.hours(int(own.retention.total_seconds()) // _HOUR),
            encryption=kinesis.StreamEncryption.MANAGED if key is None else kinesis.StreamEncryption.KMS,
            encryption_key=key,
            removal_policy=stack.of_data,
        )
        if key is not None:
            acknowledge(self.stream, _OWN_KEY)
        for name, table in own.tables.items():
            self._add_table(name, table)
        title = source.replace("_", " ").title().replace(" ", "")
        CfnOutput(
            stack,
            f"{title}Stream",
            description=f"The stream to which the tables of source {source} send their changes",
            value=self.stream.stream_arn,
        )

    def _add_table(self, name: str, own: OwnItemTable) -> None:
        encryption = dynamodb.TableEncryption
        table = dynamodb.Table(
            self,
            f"Table-{name}",
            table_name=name,
            partition_key=_attribute(own.partition_key, own.partition_key_type),
            sort_key=None if own.sort_key is None else _attribute(own.sort_key, own.sort_key_type),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=encryption.DEFAULT if self._key is None else encryption.CUSTOMER_MANAGED,
            encryption_key=self._key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=self._stack.aws.protected,
            kinesis_stream=self.stream,
            # Otherwise two changes of an item within a millisecond have the same time.
            kinesis_precision_timestamp=dynamodb.ApproximateCreationDateTimePrecision.MICROSECOND,
            removal_policy=self._stack.of_data,
        )
        acknowledge(table, _BACKED_UP)
        if self._key is None:
            skip(table, {"CKV_AWS_119": _DYNAMODB_KEY})


def _attribute(name: str, kind: KeyType) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType[kind.upper()])


_OWN_KEY = {
    "AwsSolutions-KDS3": "A key of the account encrypts the stream, because [aws.storage].encryption is "
    '"kms". The rule would have AWS\'s own key, which costs less.'
}
_DYNAMODB_KEY = (
    'AWS\'s own keys encrypt the table, because [aws.storage].encryption is "s3". With "kms", a key of the '
    "account encrypts it."
)
_BACKED_UP = {
    f"{pack}-DynamoDBInBackupPlan": "The table can be restored to any second of the last 35 days "
    "(point-in-time recovery)."
    for pack in ("NIST.800.53.R5", "HIPAA.Security")
}
