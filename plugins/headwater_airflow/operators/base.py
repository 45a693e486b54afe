"""What all our operators share: their connection, and which errors are worth another try."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from airflow.sdk import Asset, BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from headwater_airflow.hooks.headwater import HeadwaterHook
from provenance_store.errors import InputError, SettingsError


@contextmanager
def failing_plainly() -> Iterator[None]:
    """What a person has to mend is not tried again; the rest, a broker that is away for one, is for a retry."""
    try:
        yield
    except (InputError, SettingsError) as error:
        raise AirflowFailException(str(error)) from error


class HeadwaterOperator(BaseOperator):
    """A task of Headwater. Subclasses say what they do in `run`, with a hook that is built when the task runs."""

    template_fields: Sequence[str] = ("headwater_conn_id",)
    ui_color: ClassVar[str] = "#d7ecef"

    def __init__(self, *, headwater_conn_id: str = HeadwaterHook.default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.headwater_conn_id = headwater_conn_id

    def execute(self, context: Context) -> Any:
        """Do it."""
        with failing_plainly():
            return self.run(context, HeadwaterHook(self.headwater_conn_id))

    def tell_outlets(self, context: Context, references: Iterable[str]) -> None:
        """Tell each outlet that is an asset of the lake which version is new, so that whoever it starts reads that."""
        written = {reference.partition("/")[0]: reference for reference in references}
        for outlet in self.outlets:
            if isinstance(outlet, Asset) and outlet.name in written:
                context["outlet_events"][outlet].extra = {"version": written[outlet.name]}

    @abstractmethod
    def run(self, context: Context, hook: HeadwaterHook) -> Any:
        """What the task does; what it returns is small, and holds neither secrets nor data."""
