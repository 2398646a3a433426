"""Over TCP a coordinator speaks gRPC only to those who have a certificate: a token is exchanged for
one by a request over HTTPS, as the command line does it. Key and certificate stay in memory."""

import dataclasses
import datetime
import http.client
import ssl
import urllib.parse

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from assay.config import Endpoint
from assay.errors import ConfigError, Unauthenticated, Unavailable, kind_of_http

_PATH = "/v1/access-certificate"
_RENEW_BEFORE = datetime.timedelta(minutes=5)


@dataclasses.dataclass(frozen=True)
class Certificate:
    certificate_pem: bytes
    key_pem: bytes = dataclasses.field(repr=False)
    ends: datetime.datetime  # UTC

    def is_about_to_end(self) -> bool:
        return self.ends - datetime.datetime.now(datetime.timezone.utc) < _RENEW_BEFORE


def exchange(endpoint: Endpoint, timeout: float) -> Certificate:
    """Unauthenticated: there is no token, or the coordinator does not take it. Unavailable: it does
    not answer, or is not of that CA or name."""
    if not endpoint.token:
        raise Unauthenticated(f"the coordinator at {endpoint.target} asks who you are: give token or token_file")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "assay")])  # the coordinator chooses another
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = _post(endpoint, request.public_bytes(serialization.Encoding.PEM), timeout)
    signed = x509.load_pem_x509_certificate(pem)
    return Certificate(
        pem,
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        _end_of(signed),
    )


def _end_of(certificate) -> datetime.datetime:
    if hasattr(certificate, "not_valid_after_utc"):  # since cryptography 42
        return certificate.not_valid_after_utc
    return certificate.not_valid_after.replace(tzinfo=datetime.timezone.utc)


def _post(endpoint: Endpoint, body: bytes, timeout: float) -> bytes:
    address = urllib.parse.urlsplit(f"//{endpoint.target}")
    if not address.hostname or not address.port:
        raise ConfigError(f"'{endpoint.target}' is not host:port, like coordinator.example.org:7443")
    headers = {"Authorization": f"Bearer {endpoint.token}", "Content-Type": "application/pkcs10"}
    try:
        context = ssl.create_default_context(cadata=endpoint.ca_pem.decode("ascii"))
        connection = http.client.HTTPSConnection(address.hostname, address.port, timeout=timeout, context=context)
        try:
            connection.request("POST", _PATH, body, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"no answer from the coordinator at {endpoint.target}: {error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"unusable CA certificate: {error}") from error
    if response.status != http.client.OK:
        raise kind_of_http(response.status)(text.decode("utf-8", "replace").strip())
    return text
