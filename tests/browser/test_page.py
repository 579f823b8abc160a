"""report.html in a browser, from the disk."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from harness.report.html import assets
from tests.browser.pages import empty, large, small, strange, uncharted

pytestmark = pytest.mark.browser


def cells(page: Page) -> Locator:
    return page.locator("#all-cells")


def column(page: Page, name: str) -> list[str]:
    table = cells(page).get_by_role("table")
    headings = [re.sub(r"\s*[↕↑↓]$", "", text) for text in table.get_by_role("columnheader").all_inner_texts()]
    return table.locator(f"tbody td:nth-child({headings.index(name) + 1})").all_inner_texts()


def drawn(page: Page) -> Page:
    expect(page.locator("[data-chart]:not([data-drawn])")).to_have_count(0)
    return page


def test_every_chart_is_drawn_and_has_a_tooltip_and_the_theme(open_page):
    page = drawn(open_page(small(), color_scheme="light"))
    charts = page.locator("[data-chart]")
    # one of them in what is folded away
    assert charts.count() >= 3
    for chart in charts.all():
        expect(chart.locator("svg")).to_have_count(1)
        assert chart.get_attribute("aria-label")
    chart = page.locator("[data-chart=points]")
    chart.scroll_into_view_if_needed()
    chart.locator(".mark-symbol path").first.hover()
    tooltip = page.locator(".tooltip")
    expect(tooltip).to_be_visible()
    expect(tooltip).to_contain_text("verdict")
    page.get_by_role("heading", level=1).hover()
    expect(tooltip).to_be_hidden()
    label = chart.locator("text[fill='#222222']").first
    before = label.evaluate("node => getComputedStyle(node).fill")
    page.get_by_role("button", name="Dark theme").click()
    assert label.evaluate("node => getComputedStyle(node).fill") != before


def test_tables_are_sorted_by_number_both_ways_and_as_they_were_and_from_the_keyboard(open_page):
    page = open_page(small())
    before = column(page, "time, ms")
    heading = cells(page).get_by_role("columnheader", name="time, ms")
    button = heading.get_by_role("button")
    button.click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    upwards = column(page, "time, ms")
    numbers = [float(text) for text in upwards if text != "–"]
    assert numbers == sorted(numbers)
    assert upwards[-1] == "–"
    button.click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    downwards = column(page, "time, ms")
    assert [float(text) for text in downwards if text != "–"] == numbers[::-1]
    assert downwards[-1] == "–"
    button.click()
    expect(heading).not_to_have_attribute("aria-sort", re.compile("."))
    assert column(page, "time, ms") == before
    heading = cells(page).get_by_role("columnheader", name="environment")
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert column(page, "environment") == sorted(column(page, "environment"))
    # comparisons, by ratio
    box = page.locator("[data-sortable]").first
    box.get_by_role("columnheader", name="time ratio").get_by_role("button").click()
    order = [float(cell.get_attribute("data-sort") or "inf") for cell in box.locator("td[data-sort]").all()]
    assert order == sorted(order)


def test_tables_are_filtered_by_value_text_and_verdict(open_page):
    page = open_page(small())
    box = cells(page)
    status = box.get_by_role("status")
    expect(status).to_have_text("10 of 10 cells")
    box.get_by_label("environment").select_option("tf2.0")
    expect(status).to_have_text("4 of 10 cells")
    assert set(column(page, "environment")) == {"tf2.0"}
    box.get_by_label("Text").fill("EAGER train")
    expect(status).to_have_text("1 of 10 cells")
    box.get_by_role("button", name="Reset").click()
    expect(status).to_have_text("10 of 10 cells")
    box = page.locator("[data-sortable]").first
    box.get_by_label("Verdict").select_option("slower")
    verdicts = box.locator("tbody .verdict").all_inner_texts()
    assert verdicts
    assert set(verdicts) == {"slower"}
    expect(box.get_by_role("status")).to_have_text(re.compile(rf"^{len(verdicts)} of \d+ comparisons$"))
    box.get_by_label("Verdict").select_option("")
    box = page.locator("[data-sortable]").filter(has=page.locator("option[value=settled]")).first
    count = box.locator("tbody tr").count()
    box.get_by_label("Verdict").select_option("settled only")
    settled = box.locator("tbody .verdict").all_inner_texts()
    assert 0 < box.locator("tbody tr").count() == len(settled) < count
    assert not {"unclear", "no verdict", "different work"} & set(settled)


def test_a_long_table_is_shown_in_slices_and_sorted_as_a_whole(open_page):
    page = open_page(large())
    box = cells(page)
    expect(box.get_by_role("status")).to_have_text("300 of 300 cells, the first 200 shown")
    expect(box.locator("tbody tr")).to_have_count(200)
    button = box.get_by_role("columnheader", name="time, ms").get_by_role("button")
    button.click()
    button.click()
    assert float(column(page, "time, ms")[0]) == pytest.approx(300, rel=0.2)
    box.get_by_role("button", name="Show more").click()
    expect(box.locator("tbody tr")).to_have_count(300)
    expect(box.get_by_role("button", name="Show more")).to_be_hidden()


def test_filters_and_order_are_in_the_address_and_a_reload_keeps_them(open_page):
    page = open_page(small())
    box = cells(page)
    box.get_by_label("environment").select_option("tf2.0")
    box.get_by_label("Text").fill("eager")
    heading = box.get_by_role("columnheader", name="time, ms")
    heading.get_by_role("button").click()
    heading.get_by_role("button").click()
    status, order = box.get_by_role("status").inner_text(), column(page, "time, ms")
    assert "cells.environment=tf2.0&cells-text=eager&cells-sort=-time" in page.url
    page.reload()
    expect(box.get_by_role("status")).to_have_text(status)
    expect(box.get_by_label("environment")).to_have_value("tf2.0")
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert column(page, "time, ms") == order
    box.get_by_role("button", name="Reset").click()
    assert "environment" not in page.url
    # what does not exist is left out
    address = page.url.split("?")[0]
    page.goto(
        f"{address}?cells.environment=tf9&cells.nothing=1&cells-sort=-none&table1-verdict=%3Cb%3E&table9-text=a&%"
    )
    expect(box.get_by_role("status")).to_have_text("10 of 10 cells")
    expect(box.get_by_label("environment")).to_have_value("")
    expect(page.locator("[data-sortable]").first.get_by_label("Verdict")).to_have_value("")


def test_back_undoes_a_choice_and_all_that_was_typed(open_page):
    page = open_page(small())
    box = cells(page)
    status = box.get_by_role("status")
    box.get_by_label("environment").select_option("tf2.0")
    box.get_by_label("Text").press_sequentially("eager")
    expect(status).not_to_have_text("4 of 10 cells")
    page.go_back()
    expect(status).to_have_text("4 of 10 cells")
    expect(box.get_by_label("Text")).to_have_value("")
    page.go_back()
    expect(status).to_have_text("10 of 10 cells")
    page.go_forward()
    expect(status).to_have_text("4 of 10 cells")
    # a place in the page is no filter
    page.get_by_role("navigation", name="Contents").get_by_role("link").last.click()
    expect(status).to_have_text("4 of 10 cells")
    assert "cells.environment=tf2.0#" in page.url


def test_numbers_and_names_open_a_dialog_about_their_cells(open_page):
    page = drawn(open_page(small()))
    dialog = page.get_by_role("dialog")
    # a number of the times: its launches; a comparison's number has two cells
    number = page.locator(".sections td[data-cells]:not([data-cells*=' '])").first.get_by_role("button")
    time = number.inner_text()
    number.focus()
    page.keyboard.press("Enter")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("step tf1.14 cpu call=fit dtype=float32 mode=graph")
    expect(dialog).to_contain_text(f"{time.split(' †')[0]} ms, over 5 rounds, from 10 launches")
    expect(dialog.locator(".plot svg")).to_have_count(2)
    # two launches a round, those of the round that was repeated, and the pilot
    expect(dialog.locator("tbody tr")).to_have_count(13)
    expect(dialog.locator("tr.aside")).to_have_count(3)
    expect(dialog.get_by_text("other processes used 0.41 of the CPUs of the launch").first).to_be_visible()
    assert "control" in dialog.locator("tbody").inner_text()
    assert 'jq -c \'select(.cell == {"scenario":"step"' in dialog.locator("pre").inner_text()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(number).to_be_focused()
    # a ratio: both its cells
    page.locator("[data-sortable] td[data-cells]").first.get_by_role("button").click()
    expect(dialog.locator(".cell")).to_have_count(2)
    expect(dialog.locator(".plot svg")).to_have_count(4)
    page.keyboard.press("Escape")
    # the name of a line: what tables have about its cell
    page.locator("th[data-cells='2']").last.get_by_role("button").click()
    expect(dialog).to_contain_text("step tf2.0 cpu call=fit dtype=float32 mode=graph")
    phases = dialog.locator("section", has=page.get_by_role("heading", name="Phases of it")).last.locator("dl")
    expect(phases).to_have_text("import, s1.2devicecpu")
    page.keyboard.press("Escape")
    # a cell without a number: why
    cells(page).get_by_label("status").select_option("oom")
    cells(page).locator("td[data-cells]").get_by_role("button").click()
    expect(dialog).to_contain_text("killed at 2 GiB Allow more memory.")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_without_vega_a_cell_has_its_launches_and_no_empty_chart(open_page, monkeypatch):
    monkeypatch.setattr(
        assets, "make_vega_script", lambda _: assets.PageScript("window.vegaEmbed = () => Promise.resolve();")
    )
    page = open_page(uncharted())
    page.locator(".sections td[data-cells]").first.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Launches").first).to_be_visible()
    for name in ("Samples", "In order of time"):
        expect(dialog.get_by_text(name, exact=True).first).to_be_hidden()


def read_ground(page: Page) -> str:
    color: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return color


def test_the_theme_is_the_systems_until_it_is_chosen(open_page):
    for scheme in ("light", "dark"):
        page = open_page(small(), color_scheme=scheme)
        button = page.get_by_role("button", name="Dark theme")
        expect(button).to_have_attribute("aria-pressed", str(scheme == "dark").lower())
        before = read_ground(page)
        button.click()
        expect(button).to_have_attribute("aria-pressed", str(scheme == "light").lower())
        assert read_ground(page) != before
        page.reload()
        expect(button).to_have_attribute("aria-pressed", str(scheme == "light").lower())
        assert read_ground(page) != before


def test_all_is_unfolded_on_paper_and_folded_again_after(open_page):
    page = drawn(open_page(small()))
    folded = page.locator("details:not([open])")
    count = folded.count()
    assert count
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(folded).to_have_count(0)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(folded).to_have_count(count)
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.get_by_role("button", name="Dark theme")).to_be_hidden()
    assert page.locator("h1").evaluate("node => getComputedStyle(node).color") == "rgb(29, 33, 37)"


def test_without_scripts_the_numbers_are_there_and_what_is_missing_is_said(open_page):
    page = open_page(small(), java_script_enabled=False)
    assert "Scripts are off" in (page.locator("noscript").text_content() or "")
    expect(page.locator("td[data-cells]").first).to_be_visible()
    expect(page.locator(".verdict").first).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)
    links = page.get_by_role("navigation", name="Contents").get_by_role("link")
    assert "All cells" not in links.all_inner_texts()
    links.last.click()
    expect(page.locator("main h2").last).to_be_in_viewport()


def test_a_run_without_a_number_is_shown(open_page):
    page = open_page(empty())
    expect(page.get_by_text("No cell has a result.")).to_be_visible()
    cells(page).locator("td[data-cells]").first.get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_contain_text("it raised")


def test_hostile_strings_are_shown_as_text(open_page):
    page = drawn(open_page(strange()))
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    assert "<script>alert(1)</script>" in page.locator("main").inner_text()
    expect(page.locator("main script")).to_have_count(0)
    for place in range(cells(page).locator("td[data-cells]").count()):
        cells(page).locator("td[data-cells]").nth(place).get_by_role("button").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("<script>alert(1)</script> tf1.14")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()


def test_a_script_that_got_in_would_not_run(open_page):
    """The second wall: should an escape ever be forgotten, the page's policy lets no script run but its own."""
    text = small().replace("<h1", "<script>document.title = 'broken'</script><h1", 1)
    # the browser says that it refused
    page = drawn(open_page(text, talks=True))
    expect(page.locator("main script")).to_have_count(1)
    assert page.title() == "One training step: tf1.14, tf2.0, tf2.1"
