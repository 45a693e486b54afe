import importlib
import json
import tomllib
from pathlib import Path

import airflow
import jsonschema
from airflow.sdk import BaseOperator

from headwater_airflow.provider import get_provider_info

CHECKOUT = Path(__file__).parents[3]


def test_it_is_what_airflow_expects_of_a_provider() -> None:
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_everything_that_it_names_is_there() -> None:
    info = get_provider_info()
    for kind in ("operators", "hooks", "triggers"):
        for module in info[kind][0]["python-modules"]:
            importlib.import_module(module)
    module, _, name = info["connection-types"][0]["hook-class-name"].rpartition(".")
    hook = getattr(importlib.import_module(module), name)
    assert hook.conn_type == info["connection-types"][0]["connection-type"]
    folder = CHECKOUT / "plugins" / "headwater_airflow" / "operators"
    told = {module.rpartition(".")[2] for module in info["operators"][0]["python-modules"]}
    assert told == {path.stem for path in folder.glob("*.py")} - {"__init__", "base"}


def test_airflow_finds_it_and_the_loader_of_plugins_does_not() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    declared = project["entry-points"]["apache_airflow_provider"]["provider_info"]
    module, _, name = declared.partition(":")
    assert getattr(importlib.import_module(module), name) is get_provider_info
    assert get_provider_info()["package-name"] == project["name"]
    assert "headwater_airflow/**" in (CHECKOUT / "plugins" / ".airflowignore").read_text()


def test_templated_fields_are_fields_and_arguments_have_names() -> None:
    for module in get_provider_info()["operators"][0]["python-modules"]:
        for operator in vars(importlib.import_module(module)).values():
            if isinstance(operator, type) and issubclass(operator, BaseOperator) and operator.__module__ == module:
                code = operator.__init__.__wrapped__.__code__  # type: ignore[attr-defined]
                assert code.co_argcount <= 1, operator
