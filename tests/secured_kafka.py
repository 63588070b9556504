"""A real Kafka with TLS, SCRAM and ACLs: certificates by keytool, users and ACLs by the admin client."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from consumer.embedded import free_port
from tests.services import kafka_cluster

STORE_PASSWORD = "changeit"


@dataclass(frozen=True)
class Acl:
    """`resource`: topic or group; `operation`: read, write, describe, ..."""

    user: str
    resource: str
    name: str
    operation: str

    def __str__(self) -> str:
        return f"{self.name}-{self.operation}"


@dataclass(frozen=True)
class SecuredKafka:
    """`plain` is the administrator's door without TLS, `secured` is SASL_SSL; `ca` signed the broker's certificate, and
    `other_ca` did not."""

    plain: str
    secured: str
    ca: Path
    other_ca: Path

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.plain})

    def add_user(self, name: str, password: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        admin = self.admin()
        asked = admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, info, password.encode())])
        asked[name].result(30)

    def allow(self, acls: Iterable[Acl]) -> None:
        admin = self.admin()
        for future in admin.create_acls([_binding(acl) for acl in acls]).values():
            future.result(30)

    def forbid(self, acl: Acl) -> None:
        admin = self.admin()
        deleted = admin.delete_acls([_filter(acl)])
        assert [len(future.result(30)) for future in deleted.values()] == [1], acl


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(
        ResourceType[acl.resource.upper()], acl.name, ResourcePatternType.LITERAL, f"User:{acl.user}", "*",
        AclOperation[acl.operation.upper()], AclPermissionType.ALLOW,
    )  # fmt: skip


def _filter(acl: Acl) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType[acl.resource.upper()], acl.name, ResourcePatternType.LITERAL, f"User:{acl.user}", "*",
        AclOperation[acl.operation.upper()], AclPermissionType.ALLOW,
    )  # fmt: skip


def _keytool(*arguments: str) -> None:
    command = ["keytool", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def authority(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate authority: its key store, and its certificate as PEM."""
    store, pem = folder / f"{name}.p12", folder / f"{name}.pem"
    secret = ("-storetype", "PKCS12", "-storepass", STORE_PASSWORD)
    _keytool("-genkeypair", "-keystore", str(store), *secret, "-alias", "ca", "-keyalg", "RSA", "-keysize", "2048",
             "-dname", f"CN={name}", "-validity", "30", "-ext", "bc:c")  # fmt: skip
    _keytool("-exportcert", "-keystore", str(store), *secret, "-alias", "ca", "-rfc", "-file", str(pem))
    return store, pem


def broker_store(folder: Path, ca_store: Path, ca: Path) -> Path:
    """The broker's key with a certificate for 127.0.0.1, signed by the authority."""
    store, request, signed = folder / "broker.p12", folder / "broker.csr", folder / "broker.pem"
    secret = ("-storetype", "PKCS12", "-storepass", STORE_PASSWORD)
    _keytool("-genkeypair", "-keystore", str(store), *secret, "-alias", "broker", "-keyalg", "RSA", "-keysize", "2048",
             "-dname", "CN=localhost", "-validity", "30")  # fmt: skip
    _keytool("-certreq", "-keystore", str(store), *secret, "-alias", "broker", "-file", str(request))
    _keytool("-gencert", "-keystore", str(ca_store), *secret, "-alias", "ca", "-infile", str(request), "-outfile",
             str(signed), "-rfc", "-validity", "30", "-ext", "san=ip:127.0.0.1,dns:localhost")  # fmt: skip
    _keytool("-importcert", "-keystore", str(store), *secret, "-alias", "ca", "-file", str(ca), "-noprompt")
    _keytool("-importcert", "-keystore", str(store), *secret, "-alias", "broker", "-file", str(signed))
    return store


@contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """One broker that asks for SCRAM over TLS on one port, and lets the administrator in on another. Nothing is allowed
    that no ACL allows."""
    folder.mkdir(parents=True, exist_ok=True)
    ca_store, ca = authority(folder, "authority")
    _, other_ca = authority(folder, "stranger")
    store = broker_store(folder, ca_store, ca)
    rules = (
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS",
        "allow.everyone.if.no.acl.found=false",
    )
    with kafka_cluster(folder / "k", 1, *rules) as cluster:
        # The start script knows one listener: the second is added to what it wrote.
        cluster.control("stop")
        port = free_port()
        file = folder / "k" / "broker-1.properties"
        lines = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
        secured = f"SECURED://127.0.0.1:{port}"
        lines |= {
            "listeners": f"{lines['listeners']},{secured}",
            "advertised.listeners": f"{lines['advertised.listeners']},{secured}",
            "listener.security.protocol.map": f"{lines['listener.security.protocol.map']},SECURED:SASL_SSL",
            "listener.name.secured.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.secured.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "listener.name.secured.ssl.keystore.type": "PKCS12",
            "listener.name.secured.ssl.keystore.location": str(store),
            "listener.name.secured.ssl.keystore.password": STORE_PASSWORD,
            "listener.name.secured.ssl.key.password": STORE_PASSWORD,
        }
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        cluster.control("restart")
        yield SecuredKafka(cluster.bootstrap, f"127.0.0.1:{port}", ca, other_ca)
