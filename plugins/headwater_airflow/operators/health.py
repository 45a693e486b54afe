"""Looks at the whole lake, one task each: they fail with all that they found, in sentences."""

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Context

from headwater_airflow.hooks.headwater import HeadwaterHook
from headwater_airflow.operators.base import HeadwaterOperator
from provenance_store.health.finding import refuse


class CheckSuitesOperator(HeadwaterOperator):
    """The newest version of every dataset meets the suite that the catalogue names for it."""

    def run(self, context: Context, hook: HeadwaterHook) -> None:
        """Check all of them."""
        from provenance_store.health.datasets import check_newest

        refuse("The suites of the lake", check_newest(hook.settings))


class CheckCompletenessOperator(HeadwaterOperator):
    """The lake graph has all of every run that made a version."""

    def run(self, context: Context, hook: HeadwaterHook) -> None:
        """Compare lake and lake graph."""
        from provenance_store.health.runs import find_incomplete

        with hook.get_conn() as graph:
            refuse("The provenance of the lake", find_incomplete(hook.settings, graph))


class CheckEndedOperator(HeadwaterOperator):
    """Every run that began longer ago has ended."""

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "hours")

    def __init__(self, *, hours: float = 24.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.hours = hours

    def run(self, context: Context, hook: HeadwaterHook) -> None:
        """Look for those that have not."""
        from provenance_store.health.runs import find_unended

        refuse("The runs of the lake", find_unended(hook.settings, hours=float(self.hours)))


class CheckRetentionOperator(HeadwaterOperator):
    """No run is kept in the lake graph for longer than the setting `retention.days`."""

    def run(self, context: Context, hook: HeadwaterHook) -> None:
        """Look for those that are; pruning them is for a person, or a DAG of your own."""
        from provenance_store.health.runs import find_overdue

        with hook.get_conn() as graph:
            refuse("The retention of the lake graph", find_overdue(hook.settings, graph))


class CheckStreamsOperator(HeadwaterOperator):
    """No stream job stands still, drops more than a share of what comes, or tells more live than is followed."""

    template_fields: Sequence[str] = (*HeadwaterOperator.template_fields, "minutes", "share", "most_behind")

    def __init__(
        self, *, minutes: float = 60.0, share: float = 0.01, most_behind: int = 100_000, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.minutes = minutes
        self.share = share
        self.most_behind = most_behind

    def run(self, context: Context, hook: HeadwaterHook) -> None:
        """Look at all runs of stream queries."""
        from provenance_store.health.streams import check_streams

        found = check_streams(
            hook.settings, minutes=float(self.minutes), share=float(self.share), most=int(self.most_behind)
        )
        refuse("The stream jobs of the lake", found)
