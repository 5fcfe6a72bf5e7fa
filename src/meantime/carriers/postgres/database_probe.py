"""A look at the carrier's database with somebody's login, for `meantime doctor`. It changes nothing there."""

from __future__ import annotations

from msgspec import Struct

from .postgres_client import PostgresAddress, check_postgres, close_postgres, connect_postgres

ENCRYPTED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
LOCAL = (
    "SELECT inet_client_addr() IS NULL OR inet_client_addr() <<= '127.0.0.0/8' OR inet_client_addr() = '::1'"
)
POWERFUL = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
READABLE = """
    SELECT coalesce(bool_or(has_table_privilege(c.oid, 'SELECT')), false)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relkind = 'r'
"""


class DatabaseLook(Struct, frozen=True):
    """Attributes:
    problem: Why it could not be connected to; empty: it could.
    is_exposed: The connection goes over a network without TLS.
    is_powerful: The login is a superuser.
    reads_tables: It can read the tables of the carrier.
    """

    problem: str = ""
    is_exposed: bool = False
    is_powerful: bool = False
    reads_tables: bool = False


async def look_at_database(address: PostgresAddress) -> DatabaseLook:
    check_postgres()
    try:
        client = await connect_postgres(address)
    except Exception as problem:  # of the package, or of the way there
        return DatabaseLook(problem=str(problem) or type(problem).__name__)
    try:
        is_encrypted, is_local = await client.fetchval(ENCRYPTED), await client.fetchval(LOCAL)
        return DatabaseLook(
            is_exposed=not is_encrypted and not is_local,
            is_powerful=bool(await client.fetchval(POWERFUL)),
            reads_tables=bool(await client.fetchval(READABLE, address.schema.strip('"'))),
        )
    except Exception as problem:
        return DatabaseLook(problem=str(problem) or type(problem).__name__)
    finally:
        await close_postgres(client)
