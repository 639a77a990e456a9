"""A page of the report, read without a browser."""

import base64
import json
from html.parser import HTMLParser

import numpy as np

TYPES = {"f4": "<f4", "u2": "<u2", "u4": "<u4", "i4": "<i4"}
HOSTILE = ["<script>alert(1)</script>", "</script><b>", "\"' onload=alert(1) x=", "{{ 7 * 7 }}"]


def unpack(packed):
    """Numbers that a page carries packed."""
    return np.frombuffer(base64.b64decode(packed["base64"]), TYPES[packed["type"]])


class Page(HTMLParser):
    """Elements, headings and the data of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.headings, self.text, self.scripts = [], [], "", []
        self._open = []
        self.feed(text)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag in ("script", "style"):
            self.scripts.append("")
        if tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self._open[-1] if self._open else ""
        if inside in ("script", "style"):
            self.scripts[-1] += data
            if inside == "style":
                self.scripts.pop()
        else:
            self.text += data
            if inside == "h2":
                self.headings[-1] += data

    def attributes(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]
