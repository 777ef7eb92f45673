"""No text becomes an element, whatever it is."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from plait.dashboard.drawing.markup import page, style_sheet, tag, together

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onload='x", "a&b;",
           "</title><script>", "\x00\u202e"]  # fmt: skip


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text: str) -> None:
    seen = Seen()
    seen.feed(tag("p", text, [text], title=text, data_x=text))
    assert [name for name, _ in seen.elements] == ["p"]
    assert seen.elements[0][1] == {"title": text, "data-x": text}
    assert seen.text == text * 2 and str(together(text)) == str(together(text))


def test_elements_are_taken_as_they_are() -> None:
    inner = tag("b", "x")
    assert str(tag("p", inner, [inner, None])) == "<p><b>x</b><b>x</b></p>"
    assert page(inner).startswith("<!doctype html>")


def test_names_and_styles_are_ours() -> None:
    with pytest.raises(ValueError, match="no name"):
        tag("p onclick=x")
    with pytest.raises(ValueError, match="style sheet"):
        style_sheet("</style><script>")
