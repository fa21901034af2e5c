// The list of sessions: search, open, rename, delete.

import { changeSession, deleteSession, listSessions } from './api.js';
import { isComposing } from './composer.js';
import { confirmed } from './dialog.js';
import { announce, element, icon } from './dom.js';
import { bind, bindAttribute, text } from './i18n.js';

/** Between the last key in the search box and the search. */
const SEARCH_AFTER_MS = 200;

export class Sidebar {
  /** `listener.renamed(session)`, `listener.deleted(sessionId)`, `listener.failed(problem)`. */
  constructor(listener) {
    this.listener = listener;
    this.list = document.getElementById('session-list');
    this.note = document.getElementById('sidebar-note');
    this.more = document.getElementById('more-sessions');
    this.search = document.getElementById('session-search');
    this.rows = new Map();
    this.search.addEventListener('input', () => this.#searchSoon());
    this.search.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || this.search.value === '' || isComposing(event)) return;
      event.preventDefault();
      this.search.value = '';
      this.#searchSoon();
    });
    this.more.addEventListener('click', () => this.#loadMore());
  }

  get #text() {
    return this.search.value.trim();
  }

  #searchSoon() {
    clearTimeout(this.searchTimer);
    this.searchTimer = setTimeout(async () => {
      this.cursor = undefined;
      for (const id of this.rows.keys()) this.remove(id);
      try {
        await this.refresh();
        this.select(this.selected);
      } catch (problem) {
        this.listener.failed(problem);
      }
    }, SEARCH_AFTER_MS);
  }

  /** Reads the newest sessions again (of those that are searched for), keeping older pages that are shown already. */
  async refresh() {
    const searched = this.#text;
    const page = await listSessions({ text: searched });
    // Another search has begun meanwhile, and brings its own.
    if (searched !== this.#text) return;
    const fresh = new Set(page.items.map((session) => session.id));
    if (!page.next_cursor) {
      for (const id of this.rows.keys()) if (!fresh.has(id)) this.remove(id);
      this.cursor = undefined;
    } else if (this.rows.size <= page.items.length) {
      this.cursor = page.next_cursor;
    }
    // Rows move only where the order changed: a row under the pointer must not be taken out between press and release.
    let place = this.list.firstElementChild;
    for (const session of page.items) {
      const { item } = this.#update(session);
      if (item === place) place = place.nextElementSibling;
      else if (!item.contains(document.activeElement)) this.list.insertBefore(item, place);
    }
    this.#settle();
  }

  async #loadMore() {
    try {
      const page = await listSessions({ cursor: this.cursor, text: this.#text });
      this.cursor = page.next_cursor;
      for (const session of page.items) {
        if (!this.rows.has(session.id)) this.list.append(this.#update(session).item);
      }
      this.#settle();
    } catch (problem) {
      this.listener.failed(problem);
    }
  }

  #settle() {
    bind(this.note, this.#text ? 'no_session_found' : 'no_sessions');
    this.note.hidden = this.rows.size > 0;
    this.more.hidden = !this.cursor;
  }

  /** A session that was just made stands first. */
  put(session) {
    this.list.prepend(this.#update(session).item);
    this.#settle();
  }

  #update(session) {
    let row = this.rows.get(session.id);
    if (!row) {
      row = this.#row(session);
      this.rows.set(session.id, row);
    }
    row.session = session;
    if (!row.editing) showTitle(row.title, session.title);
    row.dot.hidden = !session.active_turn_id;
    return row;
  }

  remove(id) {
    this.rows.get(id)?.item.remove();
    this.rows.delete(id);
    this.#settle();
  }

  select(id) {
    this.selected = id;
    for (const [other, row] of this.rows) {
      if (other === id) row.link.setAttribute('aria-current', 'page');
      else row.link.removeAttribute('aria-current');
    }
  }

  #row(session) {
    const title = element('span', { className: 'session-title' });
    const dot = element('span', { className: 'session-dot', role: 'img', hidden: true });
    bindAttribute(dot, 'aria-label', 'answering_now');
    const link = element('a', { className: 'session-link', href: `#/s/${session.id}` }, title, dot);
    const rename = iconButton('rename', 'rename');
    const erase = iconButton('delete', 'delete');
    const item = element('li', { className: 'session' }, link, element('span', { className: 'session-actions' }, rename, erase));
    item.dataset.sessionId = session.id;
    const row = { item, link, title, dot, session };
    rename.addEventListener('click', () => this.#rename(row, rename));
    erase.addEventListener('click', () => this.#delete(row));
    return row;
  }

  #rename(row, opener) {
    const input = element('input', { className: 'session-edit', type: 'text', maxlength: '200', autocomplete: 'off' });
    bindAttribute(input, 'aria-label', 'rename_label');
    input.value = row.session.title ?? '';
    row.editing = true;
    row.link.hidden = true;
    row.item.classList.add('is-editing');
    row.item.prepend(input);
    input.focus();
    input.select();
    const close = async (save) => {
      if (!row.editing) return;
      row.editing = false;
      const title = input.value.trim();
      const hadFocus = input === document.activeElement;
      input.remove();
      row.link.hidden = false;
      row.item.classList.remove('is-editing');
      if (hadFocus) opener.focus();
      if (!save || title === '' || title === row.session.title) return;
      const before = row.session;
      showTitle(row.title, title);
      try {
        const changed = (await changeSession(before.id, { title })) ?? { ...before, title };
        row.session = changed;
        showTitle(row.title, changed.title);
        this.listener.renamed(changed);
      } catch (problem) {
        showTitle(row.title, before.title);
        this.listener.failed(problem);
      }
    };
    input.addEventListener('keydown', (event) => {
      if (isComposing(event)) return;
      if (event.key === 'Enter' || event.key === 'Escape') {
        event.preventDefault();
        close(event.key === 'Enter');
      }
    });
    input.addEventListener('blur', () => close(true));
  }

  async #delete(row) {
    const id = row.session.id;
    const subject = row.session.title || text('untitled');
    if (!(await confirmed({ title: 'delete_title', detail: 'delete_detail', action: 'delete', subject }))) return;
    const neighbour = row.item.nextElementSibling ?? row.item.previousElementSibling;
    try {
      await deleteSession(id);
    } catch (problem) {
      // Gone already is what was wanted.
      if (problem.status !== 404) {
        this.listener.failed(problem);
        return;
      }
    }
    this.remove(id);
    announce(text('deleted'));
    (neighbour?.querySelector('a') ?? document.getElementById('new-session')).focus();
    this.listener.deleted(id);
  }
}

export function showTitle(node, title) {
  if (title) {
    delete node.dataset.i18n;
    node.textContent = title;
  } else {
    bind(node, 'untitled');
  }
}

function iconButton(name, key) {
  const button = element('button', { type: 'button', className: `icon-button session-${name}` }, icon(name));
  bindAttribute(button, 'aria-label', key);
  return bindAttribute(button, 'title', key);
}
