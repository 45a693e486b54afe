"""Tokens: what travels beside a row so that its lineage is known, as columns that Spark moves in the JVM.

A token is a pair of longs: a file with a position in it, or the 128-bit name of a group of records (its first long is
then negative). Where a row depends on many at once, as on a window's frame, it is an array of such pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everyone calls it
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from spark_apps.capture.errors import UnsupportedOperationError

PREFIX = "__headwater_"
# Functions that the Java side registers: the token of a file's address, and a hash under a seed.
FILE, HASH = "headwater_file", "headwater_hash"
_NEGATIVE = -(2**63)
_numbers = count()


@dataclass(frozen=True, slots=True)
class Token:
    """The columns of one token: a pair, or (without `b`) one array of pairs."""

    a: str
    b: str | None = None

    @classmethod
    def pair(cls) -> "Token":
        """A new pair of column names, used by nobody else."""
        number = next(_numbers)
        return cls(f"{PREFIX}a{number}", f"{PREFIX}b{number}")

    @classmethod
    def array(cls) -> "Token":
        """A new array's column name, used by nobody else."""
        return cls(f"{PREFIX}n{next(_numbers)}")

    @property
    def names(self) -> list[str]:
        """Its columns."""
        return [self.a] if self.b is None else [self.a, self.b]

    @property
    def columns(self) -> list[Column]:
        """Its columns, to be given to a tap."""
        return [F.col(name) for name in self.names]

    def renewed(self) -> "Token":
        """A token of the same shape under new names, so that a frame can be joined with itself."""
        return Token.array() if self.b is None else Token.pair()

    def as_array(self) -> Column:
        """As an array of pairs, empty where there is nothing."""
        pairs = "array<struct<a:bigint,b:bigint>>"
        if self.b is None:
            return F.coalesce(F.col(self.a), F.array().cast(pairs))
        pair = F.array(F.struct(F.col(self.a).alias("a"), F.col(self.b).alias("b"))).cast(pairs)
        return F.when(F.col(self.a).isNull(), F.array().cast(pairs)).otherwise(pair)


def token_columns(tokens: Sequence[Token]) -> list[Column]:
    """The columns of all tokens, in order."""
    return [column for token in tokens for column in token.columns]


def token_names(tokens: Sequence[Token]) -> list[str]:
    """The names of all tokens' columns, in order."""
    return [name for token in tokens for name in token.names]


def group_pair(operation: str, keys: Sequence[tuple[Column, DataType]]) -> tuple[Column, Column]:
    """The name of the group that a row belongs to, from its key: rows share it just when Spark groups them."""
    # The hash passes over nulls, so their places are told beside the values; of a single value there is no place.
    first_kind = keys[0][1] if len(keys) == 1 else None
    if first_kind is not None and not isinstance(first_kind, StructType | ArrayType | MapType | VariantType):
        parts = [keys[0][0]]
    else:
        parts = [part for key, kind in keys for part in _hashable(key, kind)] or [F.lit(0)]
    first, second = (F.call_function(HASH, F.lit(f"{operation}/{half}"), *parts) for half in "ab")
    return first.bitwiseOR(F.lit(_NEGATIVE)), second


def _hashable(key: Column, kind: DataType) -> list[Column]:
    if isinstance(kind, StructType):
        fields = [part for field in kind.fields for part in _hashable(key.getField(field.name), field.dataType)]
        return [key.isNull(), *fields]
    if isinstance(kind, ArrayType):
        if isinstance(kind.elementType, ArrayType | StructType | MapType):
            raise UnsupportedOperationError("grouping by an array of arrays or structs", "Group by its parts instead")
        told = F.transform(key, lambda element: F.struct(element.isNull(), element))
        return [key.isNull(), F.size(key), told]
    if isinstance(kind, MapType | VariantType):
        raise UnsupportedOperationError(f"grouping by a {kind.simpleString()}", "Group by its parts instead")
    return [key.isNull(), key]
