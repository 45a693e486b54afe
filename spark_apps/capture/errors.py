"""What a captured job can be told at the call, besides the library's own errors."""

from provenance_store.errors import InputError


class UnsupportedOperationError(InputError, NotImplementedError):
    """An operation whose dependencies are not known exactly; it is named and refused, never guessed."""

    def __init__(self, operation: str, instead: str = "") -> None:
        advice = instead or "Do that part of the job without capture, and declare its inputs and outputs"
        super().__init__(f"{operation} is not captured: what its outputs depend on is not known here. {advice}.")
