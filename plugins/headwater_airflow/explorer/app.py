"""The explorer's app: its routes put together, and Headwater's errors as answers that say what to do next."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from headwater_airflow.explorer import lineage, page, purging, streams
from provenance_store.errors import (
    AuditError,
    GraphError,
    HeadwaterError,
    InputError,
    SettingsError,
    TransportError,
    UnknownRecordError,
    UnknownRunError,
)

# The first that fits counts, so what is more special stands first.
_STATUSES: tuple[tuple[type[HeadwaterError], int], ...] = (
    (UnknownRecordError, 404),
    (UnknownRunError, 404),
    (InputError, 400),
    (GraphError, 503),
    (TransportError, 503),
    (SettingsError, 503),
    (AuditError, 503),
)


def make_app() -> FastAPI:
    """The app. It has no pages that describe it, which FastAPI would open to everyone."""
    made = FastAPI(title="Headwater explorer", docs_url=None, redoc_url=None, openapi_url=None)
    for router in (lineage.router, streams.router, purging.router, page.router):
        made.include_router(router)
    made.add_exception_handler(HeadwaterError, _tell_error)
    made.add_exception_handler(RequestValidationError, _tell_invalid)
    return made


def _tell_error(_: Request, error: Exception) -> JSONResponse:
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    return JSONResponse({"detail": str(error)}, status)


def _tell_invalid(_: Request, error: Exception) -> JSONResponse:
    """What is wrong with a request, without what was in it: FastAPI's own answer would repeat it."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    told = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
    return JSONResponse({"detail": f"The request cannot be read: {told}."}, 422)


app = make_app()
