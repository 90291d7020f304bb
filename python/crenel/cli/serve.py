"""``crenel serve``: a service of programs on encrypted numbers, and its tenants."""

from __future__ import annotations

import enum
import errno
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from crenel.errors import MissingFileError, UnsupportedError

if TYPE_CHECKING:
    from crenel.serve.auth import Auth
    from crenel.serve.settings import Settings

app = typer.Typer(help="Who may use a service: tenants and their tokens.", no_args_is_help=True)
Set = Annotated[
    list[str] | None,  # noqa: UP045 (typer reads it on Python 3.10)
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of docs/guide/serve.md; may be given often."),
]
Data = Annotated[Path, typer.Option(help="Folder of the database, of keys, inputs and results.")]


class EngineName(str, enum.Enum):
    """What runs the workers."""

    ray = "ray"
    local = "local"


def serve(
    programs: Annotated[
        list[str],
        typer.Argument(
            metavar="PROGRAM...",
            help="Files of Program.save, NAME=FILE, or MODULE:ATTRIBUTE: a serve.Function, IntegerFunction.",
        ),
    ],
    device: Annotated[
        str,
        typer.Option(help="Where workers compute: auto (every GPU, or cpu), cuda, cuda:<index>, cpu, ref."),
    ] = "auto",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at.")] = 8400,
    workers: Annotated[int, typer.Option(help="Workers of a device.")] = 1,
    engine: Annotated[
        EngineName, typer.Option(help="ray: Ray Serve; local: processes of this machine, without Ray.")
    ] = EngineName.ray,
    data: Data = Path("crenel-service"),
    page: Annotated[Optional[Path], typer.Option(help="Folder served under /page/.")] = None,  # noqa: UP045
    allow_insecure: Annotated[bool, typer.Option(help="Serve parameters below 128 bits: for tests.")] = False,
    settings: Set = None,
) -> None:
    """Serve programs on encrypted numbers until Ctrl-C."""
    more = [f"data={data}", f"allow_insecure={allow_insecure}", *([f"page={page}"] if page else [])]
    chosen = _settings([*more, *(settings or [])])
    from crenel.serve.engines import Engine, run
    from crenel.serve.observe import to_stderr

    to_stderr()
    run(programs, chosen, device=device, host=host, port=port, workers=workers, engine=Engine(engine.value))


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Of the new tenant.")],
    data: Data = Path("crenel-service"),
    settings: Set = None,
) -> None:
    """A new tenant; prints its token, which is stored only as a hash."""
    print(_auth(data, settings).add(name))


@app.command("token")
def token(
    name: Annotated[str, typer.Argument(help="Of a tenant.")],
    days: Annotated[float, typer.Option(help="How long it is good for; 0: for ever.", min=0)] = 0,
    data: Data = Path("crenel-service"),
    settings: Set = None,
) -> None:
    """One token more; prints it."""
    print(_known(data, settings).token(name, 86400 * days or None))


@app.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(help="Of a tenant.")],
    data: Data = Path("crenel-service"),
    settings: Set = None,
) -> None:
    """Ends all tokens of a tenant; its keys and results stay until their time is over."""
    print(f"{_known(data, settings).revoke(name)} tokens revoked")


@app.command("list")
def show(data: Data = Path("crenel-service"), settings: Set = None) -> None:
    """Names of tenants."""
    for name in _known(data, settings).names():
        print(name)


def _settings(texts: list[str]) -> Settings:
    try:
        import fastapi  # noqa: F401
        import fsspec  # noqa: F401
        import prometheus_client  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            f"a service needs more packages ({error}): pip install 'crenel[serve]'"
        ) from None
    from crenel.serve.settings import Settings

    return Settings.of(texts)


def _auth(data: Path, texts: list[str] | None) -> Auth:
    settings = _settings([f"data={data}", *(texts or [])])
    from crenel.serve.auth import Auth
    from crenel.serve.database import Database

    return Auth(Database(settings.database_url), settings)


def _known(data: Path, texts: list[str] | None) -> Auth:
    """Of a service that is there: MissingFileError where opening its database would make an empty one."""
    settings = _settings([f"data={data}", *(texts or [])])
    from sqlalchemy import make_url

    url = make_url(settings.database_url)
    file = url.database if url.get_backend_name() == "sqlite" else None
    if file and not file.startswith((":", "file:")) and not Path(file).is_file():
        raise MissingFileError(
            f"{file}: no such file, expected the database of a service, which crenel serve and crenel tenant "
            "add make",
            {"errno": errno.ENOENT, "filename": file},
        )
    return _auth(data, texts)
