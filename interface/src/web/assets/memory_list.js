// All that is remembered: searched, filtered, page by page. What waits for confirmation is pointed at.

import { isComposing } from './composer.js';
import { announce, element } from './dom.js';
import { bind, bindAttribute, text } from './i18n.js';
import { listMemories } from './memory_api.js';
import { MemoryCard } from './memory_card.js';
import { choice, KINDS, LAYERS, SCOPES, STATES } from './words.js';

const SEARCH_AFTER_MS = 250;

export class MemoryList {
  /** `listener.openSource(source)` to show where something was said; `listener.failed(problem)`. */
  constructor(root, listener) {
    this.listener = listener;
    this.search = element('input', { className: 'search', type: 'search', maxlength: '200', autocomplete: 'off' });
    bindAttribute(bindAttribute(this.search, 'placeholder', 'search_memories'), 'aria-label', 'search_memories');
    this.filters = {
      scope: choice({ label: 'scope', prefix: 'scope', values: SCOPES, any: 'any_scope' }),
      kind: choice({ label: 'kind', prefix: 'kind', values: KINDS, any: 'any_kind' }),
      layer: choice({ label: 'layer', prefix: 'layer', values: LAYERS, any: 'any_layer' }),
      state: choice({ label: 'state', prefix: 'state', values: STATES, any: 'any_state', value: 'current' }),
    };
    for (const [name, { select }] of Object.entries(this.filters)) {
      select.dataset.filter = name;
      select.addEventListener('change', () => this.open());
    }
    this.search.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.open(), SEARCH_AFTER_MS);
    });
    this.search.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || this.search.value === '' || isComposing(event)) return;
      event.preventDefault();
      this.search.value = '';
      this.open();
    });
    this.list = element('ul', { className: 'cards' });
    this.note = element('p', { className: 'panel-note', hidden: true });
    this.more = bind(element('button', { type: 'button', className: 'text-button more', hidden: true }), 'show_more');
    this.more.addEventListener('click', () => this.#read(this.cursor));
    this.waiting = bind(element('button', { type: 'button', className: 'text-button waiting', hidden: true }), 'some_wait');
    this.waiting.addEventListener('click', () => this.#showWaiting());
    const filters = element('div', { className: 'filters' }, ...Object.values(this.filters).map(({ node }) => node));
    root.append(element('div', { className: 'panel-tools' }, this.search, filters), this.waiting, this.list, this.note, this.more);
  }

  /** Reads the first page anew. */
  open() {
    clearTimeout(this.timer);
    this.#lookForWaiting();
    return this.#read(undefined);
  }

  /** Whether anything waits for confirmation is asked beside what is listed, and matters only where that is not listed itself. */
  async #lookForWaiting() {
    const listed = ['quarantined', ''].includes(this.#filter.state);
    let waits = false;
    try {
      waits = !listed && (await listMemories({ state: 'quarantined', limit: 1 })).items.length > 0;
    } catch {
      // The list itself tells what is wrong.
    }
    this.waiting.hidden = !waits;
  }

  async #showWaiting() {
    for (const { select } of Object.values(this.filters)) select.value = '';
    this.filters.state.select.value = 'quarantined';
    this.search.value = '';
    await this.open();
    this.list.querySelector('.memory-confirm')?.focus();
  }

  get #filter() {
    const filter = { text: this.search.value.trim() };
    for (const [name, { select }] of Object.entries(this.filters)) filter[name] = select.value;
    return filter;
  }

  async #read(cursor) {
    const reading = Symbol('reading');
    this.reading = reading;
    const filter = this.#filter;
    let page;
    try {
      page = await listMemories(filter, cursor);
    } catch (problem) {
      if (this.reading === reading) this.listener.failed(problem);
      return;
    }
    if (this.reading !== reading) return;
    if (!cursor) {
      this.list.replaceChildren();
      this.shown = [];
    }
    const first = this.#append(page.items, filter.layer === '');
    this.cursor = page.next_cursor;
    this.more.hidden = !this.cursor;
    this.#settle();
    if (cursor) first?.root.querySelector('button')?.focus();
    else announce(text('memories_found', { count: this.list.childElementCount, more: Boolean(this.cursor) }));
  }

  /** What was said verbatim is not listed a second time where a statement says the same. */
  #append(memories, fold) {
    const statements = new Set([...this.shown, ...memories].filter(({ layer }) => layer === 'semantic').map(sameness));
    const told = fold ? memories.filter((memory) => memory.layer !== 'episodic' || !statements.has(sameness(memory))) : memories;
    this.shown.push(...memories);
    const cards = told.map((memory) => new MemoryCard(memory, { openSource: this.listener.openSource, forgotten: () => this.#settle() }));
    this.list.append(...cards.map(({ root }) => root));
    return cards[0];
  }

  #settle() {
    this.note.hidden = this.list.childElementCount > 0;
    const { text: searched, scope, kind, layer } = this.#filter;
    bind(this.note, searched || scope || kind || layer ? 'no_memory_found' : 'no_memories');
  }
}

const sameness = ({ content, state }) => `${state} ${content.trim().toLowerCase()}`;
