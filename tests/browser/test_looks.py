"""How the explorer looks, light and dark, as Airflow's choice or the system's has it.

With EXPLORER_FIGURES=docs/figures the pictures of the documentation are taken again.
"""

import os
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.explorer_fixtures import ExplorerServer

FIGURES = os.environ.get("EXPLORER_FIGURES")


def take(page, folder: Path, name: str) -> None:
    page.wait_for_timeout(600)
    page.screenshot(path=Path(FIGURES or folder) / f"{name}.png")


def brightness(frame) -> int:
    colour = frame.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_pictures(open_page, explorer_server: ExplorerServer, tmp_path: Path, mode: str):
    # Airflow's own choice counts, whatever the system says.
    page = open_page("uma", "/", scheme="light" if mode == "dark" else "dark")
    page.evaluate("mode => localStorage.setItem('theme', mode)", mode)
    page.goto(f"{explorer_server.url}/plugin/lineage")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("button", name="Dataset tweets")).to_be_visible()
    frame.get_by_role("button", name="Dataset hashtag_counts").click()
    expect(frame.get_by_role("list", name="Records of hashtag_counts").get_by_role("button").first).to_be_visible()
    assert (brightness(frame) > 600) == (mode == "light")
    take(page, tmp_path, f"explorer-lake-{mode}")

    page.goto(
        f"{explorer_server.url}/plugin/lineage/headwater/explorer#/record/{quote(explorer_server.lake.total, safe='')}"
    )
    tag = frame.get_by_role("button", name=f"Record {explorer_server.lake.tags[1]}", exact=True)
    tag.click()
    frame.get_by_role("button", name="Expand backward, 1 step").click()
    expect(frame.get_by_role("button", name="Record lake:tweets").first).to_be_visible()
    frame.get_by_role("button", name="Show the whole graph").click()
    take(page, tmp_path, f"explorer-records-{mode}")


def test_a_change_of_mode_is_followed_at_once(open_page, explorer_server: ExplorerServer):
    page = open_page("vera", "/plugin/lineage", scheme="dark")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("combobox")).to_be_visible()
    assert brightness(frame) < 150
    page.evaluate("localStorage.setItem('theme', 'light')")
    expect(frame.locator("html")).to_have_attribute("data-theme", "light")
    assert brightness(frame) > 600
