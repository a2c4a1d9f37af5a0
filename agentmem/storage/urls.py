"""Database URLs as people write them, and what they become.

PostgreSQL takes what libpq and asyncpg take (`sslmode`, `sslrootcert`, `application_name`,
`statement_timeout` and other server settings), and besides:

- `pool_size` (10): connections an event loop of the worker keeps; a call waits for a free one,
- `pool_timeout` (10): seconds that it waits,
- `connect_timeout` (10): seconds to reach the server,
- `command_timeout` (30): seconds that a statement may take,
- `statement_cache_size=0`: needed behind a pooler in transaction mode (PgBouncer, Supavisor),
- several hosts (`postgresql://user@one:5432,two:5432/name`): the one that takes writes is used.
"""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from agentmem.errors import ConfigurationError

logger = logging.getLogger(__name__)

# Options of libpq that asyncpg would send to the server as settings, which refuses them.
_NOT_ASYNCPG = {
    *("channel_binding", "client_encoding", "fallback_application_name", "gssencmode"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    "tcp_user_timeout",
}


LEASE = {
    "idle_in_transaction_session_timeout": "20s",
    "lock_timeout": "8s",
}
"""The time for which a worker that vanished in the middle of a transaction keeps its locks, and for
which another one waits for a lock. That wait is shorter than an activity on a store may take (10
seconds), so that its error says what it waited for. The activity's retries outlast the lease."""

_KEEPALIVES = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""When the server gives up the connection of a machine that vanished: after 25 seconds."""


@dataclass(frozen=True)
class PostgresAddress:
    """Where a PostgreSQL database is and how to talk to it; its repr shows no secrets.

    Attributes:
        dsn: The URL for asyncpg, credentials included.
        shown: Host and database, for people.
        database: The database's name.
        options: Arguments of `asyncpg.connect`.
        pool_size: Connections an event loop.
        pool_timeout: Seconds to wait for one.
        pooled: Whether a pooler may hand out another server connection at each transaction.
        lease: Settings that each transaction begins with, where the connection does not have them:
            a pooler would refuse them.
    """

    dsn: str
    shown: str
    database: str
    options: dict[str, Any]
    pool_size: int
    pool_timeout: float
    pooled: bool
    lease: dict[str, str]

    def __repr__(self) -> str:
        return f"PostgresAddress({self.shown})"


def is_postgresql(url: str) -> bool:
    """Return whether a URL is PostgreSQL's; which driver it names does not matter."""
    scheme = url.partition("://")[0].partition("+")[0].lower()
    return scheme in {"postgresql", "postgres"}


def sqlite_file(url: str, where: str) -> Path | None:
    """Return the absolute path of a SQLite URL's file, None for a database in memory.

    Args:
        url: `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite://`.
        where: The setting that holds it, for messages.

    Raises:
        ConfigurationError: It is not one.
    """
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0].lower() != "sqlite" or (rest and not rest.startswith("/")):
        raise ConfigurationError(
            f"{where} is neither postgresql://USER:PASSWORD@HOST:5432/DATABASE nor "
            "sqlite:////PATH/memory.db"
        )
    path = unquote(rest[1:].partition("?")[0])
    return Path(path).absolute() if path not in {"", ":memory:"} else None


def postgresql_address(url: str, where: str) -> PostgresAddress:
    """Read a PostgreSQL URL.

    Args:
        url: The URL.
        where: The setting that holds it, for messages: they never show the URL itself.

    Raises:
        ConfigurationError: It is not one.
    """
    if not is_postgresql(url):
        raise ConfigurationError(
            f"{where} is not a PostgreSQL URL; write postgresql://USER:PASSWORD@HOST:5432/DATABASE"
        )
    try:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        hosts = parts.netloc.rpartition("@")[2] or query.get("host", "localhost")
        database = unquote(parts.path[1:])
        # Each one's port, to see that it is one.
        _ = [urlsplit(f"//{host}").port for host in hosts.split(",")]
    except ValueError:
        raise ConfigurationError(f"{where} is not a well-formed URL") from None
    if "," in hosts:
        query.setdefault("target_session_attrs", "read-write")
    own = _Options(query, where)
    options: dict[str, Any] = {
        "timeout": own.number("connect_timeout", 10),
        "command_timeout": own.number("command_timeout", 30),
    }
    pooled = own.number("statement_cache_size", 100) == 0
    if pooled:
        options["statement_cache_size"] = 0
    lease = {name: own.text(name, default) for name, default in LEASE.items()}
    size, wait = int(own.number("pool_size", 10)) or 1, own.number("pool_timeout", 10)
    settings = own.for_asyncpg({} if pooled else _KEEPALIVES | lease)  # what is left is asyncpg's
    return PostgresAddress(
        lease=lease if pooled else {},
        pool_size=size,
        pool_timeout=wait,
        dsn=parts._replace(scheme="postgresql", query=urlencode(settings)).geturl(),
        shown=f"{hosts}/{database}",
        database=database or query.get("dbname", query.get("database", "")),
        options=options,
        pooled=pooled,
    )


class _Options:
    """A URL's query, ours taken out of it one by one."""

    def __init__(self, query: dict[str, str], where: str) -> None:
        self._query = query
        self._where = where

    def number(self, name: str, default: float) -> float:
        text = self._query.pop(name, None)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1e6:
            raise ConfigurationError(f"{self._where}: {name} must be a number, 0 or more")
        return value

    def text(self, name: str, default: str) -> str:
        return self._query.pop(name, default)

    def for_asyncpg(self, defaults: dict[str, str]) -> dict[str, str]:
        query = defaults | self._query
        if ssl := query.pop("ssl", None):
            query.setdefault("sslmode", "require" if ssl == "true" else ssl)
        if ignored := sorted(_NOT_ASYNCPG & set(query)):
            logger.warning("%s: ignored %s, which asyncpg lacks", self._where, ", ".join(ignored))
        return {
            "application_name": "agentmem",
            **{name: value for name, value in query.items() if name not in _NOT_ASYNCPG},
        }
