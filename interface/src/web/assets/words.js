// The contract's words for scopes, kinds, layers, states and the like, and its times, in the reader's language.

import { element } from './dom.js';
import { bind, hasText, locale } from './i18n.js';

export const SCOPES = ['user_profile', 'project_context', 'task_state'];
export const KINDS = ['preference', 'fact', 'decision', 'temporary_state'];
export const LAYERS = ['semantic', 'episodic', 'archival'];
export const STATES = ['current', 'superseded', 'archived', 'quarantined'];

/** Shows a word of the contract in `node`; one that is newer than this page shows as it is. */
export function word(node, prefix, value) {
  const key = `${prefix}_${value}`;
  if (hasText(key)) bind(node, key);
  else node.textContent = value;
  return node;
}

/** A date, with its time when it was today. */
export function timeOf(value) {
  const date = new Date(value);
  const now = new Date();
  const form = date.toDateString() === now.toDateString() ? { hour: '2-digit', minute: '2-digit' } : { day: 'numeric', month: 'short' };
  if (date.getFullYear() !== now.getFullYear()) form.year = 'numeric';
  const node = element('time', { datetime: value, title: date.toLocaleString(locale()) }, date.toLocaleString(locale(), form));
  return node;
}

/** A choice among the contract's words, each in the reader's language; `any` is the text for none of them. */
export function choice({ label, prefix, values, any, value }) {
  const select = element('select', { className: 'choice' });
  if (any) select.append(bind(element('option', { value: '' }), any));
  for (const one of values) select.append(word(element('option', { value: one }), prefix, one));
  if (value !== undefined) select.value = value;
  const name = bind(element('span', { className: 'hidden-text' }), label);
  return { select, node: element('label', { className: 'choice-label' }, name, select) };
}
