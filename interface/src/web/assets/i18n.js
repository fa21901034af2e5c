// Which language the page speaks, and the binding of nodes to their texts: a bound node is translated again when the
// language changes, so that nothing has to be rebuilt.

import { read, write } from './storage.js';
import { STRINGS } from './strings.js';

const KEY = 'tidemark.language';
const ATTRIBUTES = ['aria-label', 'placeholder', 'title'];

let language = preferred();

function preferred() {
  const chosen = read(KEY);
  if (chosen in STRINGS) return chosen;
  for (const tag of navigator.languages ?? [navigator.language]) {
    const primary = tag.toLowerCase().split('-', 1)[0];
    if (primary in STRINGS) return primary;
  }
  return 'en';
}

export const currentLanguage = () => language;

/** For dates and numbers. A browser that speaks the language knows better which country's. */
export function locale() {
  const tags = navigator.languages ?? [navigator.language];
  return tags.find((tag) => tag.toLowerCase().split('-', 1)[0] === language) ?? language;
}

/** The text of `key`; unknown keys show as they are, which a test of the page notices. */
export function text(key, parameters = {}) {
  const entry = STRINGS[language][key] ?? STRINGS.en[key] ?? key;
  return typeof entry === 'function' ? entry(parameters) : entry;
}

/** Whether there is a text for `key`. */
export const hasText = (key) => key in STRINGS.en;

/** Shows the text of `key` in `node`, now and after a change of language. */
export function bind(node, key, parameters) {
  node.dataset.i18n = key;
  if (parameters) node.dataset.i18nParameters = JSON.stringify(parameters);
  else delete node.dataset.i18nParameters;
  node.textContent = text(key, parameters);
  return node;
}

/** The same for an attribute (`aria-label`, `title` or `placeholder`). */
export function bindAttribute(node, attribute, key) {
  node.setAttribute(`data-i18n-${attribute}`, key);
  node.setAttribute(attribute, text(key));
  return node;
}

export function unbind(node) {
  delete node.dataset.i18n;
  delete node.dataset.i18nParameters;
}

export function translate(root = document) {
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : language;
  for (const node of root.querySelectorAll('[data-i18n]')) {
    const parameters = node.dataset.i18nParameters;
    node.textContent = text(node.dataset.i18n, parameters ? JSON.parse(parameters) : undefined);
  }
  for (const attribute of ATTRIBUTES) {
    for (const node of root.querySelectorAll(`[data-i18n-${attribute}]`)) {
      node.setAttribute(attribute, text(node.getAttribute(`data-i18n-${attribute}`)));
    }
  }
}

export function setLanguage(chosen) {
  language = chosen;
  write(KEY, chosen);
  translate();
}
