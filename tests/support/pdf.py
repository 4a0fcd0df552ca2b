"""The pages of a PDF that Chromium printed, as text: in the order in which they are drawn."""

import re
import zlib

_OBJECT = re.compile(rb"(\d+) 0 obj\b(.*?)\bendobj", re.S)
_STREAM = re.compile(rb"/Length (\d+)\b.*?\bstream\r?\n", re.S)
_SHOWN = re.compile(rb"/(\w+) [\d.-]+ Tf|<([0-9A-Fa-f]+)> Tj|\[([^\]]*)\] TJ")


def read_pages(document: bytes) -> list[str]:
    """Return the text of each page, without spaces: these are gaps between glyphs, not letters."""
    objects = {int(number): body for number, body in _OBJECT.findall(document)}
    pages = [body for body in objects.values() if re.search(rb"/Type\s*/Page\b", body)]
    return [_read_page(body, objects) for body in pages]


def _read_page(body: bytes, objects: dict[int, bytes]) -> str:
    fonts = {}
    for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", _resolve(body, b"Resources", objects)):
        unicode_map = re.search(rb"/ToUnicode (\d+) 0 R", objects[int(number)])
        assert unicode_map, "a font without letters"
        fonts[name] = _read_letters(_inflate(objects[int(unicode_map[1])]))
    text, letters = "", {}
    contents = re.findall(rb"(\d+) 0 R", re.findall(rb"/Contents (\[[^\]]*\]|\d+ 0 R)", body)[0])
    for font, glyphs, run in _SHOWN.findall(b"\n".join(_inflate(objects[int(of)]) for of in contents)):
        if font:
            letters = fonts[font]
        for part in [glyphs] if glyphs else re.findall(rb"<([0-9A-Fa-f]+)>", run):
            codes = (int(part[place : place + 4], 16) for place in range(0, len(part), 4))
            text += "".join(letters.get(code, "") for code in codes)
    return text.replace(" ", "")


def _resolve(body: bytes, name: bytes, objects: dict[int, bytes]) -> bytes:
    reference = re.search(rb"/" + name + rb" (\d+) 0 R", body)
    return objects[int(reference[1])] if reference else body


def _inflate(body: bytes) -> bytes:
    head = _STREAM.search(body)
    assert head, "no stream of a stated length"
    stream = body[head.end() : head.end() + int(head[1])]  # its last byte may look like the end of a line
    return zlib.decompress(stream) if b"/FlateDecode" in body else stream


def _read_letters(unicode_map: bytes) -> dict[int, str]:
    """Return the letter of each glyph of a font."""
    letters = {}
    for block in re.findall(rb"beginbfchar(.*?)endbfchar", unicode_map, re.S):
        for code, letter in re.findall(rb"<(\w+)> <(\w+)>", block):
            letters[int(code, 16)] = bytes.fromhex(letter.decode()).decode("utf-16-be")
    for block in re.findall(rb"beginbfrange(.*?)endbfrange", unicode_map, re.S):
        for low, high, letter in re.findall(rb"<(\w+)> <(\w+)> <(\w+)>", block):
            for code in range(int(low, 16), int(high, 16) + 1):
                letters[code] = chr(int(letter, 16) + code - int(low, 16))
    return letters
