"""A certificate authority of our own, and the certificate of the private server that it signs.

Both are made once, in a private folder. Workers pin the authority by the fingerprint of its certificate.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from meantime.kernel.errors import InvalidInput
from meantime.system.atomic_file import replace_file

from .nats_address import TLS_NAME
from .server_config import ServerTls

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

AUTHORITY_DAYS = 3650
SERVER_DAYS = 825  # more is refused by some clients
MARGIN = timedelta(hours=2)  # a certificate is valid from before now on: clocks of other machines may lag


class CarrierCertificates(Struct, frozen=True):
    """Files of the server's certificate, the authority's certificate, and its SHA-256 fingerprint in hex."""

    server: ServerTls
    ca_file: str
    fingerprint: str


def make_certificates(folder: Path, hosts: Sequence[str], now: datetime) -> CarrierCertificates:
    """Makes the authority if there is none in the folder, and always a new certificate of the server.

    Args:
        folder: Private to its user.
        hosts: Names and addresses that clients of others connect to. Ours look for TLS_NAME: the authority
            signs for this server alone, so its name proves nothing more, and its address may change.
        now: The time, with its zone.
    """
    if importlib.util.find_spec("cryptography") is None:
        raise InvalidInput(
            "TLS needs an extra.", hint="pip install 'meantime[workers]'", code="extra_missing"
        )
    from cryptography.hazmat.primitives import hashes

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority, key = _authority(folder, now)
    _make_server(folder, hosts, authority, key, now)
    tls = ServerTls(str(folder / "server.pem"), str(folder / "server.key"))
    return CarrierCertificates(tls, str(folder / "ca.pem"), authority.fingerprint(hashes.SHA256()).hex())


def valid_until(path: Path) -> datetime:
    """The end of a certificate's life; the first one of a file counts."""
    from cryptography import x509

    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


def _authority(folder: Path, now: datetime) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if (folder / "ca.pem").exists():
        key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Meantime carrier authority")
    certificate = _sign(
        name, name, key, key, now, AUTHORITY_DAYS, x509.BasicConstraints(ca=True, path_length=0)
    )
    _write_key(folder / "ca.key", key)
    replace_file(folder / "ca.pem", _pem(certificate))  # last: with it the pair is there
    return certificate, key


def _make_server(
    folder: Path,
    hosts: Sequence[str],
    authority: x509.Certificate,
    authority_key: EllipticCurvePrivateKey,
    now: datetime,
) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([_host(host) for host in dict.fromkeys((TLS_NAME, *hosts))])
    certificate = _sign(
        _name("Meantime carrier"), authority.subject, key, authority_key, now, SERVER_DAYS,
        x509.BasicConstraints(ca=False, path_length=None), names,
    )  # fmt: skip
    _write_key(folder / "server.key", key)
    # With the authority's own: a worker that joins takes it from here, if it has the pinned fingerprint.
    replace_file(folder / "server.pem", _pem(certificate) + _pem(authority))


def _sign(
    subject: x509.Name,
    issuer: x509.Name,
    key: EllipticCurvePrivateKey,
    signed_with: EllipticCurvePrivateKey,
    now: datetime,
    days: int,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - MARGIN)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signed_with.public_key()), critical=False
        )
    )
    for extension in extensions:
        is_critical = isinstance(extension, x509.BasicConstraints)
        builder = builder.add_extension(extension, critical=is_critical)
    return builder.sign(signed_with, hashes.SHA256())


def _name(common: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _write_key(path: Path, key: EllipticCurvePrivateKey) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    replace_file(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
