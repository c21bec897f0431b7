"""Find the texts on a page whose contrast is too low to read them well."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

LEAST = 4.5
"""The ratio that WCAG 2 asks for, level AA."""


def unreadable_texts(page: Page) -> list[str]:
    """Return a text for each pair of colors with too little contrast. Texts on canvases are not seen."""
    found: list[str] = page.evaluate(_FIND, LEAST)
    return found


_FIND = """least => {
  const pixel = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const context = pixel.getContext("2d", {willReadFrequently: true});
  const rgba = color => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const over = (top, below) => [0, 1, 2].map(at => top[at] * top[3] + below[at] * (1 - top[3]));
  const ancestors = element => element ? [element, ...ancestors(element.parentElement)] : [];
  const behind = element => ancestors(element).reverse().reduce(
    (color, one) => over(rgba(getComputedStyle(one).backgroundColor), color), [255, 255, 255]);
  const luminance = color => {
    const [red, green, blue] = color.map(
      value => value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const found = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, text = texts.currentNode.textContent.trim();
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!text || !box.width || !box.height || style.visibility === "hidden") continue;
    const opacity = ancestors(element).reduce((all, one) => all * getComputedStyle(one).opacity, 1);
    const back = behind(element), [red, green, blue, alpha] = rgba(style.color);
    const front = over([red, green, blue, alpha * opacity], back);
    const [light, dark] = [luminance(front), luminance(back)].sort((one, other) => other - one);
    const ratio = (light + 0.05) / (dark + 0.05);
    const colors = `${front.map(Math.round)} on ${back.map(Math.round)}`;
    if (ratio < least) found.set(colors, `${ratio.toFixed(2)}: ${colors}: ${text.slice(0, 60)}`);
  }
  return [...found.values()];
}"""
