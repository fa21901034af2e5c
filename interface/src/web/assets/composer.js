// The message box.

import { bind } from './i18n.js';

const DRAFT = 'tidemark.draft.';

/** A key that belongs to an input method: Safari reports the Enter that ends a composition only as key code 229. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

export class Composer {
  /** `listener.send(message)`, `listener.stop()`. */
  constructor(listener) {
    this.listener = listener;
    this.form = document.getElementById('composer');
    this.input = document.getElementById('message');
    this.sendButton = document.getElementById('send');
    this.stopButton = document.getElementById('stop');
    this.hint = this.form.querySelector('.hint');
    this.draftKey = 'new';

    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#send();
    });
    this.input.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.altKey || isComposing(event)) return;
      event.preventDefault();
      this.#send();
    });
    this.input.addEventListener('input', () => {
      this.#saveDraft();
      this.#fit();
    });
    this.stopButton.addEventListener('click', () => {
      this.listener.stop();
      this.focus();
    });
    document.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented || isComposing(event)) return;
      // Inside a dialog or the open drawer Escape closes these.
      if (document.querySelector('dialog[open], .drawer-open')) return;
      if (!this.stopButton.hidden) this.listener.stop();
    });
    this.form.addEventListener('click', (event) => {
      if (event.target === this.form || event.target.classList.contains('composer-row')) this.input.focus();
    });
  }

  /** Shows the draft of another session. */
  open(sessionId) {
    this.draftKey = sessionId ?? 'new';
    try {
      this.input.value = sessionStorage.getItem(DRAFT + this.draftKey) ?? '';
    } catch {
      this.input.value = '';
    }
    this.#fit();
  }

  write(text) {
    this.input.value = text;
    this.#saveDraft();
    this.#fit();
    this.focus();
  }

  showRunning(running) {
    this.stopButton.hidden = !running;
    bind(this.hint, running ? 'composer_hint_running' : 'composer_hint');
  }

  showTemporary(temporary) {
    this.form.classList.toggle('is-temporary', temporary);
  }

  /** On touch screens focus would open the keyboard over what the person wants to read. */
  focus() {
    if (matchMedia('(pointer: fine)').matches) this.input.focus({ preventScroll: true });
  }

  #send() {
    const message = this.input.value.trim();
    if (message === '') return;
    this.input.value = '';
    this.#saveDraft();
    this.#fit();
    this.listener.send(message);
    this.input.focus({ preventScroll: true });
  }

  #saveDraft() {
    try {
      if (this.input.value === '') sessionStorage.removeItem(DRAFT + this.draftKey);
      else sessionStorage.setItem(DRAFT + this.draftKey, this.input.value);
    } catch {
      // A draft is a convenience.
    }
  }

  #fit() {
    this.sendButton.disabled = this.input.value.trim() === '';
    this.input.style.height = 'auto';
    this.input.style.height = `${this.input.scrollHeight}px`;
  }
}
