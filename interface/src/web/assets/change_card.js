// One change of what is remembered: what it did to which memory, and the way to undo it as a whole.

import { announce, element } from './dom.js';
import { bind, text } from './i18n.js';
import { confirmed } from './dialog.js';
import { getMemory, revertChange } from './memory_api.js';
import { timeOf, word } from './words.js';

/** Names of lost and gained values that a person reads as sentences; others are told by their names. */
const VALUES = { content: (value) => String(value), valid_to: (value) => timeOf(value), valid_from: (value) => timeOf(value) };

export class ChangeCard {
  /** `listener.reverted(change)` after it was undone. */
  constructor(change, listener) {
    this.change = change;
    this.listener = listener;
    this.root = element('div', { className: 'change' });
    this.root.dataset.changeId = change.id;
    this.root.dataset.kind = change.kind;
    this.problem = element('p', { className: 'card-problem', role: 'alert', hidden: true });
    this.#build();
  }

  #build() {
    const { change } = this;
    this.root.classList.toggle('is-reverted', Boolean(change.reverted_by));
    const title = element('p', { className: 'change-title' }, word(element('strong', {}), 'change', change.kind), ' ', timeOf(change.created_at));
    if (change.to_seq !== undefined) title.append(' ', bind(element('span', { className: 'change-range' }), 'change_range', { from: change.from_seq + 1, to: change.to_seq }));
    this.root.replaceChildren(title, this.#summary(), this.problem);
    const actions = element('div', { className: 'change-actions' });
    if (change.reverted_by) {
      actions.append(bind(element('span', { className: 'card-state' }), 'change_reverted'));
    } else if (change.revertible) {
      const undo = bind(element('button', { type: 'button', className: 'text-button undo' }), 'undo');
      undo.addEventListener('click', () => this.#undo(undo));
      actions.append(undo);
    }
    if (actions.childElementCount > 0) this.root.append(actions);
  }

  /** How many memories it made, ended and so on; with the memories themselves on demand. */
  #summary() {
    const counts = new Map();
    for (const { op } of this.change.items) counts.set(op, (counts.get(op) ?? 0) + 1);
    if (counts.size === 0) return bind(element('p', { className: 'change-summary' }), 'change_nothing');
    const summary = element('summary', {});
    for (const [op, count] of counts) summary.append(bindCount(op, count));
    const list = element('ul', { className: 'change-items' });
    const details = element('details', { className: 'change-summary' }, summary, list);
    details.addEventListener('toggle', () => {
      if (details.open && list.childElementCount === 0) this.#showItems(list);
    });
    return details;
  }

  #showItems(list) {
    for (const item of this.change.items) {
      const content = element('span', { className: 'change-content', dir: 'auto' });
      const row = element('li', {}, word(element('span', { className: 'change-op' }), 'op', item.op), ' ', content);
      list.append(row);
      if (item.before?.content || item.after?.content) this.#showEdit(content, item);
      else this.#showMemory(content, item);
    }
  }

  #showEdit(content, { before, after }) {
    if (before?.content) content.append(element('del', {}, VALUES.content(before.content)), ' ');
    if (after?.content) content.append(element('ins', {}, VALUES.content(after.content)));
  }

  async #showMemory(content, { memory_id: id, op }) {
    const memory = op === 'removed' ? null : await getMemory(id).catch(() => null);
    if (memory) content.textContent = memory.content;
    else bind(content, 'memory_gone');
  }

  async #undo(button) {
    const kind = text(`change_${this.change.kind}`);
    if (!(await confirmed({ title: 'undo_title', detail: `undo_detail_${this.change.kind === 'consolidation' ? 'consolidation' : 'other'}`, action: 'undo', subject: kind }))) return;
    button.disabled = true;
    this.problem.hidden = true;
    try {
      const undoing = await revertChange(this.change.id);
      this.change = { ...this.change, reverted_by: undoing.id, revertible: false };
      announce(text('change_reverted'));
      this.#build();
      this.listener.reverted(this.change);
    } catch (problem) {
      button.disabled = false;
      if (problem.code === 'changed_since') bind(this.problem, 'undo_changed_since');
      else if (problem.status === 0) bind(this.problem, 'unreachable_now');
      else bind(this.problem, 'action_failed', { reason: problem.message });
      this.problem.hidden = false;
    }
  }
}

function bindCount(op, count) {
  return element('span', { className: 'change-count' }, word(element('span', {}), 'op', op), ` ${count}`);
}
