// Follows one turn from any position to its end: EventSource while it works, the stored turn when it does not.

import { eventsOf, getTurn, isTerminal } from './api.js';
import { takeSlot } from './stream_slots.js';

const OPEN_WITHIN_MS = 3000;
const POLL_MS = 2000;
const BACKOFF_MS = [250, 500, 1000, 2000, 4000, 8000];
/** After so many refused reconnects the cursor itself is doubted, and the turn is read from its start. */
const DOUBT_CURSOR_AFTER = 4;
const EVENTS = ['start', 'recall', 'message', 'tool', 'reset', 'snapshot'];

export class TurnStream {
  /**
   * The listener has a method for each event of the contract (`start`, `recall`, `message`, `tool`, `reset`,
   * `snapshot`) plus `done(turn)`, called exactly once, and `gone()` when the turn no longer exists.
   */
  constructor(turnId, listener) {
    this.turnId = turnId;
    this.listener = listener;
    this.lastSeq = 0;
    this.failures = 0;
    this.closed = false;
    this.wake = () => {
      if (document.visibilityState === 'visible') this.#poll();
    };
    document.addEventListener('visibilitychange', this.wake);
    window.addEventListener('online', this.wake);
    this.#open();
  }

  close() {
    this.closed = true;
    this.#drop();
    clearTimeout(this.reopenTimer);
    clearTimeout(this.pollTimer);
    document.removeEventListener('visibilitychange', this.wake);
    window.removeEventListener('online', this.wake);
  }

  /** Ends the connection, and lets another tab have its place. */
  #drop() {
    this.source?.close();
    this.release?.();
    this.release = undefined;
  }

  async #open() {
    if (this.closed) return;
    const release = await takeSlot();
    if (this.closed) {
      release?.();
      return;
    }
    if (!release) {
      await this.#poll();
      if (!this.closed) this.reopenTimer = setTimeout(() => this.#open(), POLL_MS);
      return;
    }
    this.#drop();
    this.release = release;
    const url = eventsOf(this.turnId) + (this.lastSeq > 0 ? `?after=${this.lastSeq}` : '');
    const source = new EventSource(url);
    this.source = source;
    this.#pollUnlessOpen();
    source.onopen = () => clearTimeout(this.pollTimer);
    source.onerror = () => {
      if (this.closed || source !== this.source) return;
      // While CONNECTING the browser reconnects by itself, with Last-Event-ID; CLOSED is final for this object.
      if (source.readyState === EventSource.CLOSED) this.#reopen();
      else this.#pollUnlessOpen();
    };
    for (const type of EVENTS) {
      source.addEventListener(type, (event) => this.#take(source, event, (data) => this.listener[type]?.(data)));
    }
    source.addEventListener('done', (event) => this.#take(source, event, (data) => this.#finish(data)));
  }

  #take(source, event, apply) {
    if (this.closed || source !== this.source) return;
    const data = JSON.parse(event.data);
    if (data.seq <= this.lastSeq) return;
    this.lastSeq = data.seq;
    this.failures = 0;
    apply(data);
  }

  async #reopen() {
    clearTimeout(this.pollTimer);
    this.#drop();
    // The usual reason for a refusal is that the turn is over (204), which its stored form tells at once.
    await this.#poll();
    if (this.closed) return;
    const delay = BACKOFF_MS[Math.min(this.failures, BACKOFF_MS.length - 1)];
    this.failures += 1;
    if (this.failures > DOUBT_CURSOR_AFTER && this.lastSeq > 0) {
      this.lastSeq = 0;
      this.listener.reset({ reason: 'replay' });
    }
    clearTimeout(this.reopenTimer);
    this.reopenTimer = setTimeout(() => this.#open(), delay + Math.random() * delay * 0.3);
  }

  #pollUnlessOpen() {
    clearTimeout(this.pollTimer);
    const poll = async () => {
      await this.#poll();
      if (!this.closed && this.source?.readyState !== EventSource.OPEN) this.pollTimer = setTimeout(poll, POLL_MS);
    };
    this.pollTimer = setTimeout(poll, OPEN_WITHIN_MS);
  }

  async #poll() {
    try {
      const turn = await getTurn(this.turnId);
      if (!this.closed && isTerminal(turn.status)) this.#finish(turn);
    } catch (problem) {
      if (!this.closed && problem.status === 404) {
        this.close();
        this.listener.gone();
      }
    }
  }

  #finish(turn) {
    this.close();
    this.listener.done(turn);
  }
}
