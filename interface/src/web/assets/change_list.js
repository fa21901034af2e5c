// Everything that changed what is remembered, the newest first.

import { ChangeCard } from './change_card.js';
import { element } from './dom.js';
import { bind } from './i18n.js';
import { listChanges } from './memory_api.js';

export class ChangeList {
  /** `listener.failed(problem)`. */
  constructor(root, listener) {
    this.listener = listener;
    this.list = element('ol', { className: 'cards' });
    this.note = bind(element('p', { className: 'panel-note', hidden: true }), 'no_changes');
    this.more = bind(element('button', { type: 'button', className: 'text-button more', hidden: true }), 'show_more');
    this.more.addEventListener('click', () => this.#read(this.cursor));
    root.append(bind(element('p', { className: 'panel-note' }), 'changes_detail'), this.list, this.note, this.more);
  }

  open() {
    return this.#read(undefined);
  }

  async #read(cursor) {
    const reading = Symbol('reading');
    this.reading = reading;
    let page;
    try {
      page = await listChanges({}, cursor);
    } catch (problem) {
      if (this.reading === reading) this.listener.failed(problem);
      return;
    }
    if (this.reading !== reading) return;
    const rows = page.items.map((change) => element('li', { className: 'card' }, new ChangeCard(change, { reverted: () => this.open() }).root));
    if (!cursor) this.list.replaceChildren();
    this.list.append(...rows);
    this.cursor = page.next_cursor;
    this.more.hidden = !this.cursor;
    this.note.hidden = this.list.childElementCount > 0;
    if (cursor) rows[0]?.querySelector('button, summary')?.focus();
  }
}
