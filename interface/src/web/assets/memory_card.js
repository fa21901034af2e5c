// One memory with what a person can do about it: edit, pin, confirm, forget, and see its history. One that waits for confirmation says why.

import { isComposing } from './composer.js';
import { confirmed } from './dialog.js';
import { announce, element, icon } from './dom.js';
import { bind, bindAttribute, hasText, text } from './i18n.js';
import { changeMemory, forgetMemory, getMemory } from './memory_api.js';
import { showHistory } from './memory_history.js';
import { choice, KINDS, SCOPES, timeOf, word } from './words.js';

const IMPORTANCES = [1, 2, 3, 4, 5];
/** A text that is longer is cut until it is asked for. */
const LONG = 320;
const MANY_LINES = 6;

export class MemoryCard {
  /** `listener.forgotten(id)` when it is gone; `listener.openSource(source)` to show where it was said. */
  constructor(memory, listener) {
    this.listener = listener;
    this.root = element('li', { className: 'card' });
    this.body = element('div', { className: 'card-body' });
    this.problem = element('p', { className: 'card-problem', role: 'alert', hidden: true });
    this.history = element('div', { className: 'card-story', hidden: true });
    this.root.append(this.body, this.problem, this.history);
    this.show(memory);
  }

  show(memory) {
    this.memory = memory;
    this.root.dataset.memoryId = memory.id;
    this.root.dataset.state = memory.state;
    const reason = memory.state === 'quarantined' ? [this.#reason()] : [];
    this.body.replaceChildren(this.#content(), ...reason, element('div', { className: 'card-foot' }, this.#facts(), this.#actions()));
  }

  /** Why it waits for confirmation, in a paragraph that the button for it is described by. */
  #reason() {
    const { id, suspicion } = this.memory;
    const node = element('p', { className: 'card-waiting', id: `waiting-${id}` });
    const key = `waits_${suspicion}`;
    return bind(node, hasText(key) ? key : 'waits_unknown');
  }

  #content() {
    const { content } = this.memory;
    const node = element('p', { className: 'card-content', dir: 'auto' }, content);
    if (content.length <= LONG && content.split('\n').length <= MANY_LINES) return node;
    node.classList.add('is-cut');
    const more = bind(element('button', { type: 'button', className: 'text-button', 'aria-expanded': 'false' }), 'show_all');
    more.addEventListener('click', () => {
      const cut = node.classList.toggle('is-cut');
      more.setAttribute('aria-expanded', String(!cut));
      bind(more, cut ? 'show_all' : 'show_less');
    });
    return element('div', {}, node, more);
  }

  /** Something more about it, between its text and its buttons. */
  note(node) {
    this.body.insertBefore(node, this.body.lastChild);
  }

