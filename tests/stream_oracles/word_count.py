from typing import Any

from tests.stream_oracles.panes import panes


def _split(text: str) -> list[str]:
    kept = "".join(letter if letter.isalnum() or letter == "_" else " " for letter in text.lower())
    return kept.split()


def counts(events: list[dict[str, Any]]) -> Any:
    results = []
    for _, _, lines in panes(events, 10_000, 10_000, lambda _: None):
        for word in {word for n in lines for word in _split(events[n]["text"])}:
            having = [n for n in lines if word in _split(events[n]["text"])]
            count = sum(_split(events[n]["text"]).count(word) for n in having)
            results.append(({"word": word, "count": count}, frozenset(having)))
    return {"counts": results}


def found(events: list[dict[str, Any]]) -> Any:
    return {
        "found": [
            ({"word": word, "time": line["time"]}, frozenset([n]))
            for n, line in enumerate(events)
            for word in _split(line["text"])
            if word in {"flood", "outage", "strike"}
        ]
    }
