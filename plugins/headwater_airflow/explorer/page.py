"""The page itself: what Vite built, served file by file to those who may look."""

from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse

from headwater_airflow.explorer.guards import may_view
from provenance_store.errors import ServiceError

router = APIRouter()

STATIC = Path(__file__).parent / "static"

# The browser itself sees to it that the page loads and tells nothing beyond this server.
_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
# The names of built files hold a hash of what is in them.
_FOR_EVER = "private, max-age=31536000, immutable"


@router.get("/explorer", dependencies=[may_view])
def page() -> FileResponse:
    """The page."""
    if not (STATIC / "index.html").is_file():
        raise ServiceError("The explorer's page is not built: run infra/setup.sh, or install Headwater from its wheel.")
    return FileResponse(
        STATIC / "index.html", headers={"Cache-Control": "no-cache", "Content-Security-Policy": _POLICY}
    )


@router.get("/assets/{name}", dependencies=[may_view])
def asset(name: str) -> FileResponse:
    """A script, a style or the worker that arranges graphs."""
    return _file(f"assets/{name}", _FOR_EVER)


@router.get("/{name}.svg", dependencies=[may_view])
def icon(name: str) -> FileResponse:
    """What stands beside the page's name in Airflow's navigation."""
    return _file(f"{name}.svg", "private, max-age=3600")


def _file(name: str, keep: str) -> FileResponse:
    path = (STATIC / name).resolve()
    if not (path.is_relative_to(STATIC.resolve()) and path.is_file()):
        raise HTTPException(404, "There is no such file.")
    return FileResponse(path, headers={"Cache-Control": keep, "X-Content-Type-Options": "nosniff"})