  #facts() {
    const { memory } = this;
    const facts = element('p', { className: 'card-facts' });
    if (memory.pinned) facts.append(bind(element('span', { className: 'card-pinned' }), 'pinned'));
    if (memory.state !== 'current') facts.append(word(element('span', { className: 'card-state' }), 'state', memory.state));
    facts.append(word(element('span', { className: 'card-scope' }), 'scope', memory.scope), word(element('span', {}), 'kind', memory.kind));
    if (memory.layer) facts.append(word(element('span', {}), 'layer', memory.layer));
    if (memory.speaker) facts.append(element('span', {}, memory.speaker));
    if (memory.created_at) facts.append(timeOf(memory.valid_from ?? memory.created_at));
    return facts;
  }

  #actions() {
    const { memory } = this;
    const actions = element('div', { className: 'card-actions' });
    const add = (name, key, onClick, attributes = {}) => {
      const button = element('button', { type: 'button', className: `icon-button memory-${name}`, ...attributes }, icon(name));
      bindAttribute(bindAttribute(button, 'aria-label', key), 'title', key);
      button.addEventListener('click', () => onClick(button));
      actions.append(button);
      return button;
    };
    if (memory.state === 'quarantined') {
      const confirm = this.#restore('confirm');
      confirm.classList.add('memory-confirm');
      confirm.setAttribute('aria-describedby', `waiting-${memory.id}`);
      actions.append(confirm);
    }
    if (memory.state === 'archived') actions.append(this.#restore('bring_back'));
    if (memory.state === 'current') {
      add('pin', memory.pinned ? 'unpin' : 'pin', () => this.#change({ pinned: !this.memory.pinned }, '.memory-pin'), { 'aria-pressed': String(memory.pinned) });
      add('rename', 'edit_memory', () => this.#edit());
    }
    add('history', 'history', (button) => this.#toggleHistory(button), { 'aria-expanded': String(!this.history.hidden) });
    add('delete', 'forget', () => this.#forget());
    return actions;
  }

  #restore(key) {
    const button = bind(element('button', { type: 'button', className: 'text-button' }), key);
    button.addEventListener('click', () => this.#change({ state: 'current' }, '.memory-history'));
    return button;
  }

  /** Whether it was changed; `focus` is the button that is to have the focus afterwards. */
  async #change(body, focus) {
    this.problem.hidden = true;
    try {
      this.show(await changeMemory(this.memory, body));
      this.history.hidden = true;
      this.body.querySelector(focus)?.focus();
      announce(text('saved'));
      return true;
    } catch (problem) {
      if (problem.status === 412) await this.#readAgain();
      else this.#fail(problem);
      return false;
    }
  }

  async #readAgain() {
    try {
      this.show(await getMemory(this.memory.id));
      bind(this.problem, 'changed_meanwhile');
      this.problem.hidden = false;
    } catch (problem) {
      this.#fail(problem);
    }
  }

  #fail(problem) {
    if (problem.status === 404) {
      this.#gone();
      return;
    }
    if (problem.status === 0) bind(this.problem, 'unreachable_now');
    else bind(this.problem, 'action_failed', { reason: problem.message });
    this.problem.hidden = false;
  }

  #gone() {
    const next = this.root.nextElementSibling ?? this.root.previousElementSibling;
    this.root.remove();
    next?.querySelector('button')?.focus();
    this.listener.forgotten?.(this.memory.id);
  }

  async #forget() {
    const subject = this.memory.content;
    if (!(await confirmed({ title: 'forget_title', detail: 'forget_detail', action: 'forget', subject }))) return;
    try {
      await forgetMemory(this.memory.id);
    } catch (problem) {
      if (problem.status !== 404) {
        this.#fail(problem);
        return;
      }
    }
    announce(text('forgotten'));
    this.#gone();
  }

  #edit() {
    const { memory } = this;
    const content = element('textarea', { className: 'card-input', rows: '3', maxlength: '4000' });
    bindAttribute(content, 'aria-label', 'memory_text');
    content.value = memory.content;
    const scope = choice({ label: 'scope', prefix: 'scope', values: SCOPES, value: memory.scope });
    const kind = choice({ label: 'kind', prefix: 'kind', values: KINDS, value: memory.kind });
    const importance = choice({ label: 'importance', prefix: 'importance', values: IMPORTANCES, value: String(memory.importance) });
    const cancel = bind(element('button', { type: 'button', className: 'button' }), 'cancel');
    const save = bind(element('button', { type: 'submit', className: 'button primary' }), 'save');
    const choices = element('div', { className: 'card-choices' }, scope.node, kind.node, importance.node);
    const form = element('form', { className: 'card-form' }, content, choices, element('div', { className: 'card-form-actions' }, cancel, save));
    const close = () => {
      this.show(this.memory);
      this.body.querySelector('.memory-rename')?.focus();
    };
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const wanted = { content: content.value.trim(), scope: scope.select.value, kind: kind.select.value, importance: Number(importance.select.value) };
      const changed = Object.fromEntries(Object.entries(wanted).filter(([name, value]) => value !== memory[name] && value !== ''));
      if (Object.keys(changed).length === 0) close();
      else this.#change(changed, '.memory-rename');
    });
    form.addEventListener('keydown', (event) => {
      if (isComposing(event)) return;
      if (event.key === 'Escape') {
        event.preventDefault();
        close();
      } else if (event.key === 'Enter' && event.target === content && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    cancel.addEventListener('click', close);
    this.body.replaceChildren(form);
    content.focus();
  }

  async #toggleHistory(button) {
    const open = this.history.hidden;
    this.history.hidden = !open;
    button.setAttribute('aria-expanded', String(open));
    if (!open) return;
    try {
      await showHistory(this.history, this.memory.id, this.listener.openSource);
    } catch (problem) {
      this.history.hidden = true;
      button.setAttribute('aria-expanded', 'false');
      this.#fail(problem);
    }
  }
}
