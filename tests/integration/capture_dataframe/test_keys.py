"""A version keeps the secret that its keys were first hashed under: rotating keys does not break its lineage."""

from provenance_store.model.ids import RecordId, hash_key
from provenance_store.model.keys import KeyRing
from provenance_store.reduction.exact import reduce_messages
from provenance_store.settings import Settings
from provenance_store.transport.recording import RecordingSource
from spark_apps.capture.spark_run import SparkRun
from tests.integration.capture_dataframe.conftest import Capture


def test_lineage_over_a_rotation(capture: Capture, shop: Settings) -> None:
    def write(run: SparkRun) -> None:
        run.read("customers").write("people", key=["customer_id"], personal_key=True)

    def copy(run: SparkRun) -> None:
        people = run.read("people/r1", key=["customer_id"], personal_key=True)
        people.write("copies", key=["customer_id"], personal_key=True)

    old = shop.hmac_key()
    capture(write, "people", run="r1")
    KeyRing(shop).rotate()
    new = shop.hmac_key()
    capture(copy, "copies", run="r2")
    assert shop.recordings is not None
    graphs = {one.account.run: one.graph for one in reduce_messages(RecordingSource(shop.recordings / "headwater.dic"))}
    written, copied = set(graphs["r1"]["output"]), set(graphs["r2"]["input"])
    assert written
    assert copied == written

    def hashed(record: str, secret: bytes) -> bool:
        return any(RecordId.parse(record).hashed_key == hash_key(str(number), secret=secret) for number in range(2000))

    assert hashed(min(written), old)
    assert hashed(min(graphs["r2"]["output"]), new)
