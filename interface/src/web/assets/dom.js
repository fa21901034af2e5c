// Small constructors for DOM nodes. Everything shown goes through text nodes, so nothing a model or a user
// writes is ever parsed as markup.

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

/** A decorative icon of the page's sprite. */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
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
