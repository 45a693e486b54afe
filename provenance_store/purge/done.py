"""What was done to one version of a dataset: counts, as the journal keeps them and the certificate tells them."""

import msgspec


class StepDone(msgspec.Struct, frozen=True, kw_only=True):
    """How many records of a version were taken out, emptied of fields, made anew, made anew to nothing, and added."""

    dataset: str
    version: str
    deleted: int = 0
    redacted: int = 0
    recomputed: int = 0
    vanished: int = 0
    appended: int = 0

    @property
    def grown(self) -> int:
        """By how many records the version grew, or shrank."""
        return self.appended - self.deleted - self.vanished
