"""Records of an answer in layers: the starts first, then by the fewest steps from them."""

from provenance_store.graph.answer import Answer


def arrange(answer: Answer) -> list[list[str]]:
    """Every record of the answer and of its edges, once; in a layer, those near the same ones stand side by side."""
    near_of: dict[str, list[str]] = {}
    far_of: dict[str, list[str]] = {}
    for edge in answer.edges:
        near, far = (edge.output, edge.input) if answer.direction == "backward" else (edge.input, edge.output)
        far_of.setdefault(near, []).append(far)
        near_of.setdefault(far, []).append(near)
    layers = [list(dict.fromkeys(answer.start))]
    placed = set(layers[0])
    while layers[-1]:
        places = {record: place for place, record in enumerate(layers[-1])}
        reached = dict.fromkeys(far for near in layers[-1] for far in far_of.get(near, ()) if far not in placed)
        layers.append(sorted(reached, key=lambda record: _middle(near_of[record], places)))
        placed.update(layers[-1])
    # Not every question keeps the edges that lead to its records.
    layers[-1] = [record.id for record in answer.records if record.id not in placed]
    return [layer for layer in layers if layer]


def _middle(near: list[str], places: dict[str, int]) -> float:
    above = [places[record] for record in near if record in places]
    return sum(above) / len(above)
