"""Create the certificate of an EMR cluster's nodes: KMS generates a key pair and signs with another key.

EMR reads key and certificate as PEM files from a zip in S3, the only place that has the private key. The zip
is removed with its version, so the bucket keeps no copy of the key. Without an answer, CloudFormation waits
for an hour, so the function answers in every case.
https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-encryption-enable.html
"""

from __future__ import annotations

import base64
import io
import json
import secrets
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3

Event = Mapping[str, Any]

FOLDER = "emr-tls"
VALID_FOR = timedelta(days=3650)
_VERSION = "#"
"""Between an object's key and its version in the id that CloudFormation keeps."""

_CLOCKS_DIFFER_BY = timedelta(hours=1)
_MAX_REASON = 1000

_SHA256_WITH_RSA = bytes.fromhex("06092a864886f70d01010b") + b"\x05\x00"
_COMMON_NAME = bytes.fromhex("0603550403")
_BASIC_CONSTRAINTS = bytes.fromhex("0603551d13")
_KEY_USAGE = bytes.fromhex("0603551d0f")
_EXTENDED_KEY_USAGE = bytes.fromhex("0603551d25")
_ALTERNATIVE_NAMES = bytes.fromhex("0603551d11")
_SERVER_AND_CLIENT = bytes.fromhex("06082b06010505070301") + bytes.fromhex("06082b06010505070302")
"""Encoded object identifiers of X.509 (RFC 5280, RFC 4055)."""

_CRITICAL = b"\x01\x01\xff"
_SIGNS_CERTIFICATES = b"\x03\x02\x02\x04"
_SIGNS_AND_ENCIPHERS_KEYS = b"\x03\x02\x05\xa0"


def handle(event: Event, context: object) -> None:  # noqa: ARG001
    """Handle a request. Lambda calls this function."""
    serve(event, boto3.client("kms"), boto3.client("s3"), _put)


def serve(event: Event, kms: Any, s3: Any, answer: Callable[[str, bytes], None]) -> None:
    """Create a certificate, or remove the one created earlier, and answer the request."""
    failure, physical_id = None, event.get("PhysicalResourceId", event["LogicalResourceId"])
    key, _, version = physical_id.partition(_VERSION)
    properties = event["ResourceProperties"]
    try:
        if event["RequestType"] != "Delete":
            key = f"{FOLDER}/{secrets.token_hex(16)}.zip"
            content = make_zip(kms, properties)
            stored = s3.put_object(Bucket=properties["Bucket"], Key=key, Body=content)
            physical_id = f"{key}{_VERSION}{stored['VersionId']}"
        elif key.startswith(f"{FOLDER}/"):
            # Without the version, a versioned bucket would keep the private key.
            s3.delete_object(Bucket=properties["Bucket"], Key=key, VersionId=version)
    except Exception as error:  # noqa: BLE001
        failure = f"{type(error).__name__}: {error}"[:_MAX_REASON]
        print(failure)
    body = {
        "Status": "SUCCESS" if failure is None else "FAILED",
        "Reason": failure or "",
        "PhysicalResourceId": physical_id,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": {"Object": f"s3://{properties['Bucket']}/{key}"},
    }
    answer(event["ResponseURL"], json.dumps(body).encode())


def make_zip(kms: Any, properties: Mapping[str, str]) -> bytes:
    """Return a zip with the three files that EMR looks for."""
    signer, wildcard = properties["SigningKey"], f"*.{properties['Domain']}"

    def sign(text: bytes) -> bytes:
        signed = kms.sign(
            KeyId=signer, Message=text, MessageType="RAW", SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256"
        )
        signature: bytes = signed["Signature"]
        return signature

    pair = kms.generate_data_key_pair(KeyId=properties["WrappingKey"], KeyPairSpec="RSA_2048")
    authority = certificate(
        properties["Name"],
        properties["Name"],
        kms.get_public_key(KeyId=signer)["PublicKey"],
        [
            _extension(_BASIC_CONSTRAINTS, _sequence(_CRITICAL), is_critical=True),
            _extension(_KEY_USAGE, _SIGNS_CERTIFICATES, is_critical=True),
        ],
        sign,
    )
    of_nodes = certificate(
        wildcard,
        properties["Name"],
        pair["PublicKey"],
        [
            _extension(_KEY_USAGE, _SIGNS_AND_ENCIPHERS_KEYS, is_critical=True),
            _extension(_EXTENDED_KEY_USAGE, _sequence(_SERVER_AND_CLIENT)),
            _extension(_ALTERNATIVE_NAMES, _sequence(_encoded(0x82, wildcard.encode()))),
        ],
        sign,
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("privateKey.pem", _pem("PRIVATE KEY", pair["PrivateKeyPlaintext"]))
        archive.writestr(
            "certificateChain.pem", _pem("CERTIFICATE", of_nodes) + _pem("CERTIFICATE", authority)
        )
        archive.writestr("trustedCertificates.pem", _pem("CERTIFICATE", authority))
    return packed.getvalue()


def certificate(
    subject: str, issuer: str, public_key: bytes, extensions: list[bytes], sign: Callable[[bytes], bytes]
) -> bytes:
    """Return an X.509 certificate in DER. `public_key` is a SubjectPublicKeyInfo in DER."""
    now = datetime.now(UTC)
    to_be_signed = _sequence(
        _encoded(0xA0, b"\x02\x01\x02"),  # version 3
        _encoded(0x02, b"\x01" + secrets.token_bytes(15)),
        _sequence(_SHA256_WITH_RSA),
        _name(issuer),
        _sequence(_time(now - _CLOCKS_DIFFER_BY), _time(now + VALID_FOR)),
        _name(subject),
        public_key,
        _encoded(0xA3, _sequence(*extensions)),
    )
    signature = _encoded(0x03, b"\x00" + sign(to_be_signed))
    return _sequence(to_be_signed, _sequence(_SHA256_WITH_RSA), signature)


def _name(common_name: str) -> bytes:
    attribute = _sequence(_COMMON_NAME, _encoded(0x0C, common_name.encode()))
    return _sequence(_encoded(0x31, attribute))


def _time(moment: datetime) -> bytes:
    """Encode a UTCTime, which RFC 5280 requires before 2050."""
    return _encoded(0x17, f"{moment:%y%m%d%H%M%SZ}".encode())


def _extension(identifier: bytes, value: bytes, *, is_critical: bool = False) -> bytes:
    return _sequence(identifier, _CRITICAL if is_critical else b"", _encoded(0x04, value))


def _sequence(*parts: bytes) -> bytes:
    return _encoded(0x30, b"".join(parts))


def _encoded(tag: int, content: bytes) -> bytes:
    """Encode tag, length and content (ITU-T X.690)."""
    if len(content) < 0x80:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _pem(kind: str, der: bytes) -> str:
    text = base64.encodebytes(der).decode().replace("\n", "")
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])


def _put(url: str, body: bytes) -> None:
    request = urllib.request.Request(url, body, {"Content-Type": ""}, method="PUT")
    with urllib.request.urlopen(request, timeout=30):
        pass
