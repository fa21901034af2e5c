// The open conversation as a line through time: its messages, what was learned from which of them, and the boundary up to which
// it has been taken into long-term memory.

import { listMessages } from './api.js';
import { ChangeCard } from './change_card.js';
import { element, icon } from './dom.js';
import { bind, locale } from './i18n.js';
import { changesOf } from './memory_api.js';
import { timeOf, word } from './words.js';

/** The newest that are drawn at once. */
const SHOWN = 200;
const PREVIEW = 160;

export class Timeline {
  /** `listener.sessionId()` names the open session; `listener.openSource(message)` leads to a message; `listener.failed(problem)`. */
  constructor(root, listener) {
    this.root = root;
    this.listener = listener;
    this.summary = element('div', { className: 'timeline-summary' });
    this.earlier = bind(element('button', { type: 'button', className: 'text-button more', hidden: true }), 'show_earlier');
    this.line = element('ol', { className: 'timeline' });
    this.earlier.addEventListener('click', () => {
      this.shown += SHOWN;
      this.#draw();
    });
    root.append(this.summary, this.earlier, this.line);
  }

  async open() {
    const sessionId = this.listener.sessionId();
    if (this.sessionId !== sessionId) {
      this.line.replaceChildren();
      this.shown = SHOWN;
    }
    this.sessionId = sessionId;
    if (!sessionId) {
      this.earlier.hidden = true;
      this.summary.replaceChildren(bind(element('p', { className: 'panel-note' }), 'timeline_none'));
      return;
    }
    const reading = Symbol('reading');
    this.reading = reading;
    try {
      const [{ items, boundary }, changes] = await Promise.all([listMessages(sessionId), changesOf(sessionId)]);
      if (this.reading !== reading) return;
      const first = this.line.childElementCount === 0;
      this.messages = items;
      this.boundary = boundary;
      this.changes = changes.reverse();
      this.#draw();
      if (first) this.line.querySelector('.tidemark')?.scrollIntoView({ block: 'center' });
    } catch (problem) {
      if (this.reading === reading) this.listener.failed(problem);
    }
  }

  #draw() {
    const { messages, boundary } = this;
    this.#drawSummary();
    const start = Math.max(0, messages.length - this.shown);
    this.earlier.hidden = start === 0;
    const rows = [];
    const pending = [...this.changes];
    let marked = false;
    const mark = () => {
      if (!marked) rows.push(this.#tidemark());
      marked = true;
    };
    if (boundary === 0) mark();
    messages.forEach((message, at) => {
      // Before the first message that lies beyond it; a replaced branch may have taken the boundary's own message away.
      if (message.seq > boundary) mark();
      const next = messages[at + 1];
      const shown = at >= start;
      if (shown) rows.push(this.#message(message));
      while (pending.length > 0 && isBefore(pending[0], next)) {
        const change = pending.shift();
        if (shown) rows.push(this.#change(change));
      }
    });
    mark();
    this.line.replaceChildren(...rows);
  }

  #drawSummary() {
    const { messages, boundary } = this;
    const count = messages.length;
    const taken = messages.filter(({ seq }) => seq <= boundary).length;
    const text = bind(element('p', {}), 'timeline_summary', { taken, count });
    const filled = element('span', { className: 'gauge-filled' });
    filled.style.inlineSize = count > 0 ? `${(taken / count) * 100}%` : '0';
    this.summary.replaceChildren(element('div', { className: 'gauge', 'aria-hidden': 'true' }, filled), text);
  }

  #message(message) {
    const who = element('span', { className: 'timeline-who' });
    if (message.name) who.textContent = message.name;
    else word(who, 'role', message.role);
    const content = message.content.trim().replace(/\s+/g, ' ');
    const preview = content.length > PREVIEW ? `${content.slice(0, PREVIEW)}…` : content;
    const said = element('span', { className: 'timeline-text', dir: 'auto' }, preview);
    if (content === '' && message.tool_calls?.length) said.textContent = message.tool_calls.map(({ name }) => name).join(', ');
    const head = element('span', { className: 'timeline-head' }, who, timeOf(message.created_at));
    const button = element('button', { type: 'button', className: 'timeline-message' }, head, said);
    button.addEventListener('click', () => this.listener.openSource({ ...message, session_id: this.sessionId }));
    const row = element('li', { className: message.seq <= this.boundary ? 'moment is-taken' : 'moment' }, button);
    row.dataset.role = message.role;
    row.dataset.seq = message.seq;
    return row;
  }

  #change(change) {
    const { root } = new ChangeCard(change, { reverted: () => this.open() });
    return element('li', { className: 'moment is-change' }, root);
  }

  #tidemark() {
    const { boundary } = this;
    const beyond = this.messages.filter(({ seq }) => seq > boundary).length;
    const label = bind(element('p', { className: 'tidemark-label' }), boundary === 0 ? 'tidemark_none' : 'tidemark');
    const rest = bind(element('p', { className: 'tidemark-detail' }), 'tidemark_beyond', { count: beyond, boundary: boundary.toLocaleString(locale()) });
    return element('li', { className: 'tidemark' }, icon('wave', { square: false }), label, rest);
  }
}

/** Whether a change belongs before `next`: by the last message it took in, else by its time. */
function isBefore(change, next) {
  if (!next) return true;
  if (change.to_seq !== undefined) return change.to_seq < next.seq;
  return change.created_at < next.created_at;
}
