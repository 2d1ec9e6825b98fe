"""What a browser logged since a page was opened."""

from __future__ import annotations

import json
from typing import Any


def requested(browser: Any) -> list[str]:
    """Addresses that were asked for since the page was opened, the page itself left out."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in sent if url != browser.current_url]


def complaints(browser: Any) -> list[str]:
    """What the browser's console says is wrong."""
    return [entry["message"] for entry in browser.get_log("browser")]
