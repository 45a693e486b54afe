import io
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prov.model import ProvDocument, ProvWarning

from provenance_store.export.folders import find_graphs
from provenance_store.export.names import NAMESPACES, plain, record_name, run_name
from provenance_store.export.prov_stream import write_prov_json, write_provn
from provenance_store.graph import reduced
from tests.reduced import write_reduced
from tests.unit.export.answers import ids, texts

lakes = st.dictionaries(texts, st.tuples(texts, st.sets(st.tuples(ids, ids), max_size=5)), min_size=1, max_size=3)


@pytest.mark.parametrize(("write", "form"), [(write_provn, "provn"), (write_prov_json, "json")])
@settings(max_examples=50)
@given(lake=lakes)
def test_prov_reads_whole_graphs_as_it_would_write_them(write, form: str, lake: dict) -> None:
    expected = ProvDocument()
    for prefix, namespace in NAMESPACES.items():
        expected.add_namespace(prefix, namespace)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduced, "_MANY", 2)
        for number, (run, (dic, edges)) in enumerate(lake.items()):
            write_reduced(Path(folder) / str(number), run, edges, dic=dic)
            attributes = {"headwater:dic": plain(dic), "headwater:verdict": "complete"}
            expected.activity(run_name(run), other_attributes=attributes)
            for output, source in edges:
                expected.wasDerivedFrom(record_name(output), record_name(source), run_name(run))
        file = io.BytesIO()
        write(find_graphs([Path(folder)]).graphs, file)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ProvWarning)
        assert ProvDocument.deserialize(content=file.getvalue().decode(), format=form) == expected
