"""Messages by their places, and how far a group is behind."""

from pathlib import Path

from kafka import KafkaAdminClient, TopicPartition

from provenance_store.model.message import Headers, Message
from provenance_store.transport.following import KafkaFollower
from provenance_store.transport.kafka import KafkaTransport, client_options
from tests.services_fixtures import running


def message(seq: int) -> Message:
    return Message.of(Headers(run="r", dic="d", attempt="a", seq=seq, task="t", function="map"), b"%d" % seq)


def test_messages_are_read_where_they_stand_as_long_as_they_do(tmp_path: Path) -> None:
    with running(tmp_path, "kafka") as settings:
        transport = KafkaTransport(settings)
        with transport.sink("headwater.live.t") as sink:
            for seq in range(5_000):
                sink.send(message(seq))
        with transport.source("headwater.live.t") as source:
            stand = {(one.partition, one.offset): one.message.value for one in source}
        assert len(stand) == 5_000
        places = sorted(stand)
        asked = [*places[:3], places[2_500], *places[-3:]]
        assert transport.read_at("headwater.live.t", asked) == {place: stand[place] for place in asked}
        beyond = [(99, 0), (places[0][0], 10**9)]
        assert transport.read_at("headwater.live.t", [*beyond, places[7]]) == {places[7]: stand[places[7]]}
        assert transport.read_at("nothing", [(0, 0)]) == {}

        # What retention has taken is not told; what stands behind it is.
        partition = places[0][0]
        admin = KafkaAdminClient(**client_options(settings))
        admin.delete_records({TopicPartition("headwater.live.t", partition): 2})
        admin.close()
        left = transport.read_at("headwater.live.t", [(partition, 1), (partition, 2)])
        assert left == {(partition, 2): stand[partition, 2]}

        assert transport.lags("headwater.live.", "g") == {"headwater.live.t": 4_998}
        with KafkaFollower(settings, ["headwater.live.*"], "g") as follower:
            read = 0
            while read < 4_998:
                came = follower.poll()
                read += len(came)
                if came:
                    follower.commit(came)
        assert transport.lags("headwater.live.", "g") == {"headwater.live.t": 0}
        assert transport.lags("another.", "g") == {}
