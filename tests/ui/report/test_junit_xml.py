"""Text that XML allows."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from mcpspy.ui.report.junit import plain


def test_only_characters_that_xml_forbids_are_replaced() -> None:
    assert plain("a\x00b\x1bc\ud800d\ufffee") == "a\ufffdb\ufffdc\ufffdd\ufffde"
    assert plain("tab\t \u00e9 \U0001f388 <&>") == "tab\t \u00e9 \U0001f388 <&>"


def test_every_character_makes_a_document_that_can_be_read() -> None:
    element = ET.Element("a")
    element.text = plain("".join(map(chr, (*range(0x300), *range(0xD7F0, 0xE010), 0xFFFE, 0x1FFFF))))

    ET.fromstring(ET.tostring(element, encoding="unicode"))
