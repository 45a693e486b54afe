"""The built page and its files, to those who may look."""

import re

from tests.explorer_fixtures import ExplorerServer


def test_the_page_and_all_that_it_names(explorer_server: ExplorerServer):
    with explorer_server.client("vera") as vera:
        page = vera.get("explorer")
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        named = re.findall(r'(?:src|href)="\./([^"]+)"', page.text)
        assert {name.rpartition(".")[2] for name in named} == {"js", "css", "svg"}
        for name in named:
            file = vera.get(name)
            assert file.status_code == 200
            assert file.headers["x-content-type-options"] == "nosniff"
            # nothing that it would fetch from elsewhere
            assert not re.search(r"(?:url\(|import\(?)\s*[\"']?https?:", file.text)


def test_no_name_leads_elsewhere(explorer_server: ExplorerServer):
    with explorer_server.client("vera") as vera:
        for name in ("assets/%2e%2e", "assets/..%2f..%2fapp.py", "..%2fplugin.svg", "assets/.stamp", "nothing.svg"):
            assert vera.get(name).status_code == 404, name
