// Why an answer was given what it was given: the memories of a turn with the parts of their scores, and what was left out.

import { getTurn } from './api.js';
import { element } from './dom.js';
import { bind, bindAttribute, hasText, locale, text } from './i18n.js';
import { getMemory, recall } from './memory_api.js';
import { MemoryCard } from './memory_card.js';
import { word } from './words.js';

const MAX_QUERY = 4000;

export class RecallView {
  /** `listener.current()` gives the turn's view that is to be explained when none was chosen. */
  constructor(root, listener) {
    this.listener = listener;
    this.query = element('textarea', { className: 'search', rows: '2', maxlength: String(MAX_QUERY) });
    bindAttribute(bindAttribute(this.query, 'aria-label', 'recall_query'), 'placeholder', 'recall_query');
    this.submit = bind(element('button', { type: 'submit', className: 'button primary' }), 'recall_try');
    const form = element('form', { className: 'panel-tools recall-form' }, this.query, this.submit);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#try(this.query.value.trim());
    });
    this.query.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      form.requestSubmit();
    });
    this.heading = element('h3', {});
    this.note = element('p', { className: 'panel-note' });
    this.list = element('ul', { className: 'cards' });
    this.dropped = element('div', { className: 'dropped', hidden: true });
    root.append(form, this.heading, this.note, this.list, this.dropped);
  }

  /** Chooses the turn to explain. */
  choose(view) {
    this.view = view;
  }

  async open() {
    const view = this.view?.root.isConnected ? this.view : this.listener.current();
    this.view = view;
    this.query.value = (view?.message ?? '').slice(0, MAX_QUERY);
    this.dropped.hidden = true;
    this.list.replaceChildren();
    if (!view) {
      bind(this.heading, 'recall_none');
      bind(this.note, 'recall_none_detail');
      return;
    }
    bind(this.heading, 'recall_heading');
    bind(this.note, 'loading');
    const reading = this.#begin();
    // What a past turn was told is fetched when it comes near the view, which may be still to come.
    const told = view.recalled ?? (await getTurn(view.id).catch(() => null))?.memories ?? [];
    if (this.reading !== reading) return;
    bind(this.note, told.length > 0 ? 'recall_detail' : 'recall_nothing');
    await this.#explain(view, told);
  }

  /** The memories as the turn was given them, with the parts of their scores as they would be now. */
  async #explain(view, told) {
    const reading = this.#begin();
    const [result, memories] = await Promise.all([
      this.query.value.trim() ? recall({ query: this.query.value, explain: true, why_not: told.map(({ id }) => id).slice(0, 100) }).catch(() => null) : null,
      Promise.all(told.map(({ id }) => getMemory(id).catch(() => null))),
    ]);
    if (this.reading !== reading) return;
    const parts = new Map((result?.items ?? []).map((item) => [item.memory.id, item]));
    told.forEach((line, at) => this.#add(memories[at], line, parts.get(line.id)));
    if (result) this.#showDropped(result.dropped.filter(({ id }) => !told.some((line) => line.id === id)));
  }

  /** What a question would recall if it were asked now. */
  async #try(query) {
    if (query === '') return;
    const reading = this.#begin();
    this.list.replaceChildren();
    this.dropped.hidden = true;
    bind(this.heading, 'recall_now');
    bind(this.note, 'loading');
    try {
      const result = await recall({ query, explain: true });
      if (this.reading !== reading) return;
      bind(this.note, result.items.length > 0 ? 'recall_now_detail' : 'recall_nothing_now');
      for (const item of result.items) this.#add(item.memory, { via: 'relevance', score: item.score }, item);
      this.#showDropped(result.dropped);
    } catch (problem) {
      if (this.reading === reading) bind(this.note, 'action_failed', { reason: problem.status === 0 ? text('unreachable_now') : problem.message });
    }
  }

  #begin() {
    this.reading = Symbol('reading');
    return this.reading;
  }

  #add(memory, line, item) {
    // What was forgotten since is still what the answer was given.
    const card = memory ? new MemoryCard(memory, { openSource: this.listener.openSource }) : null;
    const root = card?.root ?? element('li', { className: 'card is-gone' }, element('p', { className: 'card-content' }, line.content));
    if (memory && line.content && memory.content !== line.content) card.note(bind(element('p', { className: 'card-then' }), 'recall_then', { content: line.content }));
    const why = reasons(line, item);
    if (card) card.note(why);
    else root.append(why, bind(element('p', { className: 'card-facts' }), 'recall_gone'));
    this.list.append(root);
  }

  #showDropped(dropped) {
    const counts = new Map();
    for (const { reason } of dropped) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    this.dropped.hidden = counts.size === 0;
    const rows = [...counts].map(([reason, count]) => element('li', {}, word(element('span', {}), 'dropped', reason), element('span', {}, String(count))));
    this.dropped.replaceChildren(bind(element('h3', {}), 'recall_dropped'), element('ul', { className: 'dropped-list' }, ...rows));
  }
}

/** How a memory came to be shown: its way, its score, the words it shares with the question, and the parts of the score. */
function reasons({ via, score }, item) {
  const root = element('div', { className: 'why-box' });
  const line = element('p', { className: 'why-line' });
  if (via === 'profile') line.append(bind(element('span', {}), 'why_profile'));
  else line.append(bind(element('span', {}), 'why_relevance', { score: score.toFixed(2) }));
  if (item?.matched?.length) line.append(' ', bind(element('span', {}), 'why_matched', { words: item.matched.join(', ') }));
  root.append(line);
  const parts = Object.entries(item?.parts ?? {}).filter(([, value]) => value !== 0);
  if (via === 'profile' || parts.length === 0) return root;
  const most = Math.max(...parts.map(([, value]) => Math.abs(value)));
  const rows = parts.sort(([, a], [, b]) => Math.abs(b) - Math.abs(a)).map(([name, value]) => part(name, value, most));
  root.append(element('details', { className: 'parts' }, bind(element('summary', {}), 'why_parts'), element('dl', {}, ...rows)));
  return root;
}

function part(name, value, most) {
  const bar = element('span', { className: value < 0 ? 'bar is-negative' : 'bar' });
  bar.style.inlineSize = `${Math.round((Math.abs(value) / most) * 100)}%`;
  const key = `part_${name}`;
  const label = element('dt', {});
  if (hasText(key)) bind(label, key);
  else label.textContent = name.replaceAll('_', ' ');
  const number = value.toLocaleString(locale(), { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  return element('div', { className: 'part' }, label, element('dd', {}, element('span', { className: 'bar-room', 'aria-hidden': 'true' }, bar), number));
}
