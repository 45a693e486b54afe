"""The table of local services."""

from collections.abc import Iterable

from provenance_store.errors import InputError
from provenance_store.services.airflow import Airflow
from provenance_store.services.hadoop import Hadoop
from provenance_store.services.kafka import Kafka
from provenance_store.services.neo4j import Neo4j
from provenance_store.services.service import Service
from provenance_store.settings import Settings

SERVICES: dict[str, type[Service]] = {service.name: service for service in (Kafka, Neo4j, Hadoop, Airflow)}
DEFAULT = (Kafka.name, Neo4j.name)


def services(settings: Settings, names: Iterable[str] = ()) -> list[Service]:
    """The services of these names, each once, in the table's order; all of them without names."""
    wanted = set(names)
    if unknown := sorted(wanted - set(SERVICES)):
        raise InputError(f"There is no service {', '.join(unknown)}. The services are {', '.join(SERVICES)}.")
    return [make(settings) for name, make in SERVICES.items() if not wanted or name in wanted]
