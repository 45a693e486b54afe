"""`python -m provenance_store.reduction.warm`: compile the kernels now, so that the first reduction need not wait."""

from provenance_store.model.document import write_document
from provenance_store.model.message import Headers, Message
from provenance_store.reduction.exact import reduce_messages
from provenance_store.reduction.local import reduce_locally
from provenance_store.transport.port import Received


def warm_up() -> None:
    """Reduce one execution in both ways, which calls every kernel."""
    value = write_document("warm", [("used", "run:f", "lake:a"), ("wasGeneratedBy", "lake:b", "run:f")])
    message = Message.of(Headers("warm", "warm", "a", 0), value)
    reduce_messages([Received(message, 0, 0)])
    reduce_locally([message], [0]).names()


if __name__ == "__main__":
    warm_up()
