"""What Airflow is told of us as a provider: hooks, operators, triggers, and the form of our connection."""

from typing import Any

_OPERATORS = ("dics", "gates", "graphs", "health", "ingest", "purge", "reduce", "streams")
_TRIGGERS = ("beside", "goes_on", "reduced")


def get_provider_info() -> dict[str, Any]:
    """Called by Airflow through the entry point `apache_airflow_provider`; imports nothing of ours."""
    return {
        "package-name": "headwater",
        "name": "Headwater",
        "description": "Record-level provenance for a data lake: capture, reduce, merge, ask, purge.",
        "integrations": [{"integration-name": "Headwater", "external-doc-url": "", "tags": ["software"]}],
        "operators": [
            {
                "integration-name": "Headwater",
                "python-modules": [f"headwater_airflow.operators.{name}" for name in _OPERATORS],
            }
        ],
        "hooks": [{"integration-name": "Headwater", "python-modules": ["headwater_airflow.hooks.headwater"]}],
        "triggers": [
            {
                "integration-name": "Headwater",
                "python-modules": [f"headwater_airflow.triggers.{name}" for name in _TRIGGERS],
            }
        ],
        "connection-types": [
            {
                "connection-type": "headwater",
                "hook-class-name": "headwater_airflow.hooks.headwater.HeadwaterHook",
                "hook-name": "Headwater",
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "schema", "login", "port", "extra"],
                    "relabeling": {"password": "Neo4j password"},
                },
                "conn-fields": {
                    "lake": _path("Lake", "The root of the lake; that of the settings where it is left empty."),
                    "home": _path("Home", "Where runs, reduced graphs and secrets are kept."),
                    "config": _path("Settings", "A headwater.toml; that of the environment where it is left empty."),
                },
            }
        ],
    }


def _path(label: str, description: str) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"]}}
