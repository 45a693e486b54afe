"""Whatever is sent, in whatever order: what cannot be read is kept with its reason, and everything else is exact."""

import json

from hypothesis import given
from hypothesis import strategies as st

from provenance_store.model.message import Headers, Message
from provenance_store.reduction.output import encode_rejected
from tests.property.poison import ODD, UNREADABLE
from tests.property.test_reduction import reduce_in_order


@given(st.permutations([*UNREADABLE, *ODD]), st.data())
def test_poison_harms_nothing_beside_it(names: list[str], data: st.DataObject) -> None:
    chosen = names[: data.draw(st.integers(1, len(names)))]
    # Without headers a message is decoded by itself; with them executions may be contracted where they stand.
    headers = data.draw(st.sampled_from([lambda _: {}, lambda seq: Headers("r", "dic", "a", seq).to_strings()]))
    values = [UNREADABLE[name][0] if name in UNREADABLE else ODD[name][0] for name in chosen]
    (reduced,) = reduce_in_order([Message(headers(seq), value) for seq, value in enumerate(values)])
    unreadable = [name for name in chosen if name in UNREADABLE]
    assert [rejected.message.value for rejected in reduced.rejected] == [UNREADABLE[name][0] for name in unreadable]
    for name, rejected in zip(unreadable, reduced.rejected, strict=True):
        assert UNREADABLE[name][1] in rejected.reason
        assert json.loads(encode_rejected(rejected))["reason"] == rejected.reason
    assert set(reduced.graph.iter_rows()) == {pair for name in chosen if name in ODD for pair in ODD[name][1]}
    assert (reduced.account.rejected, reduced.account.messages) == (len(unreadable), len(chosen))
