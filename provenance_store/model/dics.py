"""The DICs that are installed: entry points of group `headwater.dics`, each naming the module of one."""

from importlib.metadata import EntryPoint, entry_points

from provenance_store.errors import InputError

_GROUP = "headwater.dics"


def find_dic(name: str) -> EntryPoint:
    """The module of a DIC; an unknown one is an error that names those there are."""
    found = {entry.name: entry for entry in entry_points(group=_GROUP)}
    if name not in found:
        raise InputError(f"There is no DIC {name!r}. There are: {', '.join(sorted(found)) or 'none'}.")
    return found[name]
