"""Messages that nobody should send, for tests: what cannot be read, and what can although it is odd."""

from provenance_store.model.document import write_document

PREFIXES = b'{"prefix":{"lake":"urn:lake:","run":"urn:run:r:"},'
DEEP = 100_000


def document(rest: bytes) -> bytes:
    return PREFIXES + rest + b"}"


def derived(output: bytes, source: bytes) -> bytes:
    return document(b'"wasDerivedFrom":{"_:1":{"prov:generatedEntity":%s,"prov:usedEntity":%s}}' % (output, source))


# Each with words of the reason for which it is rejected.
UNREADABLE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not JSON"),
    "text": (b"hello", "not JSON"),
    "half of a document": (write_document("r", [("wasDerivedFrom", "lake:a", "lake:b")])[:-9], "not JSON"),
    "a list": (b"[]", "a list"),
    "null": (b"null", "not an object"),
    "a number": (b"17", "a number"),
    "deep lists": (b"[" * DEEP + b"]" * DEEP, "recursion"),
    "deep bundles": (b'{"bundle":{"b":' * DEEP + b"{}" + b"}}" * DEEP, "recursion"),
    "a deep attribute": (document(b'"entity":{"lake:x":{"a":' + b"[" * DEEP + b"]" * DEEP + b"}}"), "recursion"),
    "a huge number": (document(b'"entity":{"lake:x":{"a":' + b"1" * 6000 + b"}}"), "not JSON"),
    "bytes that are no text": (derived(b'"lake:\xff"', b'"lake:b"'), "not JSON"),
    "a surrogate in bytes": (derived(b'"lake:\xed\xa0\x80"', b'"lake:b"'), "not JSON"),
    "half of a surrogate pair": (derived(b'"lake:\\ud800"', b'"lake:b"'), "not JSON"),
    "a null byte": (derived(b'"lake:\0"', b'"lake:b"'), "not JSON"),
    "an unknown relation": (document(b'"wasEatenBy":{}'), "not an element of PROV-JSON"),
    "a number for an id": (derived(b"1", b'"lake:b"'), "a number"),
    "null for an id": (derived(b"null", b'"lake:b"'), "missing"),
    "an object for an id": (derived(b"{}", b'"lake:b"'), "an object"),
    "a list for an id": (derived(b'["lake:a"]', b'"lake:b"'), "a list"),
    "truth for an id": (derived(b"true", b'"lake:b"'), "a truth value"),
    "a list for a relation": (document(b'"used":[]'), "used is a list"),
    "a text for a record": (document(b'"used":{"_:1":"x"}'), "a text"),
    "a list for a bundle": (document(b'"bundle":{"b":[]}'), "a list"),
    "a number for a namespace": (b'{"prefix":{"lake":1}}', "not an object of strings"),
    "an undeclared prefix": (derived(b'"nope:a"', b'"lake:b"'), "no declared prefix"),
    "an undeclared prefix of a megabyte": (derived(b'"nope:' + b"x" * (1 << 20) + b'"', b'"lake:b"'), "prefix"),
    "a key that stands twice": (
        document(
            b'"used":{"_:1":{"prov:activity":"run:f","prov:entity":"lake:a"},'
            b'"_:1":{"prov:activity":"run:f","prov:entity":"lake:b"}}'
        ),
        "stands twice",
    ),
}

# Each with the dependencies it tells.
ODD: dict[str, tuple[bytes, set[tuple[str, str]]]] = {
    "a self-loop": (derived(b'"lake:self"', b'"lake:self"'), {("lake:self", "lake:self")}),
    "a cycle": (
        write_document(
            "r",
            [
                ("wasDerivedFrom", "lake:o", "run:x"),
                ("wasDerivedFrom", "run:x", "run:y"),
                ("wasDerivedFrom", "run:y", "run:x"),
                ("wasDerivedFrom", "run:y", "lake:i"),
                ("wasDerivedFrom", "run:z", "run:z"),
                ("wasDerivedFrom", "lake:o", "run:z"),
            ],
        ),
        {("lake:o", "lake:i")},
    ),
    "an escaped null": (derived(b'"lake:nul\\u0000"', b'"lake:b"'), {("lake:nul\0", "lake:b")}),
    "a surrogate pair": (derived(b'"lake:\\ud83d\\ude00"', b'"lake:b"'), {("lake:\U0001f600", "lake:b")}),
    "an id of a megabyte": (
        derived(b'"lake:' + b"x" * (1 << 20) + b'"', b'"lake:b"'),
        {("lake:" + "x" * (1 << 20), "lake:b")},
    ),
    "bundles in bundles": (
        b'{"bundle":{"b":' * 100 + derived(b'"lake:deep"', b'"lake:b"') + b"}}" * 100,
        {("lake:deep", "lake:b")},
    ),
    "an execution in the lake": (
        write_document("r", [("used", "lake:job", "lake:b"), ("wasGeneratedBy", "lake:made", "lake:job")]),
        {("lake:made", "lake:b")},
    ),
}
