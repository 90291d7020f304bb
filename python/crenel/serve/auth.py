"""Who asks: tokens become tenants, here and nowhere else."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
import uuid
from dataclasses import dataclass

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError

from crenel.errors import AuthenticationError, LimitError, NotFoundError, ParameterError, StateError
from crenel.serve.database import Database, jobs, keys, tenants, tokens, uploads
from crenel.serve.settings import Settings

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PREFIX = "crenel_"  # finds tokens that were published by mistake

KNOWN_S, MOST = 1.0, 10_000  # a revoked token may be good for so long in other processes; tokens remembered
BEARER = (
    sql.select(tenants.c.id, tenants.c.expires.label("tenant_ends"), tokens.c.expires.label("token_ends"))
    .join(tokens, tokens.c.tenant == tenants.c.id)
    .where(tokens.c.hash == sql.bindparam("hash"))
    .where(sql.or_(tokens.c.expires.is_(None), tokens.c.expires > sql.bindparam("now")))
    .where(sql.or_(tenants.c.expires.is_(None), tenants.c.expires > sql.bindparam("now")))
)


@dataclass(frozen=True)
class Tenant:
    """Whose things are asked for: the first argument of all that finds any. Only `Auth` makes one."""

    id: str
    """32 hexadecimal digits; names in logs and metrics are none of its name."""


def hashed(token: str) -> str:
    """How a token is stored. Its 256 random bits need no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


class Auth:
    """Tenants and their tokens."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
        self._known: dict[str, tuple[Tenant, float]] = {}

    def known(self, authorization: str | None) -> Tenant | None:
        """The tenant of a header that was good within the last `KNOWN_S`; None: ask `tenant`."""
        found = self._known.get(authorization or "")
        return found[0] if found is not None and time.time() < found[1] else None

    def tenant(self, authorization: str | None) -> Tenant:
        """Of a header ``Bearer TOKEN``. Raises AuthenticationError, which is one for all reasons."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() == "bearer" and token and len(token) <= 256:
            now = time.time()
            with self._database.reading() as connection:
                found = connection.execute(BEARER, {"hash": hashed(token), "now": now}).one_or_none()
            if found is not None:
                ends = [e for e in (found.tenant_ends, found.token_ends) if e is not None]
                if len(self._known) >= MOST:
                    self._known.clear()
                tenant = Tenant(str(found.id))
                self._known[authorization or ""] = tenant, min([now + KNOWN_S, *ends])
                return tenant
        raise AuthenticationError("a bearer token of this service is needed")

    def add(self, name: str, ttl: float | None = None) -> str:
        """A new tenant; returns its first token, which is stored only as a hash.

        ttl : seconds that both live, None for ever. Raises ParameterError for a name that is none, StateError
        for one that is taken.
        """
        if not NAME.fullmatch(name):
            raise ParameterError(f"{name!r} is no name of a tenant: 1 to 64 of A-Z a-z 0-9 . _ -")
        now = time.time()
        row = {"id": uuid.uuid4().hex, "name": name, "created": now, "expires": now + ttl if ttl else None}
        try:
            with self._database.writing() as connection:
                connection.execute(sql.insert(tenants).values(**row))
        except IntegrityError:
            raise StateError(f"there is a tenant {name!r}", {"name": name}) from None
        return self.token(name, ttl)

    def token(self, name: str, ttl: float | None = None) -> str:
        """One token more of a tenant. Raises NotFoundError."""
        token = PREFIX + secrets.token_urlsafe(32)
        now = time.time()
        with self._database.writing() as connection:
            row = {"hash": hashed(token), "tenant": self._id(connection, name), "created": now}
            connection.execute(sql.insert(tokens).values(**row, expires=now + ttl if ttl else None))
        return token

    def revoke(self, name: str) -> int:
        """Deletes all tokens of a tenant; returns how many. Raises NotFoundError."""
        self._known.clear()
        with self._database.writing() as connection:
            tenant = self._id(connection, name)
            return connection.execute(sql.delete(tokens).where(tokens.c.tenant == tenant)).rowcount

    def names(self) -> list[str]:
        """Of all tenants."""
        with self._database.reading() as connection:
            return list(connection.scalars(sql.select(tenants.c.name).order_by(tenants.c.name)))

    def guest(self) -> tuple[str, str, float]:
        """A tenant that ends by itself: its token, name and end. Raises NotFoundError where guests are not
        let in, LimitError where there were enough within the last hour."""
        most = self._settings.guests
        if most == 0:
            raise NotFoundError("this service has no guests")
        now = time.time()
        recent = sql.select(sql.func.count()).where(
            tenants.c.created > now - 3600, tenants.c.name.startswith("guest-", autoescape=True)
        )
        with self._database.reading() as connection:
            if int(connection.scalar(recent) or 0) >= most:
                raise LimitError(f"{most} guests an hour", {"limit": most, "retry_after": 600})
        name = f"guest-{secrets.token_hex(8)}"
        ttl = self._settings.guest_ttl
        return self.add(name, ttl), name, now + ttl

    def expire(self) -> int:
        """Deletes tokens whose time is over, and tenants whose time is over once they own nothing: what they
        own ends by its own time. Returns how many rows."""
        now = time.time()
        owns = [sql.exists().where(t.c.tenant == tenants.c.id) for t in (jobs, keys, uploads)]
        with self._database.writing() as connection:
            count = connection.execute(sql.delete(tokens).where(tokens.c.expires < now)).rowcount
            ended = sql.delete(tenants).where(tenants.c.expires < now, *(~o for o in owns))
            return count + connection.execute(ended).rowcount

    def _id(self, connection: sql.Connection, name: str) -> str:
        found = connection.scalar(sql.select(tenants.c.id).where(tenants.c.name == name))
        if found is None:
            raise NotFoundError(f"no tenant {name!r}", {"name": name})
        return str(found)
