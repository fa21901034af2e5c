// The memories that a turn recalled, as chips above its answer.

import { element } from './dom.js';
import { bind, hasText } from './i18n.js';

const SHOWN = 4;

/** A known word of the contract in the reader's language; a newer one shows as it is. */
function word(node, prefix, value) {
  const key = `${prefix}_${value}`;
  if (hasText(key)) bind(node, key);
  else node.textContent = value;
  return node;
}

function chip(memory) {
  const scope = word(element('span', { className: 'memory-scope' }), 'scope', memory.scope);
  const content = element('span', { className: 'memory-content' }, memory.content);
  const facts = element('span', { className: 'memory-facts' });
  facts.append(word(element('span', { className: 'memory-via' }), 'via', memory.via));
  if (typeof memory.score === 'number') {
    facts.append(bind(element('span', { className: 'memory-score' }), 'score', { score: memory.score.toFixed(2) }));
  }
  if (memory.kind) facts.append(word(element('span', { className: 'memory-kind' }), 'kind', memory.kind));
  const button = element('button', { type: 'button', className: 'memory', 'aria-expanded': 'false' }, scope, content, facts);
  button.dataset.memoryId = memory.id;
  button.dataset.scope = memory.scope;
  button.dataset.via = memory.via;
  button.addEventListener('click', () => {
    button.setAttribute('aria-expanded', String(button.getAttribute('aria-expanded') !== 'true'));
  });
  return button;
}

/** Shows `memories` in `root`; the first few at once, the rest on demand. */
export function showMemories(root, memories) {
  root.replaceChildren();
  root.hidden = memories.length === 0;
  if (root.hidden) return;
  // Standing preferences first: they shape the answer whatever was asked.
  const isProfile = (memory) => memory.via === 'profile';
  const chips = [...memories.filter(isProfile), ...memories.filter((memory) => !isProfile(memory))].map(chip);
  const list = element('div', { className: 'memory-list' }, ...chips);
  root.append(bind(element('span', { className: 'memories-title' }), 'recalled', { count: memories.length }), list);
  const rest = chips.slice(SHOWN);
  if (rest.length === 0) return;
  for (const one of rest) one.hidden = true;
  const more = bind(element('button', { type: 'button', className: 'text-button' }), 'more_memories', { count: rest.length });
  more.addEventListener('click', () => {
    for (const one of rest) one.hidden = false;
    rest[0].focus();
    more.remove();
  });
  list.append(more);
}
