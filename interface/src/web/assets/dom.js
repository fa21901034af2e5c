// Small constructors for DOM nodes. Everything shown goes through text nodes, so nothing a model or a user
// writes is ever parsed as markup.

import { bind } from './i18n.js';

const SVG = 'http://www.w3.org/2000/svg';

/** An element with a class, attributes and children (nodes or strings). */
export function element(tag, { className, ...attributes } = {}, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** A decorative icon of the page's sprite; one that is not square fills the room it gets. */
export function icon(name, { square = true } = {}) {
  const svg = document.createElementNS(SVG, 'svg');
  if (square) svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  use.setAttribute('href', `/assets/icons.svg#${name}`);
  svg.append(use);
  return svg;
}

/** Tells assistive technology something that sighted readers see from the layout. */
export function announce(text) {
  document.getElementById('announcer').textContent = text;
}

/** Puts `text` on the clipboard and says so in `label` for a moment; a browser may refuse, then nothing is said. */
export async function copyText(text, label) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    return;
  }
  bind(label, 'copied');
  setTimeout(() => bind(label, 'copy'), 1500);
}
