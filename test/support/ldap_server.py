"""OpenLDAP's slapd on a loopback address, with some people and groups."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from waiting import wait_for

from ganeti.net import certs

SLAPD = Path("/usr/sbin/slapd")
BASE = "dc=example,dc=com"
#: Simple binds need TLS, so a password that came in the clear would be refused.
_CONF = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile {directory}/cert.pem
TLSCertificateKeyFile {directory}/key.pem
security simple_bind=128
allow bind_anon_cred
database mdb
suffix "{base}"
directory {directory}/data
access to attrs=userPassword by anonymous auth
access to * by users read
"""
_LDIF = """\
dn: {base}
objectClass: dcObject
objectClass: organization
o: Example
dc: example

dn: ou=people,{base}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{base}
objectClass: organizationalUnit
ou: groups

dn: cn=ganeti,{base}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: ganeti
userPassword: daemon-pw

dn: uid=anna,ou=people,{base}
objectClass: inetOrgPerson
uid: anna
cn: Anna
sn: A
userPassword: anna-pw

dn: uid=bob,ou=people,{base}
objectClass: inetOrgPerson
uid: bob
cn: Bob
sn: B
userPassword: bob-pw

dn: cn=ops,ou=groups,{base}
objectClass: groupOfNames
cn: ops
member: uid=anna,ou=people,{base}
"""


@dataclass
class LdapServer:
    directory: Path
    process: subprocess.Popen[bytes]
    plain: int
    tls: int

    @property
    def authority(self) -> str:
        return str(self.directory / "cert.pem")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


@contextlib.contextmanager
def serve(directory: Path) -> Iterator[LdapServer]:
    """Run slapd until the end of the block."""
    credential = certs.self_signed("localhost", ["127.0.0.1"])
    (directory / "cert.pem").write_bytes(credential.cert)
    (directory / "key.pem").write_bytes(credential.key)
    (directory / "data").mkdir()
    (directory / "slapd.conf").write_text(_CONF.format(directory=directory, base=BASE))
    conf = ["-f", str(directory / "slapd.conf")]
    subprocess.run(
        ["/usr/sbin/slapadd", *conf], input=_LDIF.format(base=BASE).encode(), check=True, timeout=60
    )
    ports = [_find_port(), _find_port()]
    urls = f"ldap://127.0.0.1:{ports[0]}/ ldaps://127.0.0.1:{ports[1]}/"
    process = subprocess.Popen([SLAPD, *conf, "-h", urls, "-d", "0"])
    made = LdapServer(directory, process, *ports)
    try:
        wait_for(lambda: all(map(_is_open, ports)), "slapd listens", 60)
        yield made
    finally:
        made.stop()


def _find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
