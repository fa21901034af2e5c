// The memories that a turn recalled, as chips above its answer.

import { element } from './dom.js';
import { bind } from './i18n.js';
import { word } from './words.js';

const SHOWN = 4;

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

/** Shows `memories` in `root`; the first few at once, the rest on demand. `explain()` is asked why it was these. */
export function showMemories(root, memories, explain) {
  root.replaceChildren();
  root.hidden = memories.length === 0;
  if (root.hidden) return;
  // Standing preferences first: they shape the answer whatever was asked.
  const isProfile = (memory) => memory.via === 'profile';
  const chips = [...memories.filter(isProfile), ...memories.filter((memory) => !isProfile(memory))].map(chip);
  const list = element('div', { className: 'memory-list' }, ...chips);
  const why = bind(element('button', { type: 'button', className: 'text-button why' }), 'why');
  why.addEventListener('click', explain);
  const title = bind(element('span', {}), 'recalled', { count: memories.length });
  root.append(element('div', { className: 'memories-title' }, title, why), list);
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
