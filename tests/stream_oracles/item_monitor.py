import ctypes
from typing import Any

from tests.stream_oracles.panes import panes


def _parse(line: str) -> tuple[int, int] | None:
    fields = line.split(",")
    if len(fields) != 3 or not all(field.isdigit() for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def watched(events: list[dict[str, Any]]) -> Any:
    visits, warnings = [], []
    remembered: dict[int, tuple[int, int]] = {}
    told = [(n, parsed) for n, event in enumerate(events) if (parsed := _parse(event["line"])) is not None]
    readable = [{"time": events[n]["time"], "item": item} for n, (item, _) in told]
    for _, item, places in panes(readable, 5_000, 5_000, lambda one: one["item"]):
        indices = frozenset(told[place][0] for place in places)
        total = ctypes.c_int32(sum(told[place][1][1] for place in places)).value
        visits.append(({"item": item, "visits": total}, indices))
        last, most = remembered.get(item, (None, None))
        if total < 0:
            warnings.append(({"item": item, "visits": total, "warning": "ABNORMAL", "most": most}, indices))
            continue
        if last is not None and total > 1000 * last:
            warnings.append(({"item": item, "visits": total, "warning": "PEAK", "most": most}, indices))
        remembered[item] = (total, max(total, most or 0))
    return {"visits": visits, "warnings": warnings}
