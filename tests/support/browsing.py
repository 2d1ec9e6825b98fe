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


def sideways(browser: Any) -> list[str]:
    """What is wider than its place, and so has to be scrolled sideways or is cut off."""
    found: list[str] = browser.execute_script(
        """return [...document.querySelectorAll("body *")]
        .filter(e => !(e instanceof SVGElement) && getComputedStyle(e).textOverflow !== "ellipsis")
        .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
        .map(e => `${e.tagName} ${e.className}: ${e.scrollWidth} in ${e.clientWidth}`)"""
    )
    return found


def smallest_text(browser: Any) -> float:
    """Height of the smallest letters on the page as drawn [px]."""
    size: float = browser.execute_script(
        """const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        let least = 99;
        while (texts.nextNode()) {
          const holder = texts.currentNode.parentElement;
          if (!texts.currentNode.data.trim() || !holder.getClientRects().length) continue;
          const scale = holder instanceof SVGElement
            ? holder.ownerSVGElement.getScreenCTM().a : 1;
          least = Math.min(least, scale * parseFloat(getComputedStyle(holder).fontSize));
        }
        return least;"""
    )
    return size
