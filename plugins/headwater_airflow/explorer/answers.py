"""How answers are given."""

from typing import Any

import msgspec
from fastapi import Response


def as_json(told: Any) -> Response:
    """An answer of this moment, which no proxy keeps for the next user."""
    return Response(msgspec.json.encode(told), media_type="application/json", headers={"Cache-Control": "no-store"})
