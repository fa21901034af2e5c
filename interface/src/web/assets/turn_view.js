// One turn on the page: the question, what was recalled, the tools used, the answer, and how it stands.

import { isTerminal } from './api.js';
import { announce, copyText, element, icon } from './dom.js';
import { bind, bindAttribute, text as textOf, unbind } from './i18n.js';
import { MarkdownView } from './markdown.js';
import { showMemories } from './memories.js';
import { editQuestion } from './question_editor.js';

/** After this long without a word people begin to doubt; the status then says that the answer is safe. */
const LONG_THOUGHT_S = 20;

export class TurnView {
  /** `actions.resend(view, message)`, `actions.explain(view)`, `actions.sendNow()` and `actions.discard()` answer the buttons. */
  constructor({ id, message, actions }) {
    this.actions = actions;
    this.message = message;
    this.text = '';
    this.tools = new Map();
    this.#build();
    this.question.textContent = message ?? '';
    if (id) this.identify(id);
  }

  #build() {
    this.question = element('p', { className: 'question-text' });
    this.edit = bindAttribute(bindAttribute(element('button', { type: 'button', className: 'icon-button edit' }, icon('rename')), 'aria-label', 'edit_question'), 'title', 'edit_question');
    this.edit.addEventListener('click', () => editQuestion(this.question.parentElement, this.message, (text) => this.actions.resend(this, text)));
    const you = bind(element('h2', { className: 'hidden-text' }), 'you');
    this.memories = element('div', { className: 'memories', hidden: true });
    this.toolList = element('ul', { className: 'tools', hidden: true });
    this.answer = element('div', { className: 'answer' });
    this.markdown = new MarkdownView(this.answer);
    this.trouble = element('p', { className: 'trouble', hidden: true });
    this.status = element('span', { className: 'status' });
    this.copy = button('copy', 'copy', () => copyText(this.text, this.copy.lastChild));
    this.again = button('retry', 'retry', () => this.actions.resend(this, this.message));
    this.sendNow = button('retry', 'send_again', () => this.actions.sendNow());
    this.discard = button('close', 'discard', () => this.actions.discard());
    this.foot = element('div', { className: 'turn-foot' }, this.status, this.copy, this.again, this.sendNow, this.discard);
    this.root = element(
      'article',
      { className: 'turn' },
      element('div', { className: 'question-place' }, element('div', { className: 'question' }, you, this.edit, this.question)),
      element('div', { className: 'reply' }, this.memories, this.toolList, this.answer, this.trouble, this.foot),
    );
    for (const one of [this.edit, this.copy, this.again, this.sendNow, this.discard]) one.hidden = true;
  }

  identify(id) {
    this.id = id;
    this.root.dataset.turnId = id;
  }

  ask(message) {
    this.message = message;
    this.question.textContent = message;
  }

  get isFinished() {
    return isTerminal(this.state);
  }

  // --- On the way to the server ---

  showPending(entry) {
    this.#setState('pending');
    const refused = entry.refused;
    this.sendNow.hidden = this.discard.hidden = !refused;
    if (!refused) bind(this.status, 'sending');
    else if (refused.code === 'expired') this.#showTrouble('send_expired');
    else this.#showTrouble('send_refused', { reason: refused.detail ?? refused.title ?? refused.code });
  }

  /** It is tried again after `wait` milliseconds. */
  showDelayed(problem, wait) {
    this.#setState('pending');
    if (problem.status === 429) bind(this.status, problem.code === 'too_many_tokens' ? 'send_tomorrow' : 'send_limited', { seconds: Math.ceil(wait / 1000) });
    else bind(this.status, 'send_delayed');
    this.sendNow.hidden = this.discard.hidden = false;
  }

  // --- While it is worked on: the events of the stream ---

  showQueued() {
    this.#clearPending();
    this.#setState('queued');
    bind(this.status, 'queued');
  }

  showRunning(startedAt) {
    this.#clearPending();
    // A clock that runs behind the server's must not show negative seconds.
    this.since = Math.min(startedAt ? Date.parse(startedAt) : Date.now(), Date.now());
    this.answer.setAttribute('aria-live', 'polite');
    // Held back until the answer is whole, so that it is read once instead of word by word.
    this.answer.setAttribute('aria-busy', 'true');
    this.#setState('running');
    clearInterval(this.clock);
    this.clock = setInterval(() => this.#tick(), 1000);
    this.#tick();
  }

  append(token) {
    this.text += token;
    this.#drawSoon();
    if (this.phase !== 'answering') this.#tick();
  }

  replace(text) {
    this.text = text;
    this.#drawSoon();
    this.#tick();
  }

  recall(memories) {
    this.recalled = memories ?? [];
    showMemories(this.memories, this.recalled, () => this.actions.explain(this));
  }

  tool({ call_id: id, name, state, summary, took_ms: took }) {
    let row = this.tools.get(id);
    if (!row) {
      row = { name, label: element('span', { className: 'tool-name' }, name), state: element('span', { className: 'tool-state' }), summary: element('span', { className: 'tool-summary' }) };
      row.item = element('li', { className: 'tool' }, icon('tool'), row.label, row.state, row.summary);
      this.tools.set(id, row);
      this.toolList.append(row.item);
      this.toolList.hidden = false;
    }
    row.item.dataset.state = row.stateName = state;
    bind(row.state, `tool_${state}`);
    row.summary.textContent = [summary, typeof took === 'number' ? `${took} ms` : null].filter(Boolean).join(' · ');
    this.#tick();
  }

  showStopping() {
    this.stopping = true;
    this.#tick();
  }

  /** A stop that did not reach the server. */
  stopFailed() {
    this.stopping = false;
    this.#tick();
  }

  // --- Its end, from the `done` event or from the stored turn ---

  finish({ status, text = '', finish_reason: reason, problem, memories }, { quiet = false } = {}) {
    clearInterval(this.clock);
    this.#clearPending();
    this.stopping = false;
    this.text = text;
    this.#draw();
    if (memories) this.recall(memories);
    this.answer.setAttribute('aria-busy', 'false');
    this.#setState(status);
    this.#showOutcome(status, reason, problem);
    if (!quiet) announce(textOf(`status_${status}`));
  }

  showGone() {
    clearInterval(this.clock);
    this.#setState('gone');
    this.#showTrouble('gone');
  }

  #showOutcome(status, reason, problem) {
    unbind(this.status);
    this.status.textContent = '';
    this.copy.hidden = this.text === '';
    this.again.hidden = this.edit.hidden = !this.id || !this.message;
    this.trouble.hidden = true;
    if (status === 'completed') {
      if (reason === 'length') bind(this.status, 'cut_off');
      return;
    }
    if (status === 'cancelled') {
      bind(this.status, 'status_cancelled');
      return;
    }
    this.#showTrouble(`status_${status}`);
    const detail = problem?.detail ?? problem?.title ?? problem?.code;
    if (detail) this.trouble.append(element('span', { className: 'trouble-detail' }, detail));
    if (problem?.code) this.root.dataset.problem = problem.code;
  }

  #showTrouble(key, parameters) {
    unbind(this.status);
    this.status.textContent = '';
    this.trouble.replaceChildren(icon('alert'), bind(element('span', {}), key, parameters));
    this.trouble.hidden = false;
  }

  #clearPending() {
    this.edit.hidden = this.sendNow.hidden = this.discard.hidden = this.trouble.hidden = true;
  }

  #setState(state) {
    this.state = state;
    this.root.dataset.status = state;
  }

  #tick() {
    if (this.state !== 'running') {
      if (this.stopping) bind(this.status, 'stopping');
      else if (this.state === 'queued') bind(this.status, 'queued');
      return;
    }
    const seconds = Math.floor((Date.now() - this.since) / 1000);
    const tool = [...this.tools.values()].find((row) => row.stateName === 'started' || row.stateName === 'progress');
    this.phase = this.text === '' ? 'thinking' : 'answering';
    if (this.stopping) bind(this.status, 'stopping');
    else if (tool) bind(this.status, 'using_tool', { name: tool.name, seconds });
    else if (this.phase === 'thinking' && seconds >= LONG_THOUGHT_S) bind(this.status, 'thinking_long', { seconds });
    else bind(this.status, this.phase, { seconds });
  }

  #drawSoon() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.markdown.show(this.text);
  }

  /** Leaves the page while the turn itself goes on at the server. */
  dispose() {
    clearInterval(this.clock);
    cancelAnimationFrame(this.frame);
  }
}

function button(iconName, key, onClick) {
  const node = element('button', { type: 'button', className: `foot-button ${key.replace('_', '-')}` }, icon(iconName), bind(element('span', {}), key));
  bindAttribute(node, 'title', key);
  node.addEventListener('click', onClick);
  return node;
}
