"""The certificate of a cluster's nodes: signed by a key that stays in KMS, and in S3 only."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from stacks.functions.certificate.main import FOLDER, serve

PROPERTIES = {
    "Bucket": "shop-artifacts",
    "Domain": "eu-west-1.compute.internal",
    "Name": "EMR of tributary-shop",
    "SigningKey": "signing",
    "WrappingKey": "wrapping",
}


def public(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


class Kms:
    """As much of it as is called, with keys of its own."""

    def __init__(self) -> None:
        self.signing = rsa.generate_private_key(65537, 2048)
        self.pair = rsa.generate_private_key(65537, 2048)

    def get_public_key(self, *, KeyId: str) -> dict[str, Any]:  # noqa: N803
        assert KeyId == "signing"
        return {"PublicKey": public(self.signing)}

    def sign(self, *, KeyId: str, Message: bytes, **how: str) -> dict[str, Any]:  # noqa: N803
        assert KeyId == "signing"
        assert len(Message) <= 4096
        assert how == {"MessageType": "RAW", "SigningAlgorithm": "RSASSA_PKCS1_V1_5_SHA_256"}
        return {"Signature": self.signing.sign(Message, PKCS1v15(), SHA256())}

    def generate_data_key_pair(self, *, KeyId: str, KeyPairSpec: str) -> dict[str, Any]:  # noqa: N803
        assert (KeyId, KeyPairSpec) == ("wrapping", "RSA_2048")
        plain = self.pair.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
        return {"PrivateKeyPlaintext": plain, "PublicKey": public(self.pair)}


class S3:
    """A versioned bucket: what is deleted without its version stays as an old one."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> dict[str, str]:  # noqa: N803
        self.objects[f"s3://{Bucket}/{Key}"] = Body
        return {"VersionId": f"version-of-{Key}"}

    def delete_object(self, *, Bucket: str, Key: str, VersionId: str = "") -> None:  # noqa: N803
        if VersionId == f"version-of-{Key}":
            del self.objects[f"s3://{Bucket}/{Key}"]


def request(kind: str, s3: Any, kms: Any, physical_id: str | None = None) -> dict[str, Any]:
    answers: list[bytes] = []
    event = {
        "RequestType": kind,
        "ResponseURL": "https://answer",
        "StackId": "stack",
        "RequestId": "request",
        "LogicalResourceId": "Certificate",
        "ResourceProperties": PROPERTIES,
    }
    if physical_id is not None:
        event["PhysicalResourceId"] = physical_id
    serve(event, kms, s3, lambda _, body: answers.append(body))
    (answer,) = answers
    found: dict[str, Any] = json.loads(answer)
    return found


@pytest.fixture(scope="module")
def kms() -> Kms:
    return Kms()


@pytest.fixture(scope="module")
def files(kms: Kms) -> dict[str, bytes]:
    s3 = S3()
    answer = request("Create", s3, kms)
    assert answer["Status"] == "SUCCESS"
    with zipfile.ZipFile(io.BytesIO(s3.objects[answer["Data"]["Object"]])) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_zip_has_the_files_that_emr_looks_for(files: dict[str, bytes]) -> None:
    assert set(files) == {"privateKey.pem", "certificateChain.pem", "trustedCertificates.pem"}


def test_nodes_are_trusted_by_the_names_that_amazon_s_dns_gives_them(
    files: dict[str, bytes], kms: Kms
) -> None:
    of_nodes, authority = x509.load_pem_x509_certificates(files["certificateChain.pem"])
    (trusted,) = x509.load_pem_x509_certificates(files["trustedCertificates.pem"])
    assert authority == trusted
    of_nodes.verify_directly_issued_by(trusted)
    trusted.verify_directly_issued_by(trusted)
    names = of_nodes.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["*.eu-west-1.compute.internal"]
    private = load_pem_private_key(files["privateKey.pem"], None)
    assert isinstance(private, rsa.RSAPrivateKey)
    assert private.private_numbers() == kms.pair.private_numbers()
    assert of_nodes.public_key() == private.public_key()


def test_only_the_authority_signs_certificates(files: dict[str, bytes]) -> None:
    of_nodes, authority = x509.load_pem_x509_certificates(files["certificateChain.pem"])
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert authority.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert not of_nodes.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_a_certificate_is_valid_now_and_for_ten_years(files: dict[str, bytes]) -> None:
    for one in x509.load_pem_x509_certificates(files["certificateChain.pem"]):
        assert one.not_valid_before_utc < datetime.now(UTC) < one.not_valid_after_utc - timedelta(days=3649)


def test_the_private_key_is_in_no_answer(kms: Kms) -> None:
    answer = json.dumps(request("Create", S3(), kms))
    assert "PRIVATE" not in answer


def test_what_was_made_is_removed_for_good(kms: Kms) -> None:
    s3 = S3()
    made = request("Create", s3, kms)["PhysicalResourceId"]
    assert made.startswith(f"{FOLDER}/")
    assert request("Delete", s3, kms, made)["Status"] == "SUCCESS"
    assert s3.objects == {}


def test_a_renewed_certificate_leaves_no_earlier_key_in_the_bucket(kms: Kms) -> None:
    """CloudFormation removes the former one once the cluster has the new one."""
    s3 = S3()
    former = request("Create", s3, kms)
    renewed = request("Update", s3, kms, former["PhysicalResourceId"])
    assert renewed["PhysicalResourceId"] != former["PhysicalResourceId"]
    assert request("Delete", s3, kms, former["PhysicalResourceId"])["Status"] == "SUCCESS"
    assert s3.objects.keys() == {renewed["Data"]["Object"]}


def test_a_certificate_that_was_never_made_is_no_obstacle_to_removing_it(kms: Kms) -> None:
    assert request("Delete", S3(), kms, "Certificate")["Status"] == "SUCCESS"


def test_a_failure_is_an_answer_with_its_reason() -> None:
    answer = request("Create", S3(), object())
    assert answer["Status"] == "FAILED"
    assert "generate_data_key_pair" in answer["Reason"]
