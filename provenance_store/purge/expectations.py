"""Great Expectations: whether the records of a version are what the suite of their dataset expects.

The only module that knows it. A suite is JSON as Great Expectations writes it: a name, and a list of expectations, each
a type with its arguments. The result names expectations and columns, never a value.
"""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa

from provenance_store.errors import InputError
from provenance_store.lake.catalogue import Dataset
from provenance_store.lake.columns import columns_of
from provenance_store.lake.contents import all_lines, all_rows, schema_of
from provenance_store.lake.layout import Version


class Checked(msgspec.Struct, frozen=True):
    """How many expectations a suite has, and those that are not met, as sentences."""

    expectations: int
    failed: list[str]


def check_suite(path: Path, version: Version, told: Dataset) -> Checked:
    """Hold all records of a version to the suite in a file."""
    return _check(path, version.dataset, lambda suite: _frame(version, told, suite))


def check_table(path: Path, name: str, table: pa.Table) -> Checked:
    """Hold a table to the suite in a file."""
    return _check(path, name, lambda _: table.to_pandas(types_mapper=pd.ArrowDtype))


def _check(path: Path, name: str, make: Callable[[list[dict[str, Any]]], pd.DataFrame]) -> Checked:
    suite = _read(path)
    logging.getLogger("great_expectations").setLevel(logging.WARNING)  # it tells of every function it has
    # It takes seconds to import, and most purges touch datasets that have no suite.
    import great_expectations as gx  # noqa: PLC0415
    from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: PLC0415

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    try:
        expected = gx.ExpectationSuite(name=name, expectations=suite)
    except Exception as error:  # of many kinds: all mean that it is no suite of theirs
        raise InputError(f"{path} is not a suite of Great Expectations: {error}") from None
    asset = context.data_sources.add_pandas("lake").add_dataframe_asset(name)
    batch = asset.add_batch_definition_whole_dataframe("version").get_batch({"dataframe": make(suite)})
    validated = batch.validate(expected, result_format="BOOLEAN_ONLY")
    failed = [_sentence(result) for result in validated.results if not result.success]
    return Checked(len(validated.results), sorted(failed))


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        match msgspec.json.decode(path.read_bytes()):
            case {"expectations": [*expectations]}:
                return expectations
    except OSError as error:
        raise InputError(f"The suite {path} cannot be read: {error.strerror}.") from None
    except msgspec.DecodeError as error:
        raise InputError(f"The suite {path} is not JSON: {error}.") from None
    raise InputError(f"The suite {path} has no list of expectations.")


def _frame(version: Version, told: Dataset, suite: list[dict[str, Any]]) -> pd.DataFrame:
    """All records of the version, as Arrow columns: those of pandas' own take several times the room."""
    blocks = [block for block in _blocks(version, told) if block.num_rows]
    table = _concat(blocks) if blocks else _no_records(version, told, suite)
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _blocks(version: Version, told: Dataset) -> Iterator[pa.Table]:
    for path in version.files():
        file = version.name_of(path)
        if told.format == "parquet":
            yield from (columns_of(told, batch) for _, batch in all_rows(version, file))
        else:
            for _, lines in all_lines(version, file):
                yield columns_of(told, lines if told.format == "text" else [line for line in lines if line.strip()])


def _concat(blocks: list[pa.Table]) -> pa.Table:
    """One table; a column of JSON that has several types becomes one of texts, as within a block."""
    try:
        return pa.concat_tables(blocks, promote_options="permissive")
    except pa.ArrowTypeError:
        kinds: dict[str, set[pa.DataType]] = {}
        for field in (field for block in blocks for field in block.schema):
            kinds.setdefault(field.name, set()).add(field.type)
        texts = {name for name, found in kinds.items() if not _are_one(found)}
        fields = [
            [field.with_type(pa.string()) if field.name in texts else field for field in block.schema]
            for block in blocks
        ]
        alike = [block.cast(pa.schema(told)) for block, told in zip(blocks, fields, strict=True)]
        return pa.concat_tables(alike, promote_options="permissive")


def _are_one(kinds: set[pa.DataType]) -> bool:
    try:
        pa.unify_schemas([pa.schema([("", kind)]) for kind in kinds], promote_options="permissive")
    except pa.ArrowTypeError:
        return False
    return True


def _no_records(version: Version, told: Dataset, suite: list[dict[str, Any]]) -> pa.Table:
    """A table of no rows, with the columns that the files tell, or else those that the suite speaks of."""
    if told.format == "parquet" and (files := version.files()):
        return schema_of(version, version.name_of(files[0])).empty_table()
    named = (_columns(expectation.get("kwargs") or {}) for expectation in suite)
    names = told.known_columns or dict.fromkeys(name for names in named for name in names)
    return pa.schema([(name, pa.string()) for name in names]).empty_table()


def _columns(kwargs: dict[str, Any]) -> list[str]:
    """The columns that an expectation is about."""
    single = [str(kwargs[name]) for name in ("column", "column_A", "column_B") if name in kwargs]
    return [*single, *map(str, kwargs.get("column_list") or [])]


def _sentence(result: Any) -> str:
    told = result.expectation_config
    columns = _columns(told.kwargs)
    of = f" of {', '.join(columns)}" if columns else ""
    # An expectation that could not be looked at is not met; what went wrong may quote values, so only that is told.
    why = " (it could not be evaluated)" if _was_raised(result.exception_info or {}) else ""
    return f"{told.type}{of}{why}"


def _was_raised(info: dict[str, Any]) -> bool:
    """Great Expectations tells it either once, or for each of its metrics."""
    parts = [info, *(part for part in info.values() if isinstance(part, dict))]
    return any(part.get("raised_exception") is True for part in parts)
