import pytest

from provenance_store.reduction.intern import siphash
from provenance_store.reduction.native import pad

# The reference implementation's first vectors for SipHash-2-4 with 128 bits, of the bytes 0, 1, 2…
VECTORS = ("a3817f04ba25a8e66df67214c7550293", "da87c1d86b99af44347659119b22fc45", "8177228da4a45dc7fca38bdef60affe4")


@pytest.mark.parametrize(("size", "digest"), list(enumerate(VECTORS)))
def test_siphash_is_siphash(size: int, digest: str) -> None:
    buffer, _, _ = pad([bytes(range(size))])
    first, second = siphash(buffer.ctypes.data, buffer.ctypes.data + size, 2, 4)
    assert (int(first).to_bytes(8, "little") + int(second).to_bytes(8, "little")).hex() == digest
