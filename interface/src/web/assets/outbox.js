// Messages on their way to the server. An entry is stored before its first attempt and removed only when the
// server has acknowledged it, and every attempt carries the same idempotency keys: neither a reload nor a failed
// request loses a message or sends it twice.

import { createSession, createTurn } from './api.js';
import { read, remove, write } from './storage.js';

const PREFIX = 'tidemark.outbox.';
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000, 15_000];
/** The server keeps idempotency keys for 24 h; an older entry might be sent twice and waits for the person. */
const KEY_LIFETIME_MS = 23 * 3600 * 1000;
const TITLE_LENGTH = 60;

export class Outbox {
  /**
   * `onSession(entry, session)`: the entry's session now exists. `onAccepted(entry, turn)`: the server has it.
   * `onDelay(entry, problem, wait)`: another attempt follows after so many milliseconds. `onRefused(entry, problem)`: only a person can go on.
   */
  constructor(listener) {
    this.listener = listener;
    this.items = stored();
    this.pauses = new Map();
    this.chains = new Map();
  }

  /** Takes up what an earlier page left behind. */
  resume() {
    for (const entry of this.items) {
      if (Date.now() - entry.created > KEY_LIFETIME_MS) entry.refused = { code: 'expired' };
      else this.#enqueue(entry);
    }
  }

  /**
   * Without `sessionId` the message opens a session, or joins the one that the entry `after` is about to open. `replaces` is the turn
   * whose place it takes.
   */
  add({ sessionId, message, memory, after, replaces }) {
    const entry = { key: newKey(), sessionId, message, memory, replaces, created: Date.now() };
    if (!sessionId) {
      const body = { title: titleOf(message), memory, channel: 'web' };
      entry.newSession = after?.newSession ?? { key: newKey(), body };
    }
    this.items.push(entry);
    persist(entry);
    this.#enqueue(entry);
    return entry;
  }

  /** A new attempt now, after a refusal or instead of waiting. */
  retry(entry) {
    const wake = this.pauses.get(entry.key);
    if (wake) {
      wake();
    } else if (entry.refused) {
      delete entry.refused;
      this.#enqueue(entry);
    }
  }

  discard(entry) {
    this.items = this.items.filter((other) => other !== entry);
    remove(PREFIX + entry.key);
    this.pauses.get(entry.key)?.();
  }

  of(sessionId) {
    return this.items.filter((entry) => entry.sessionId === sessionId);
  }

  /** One chain per session, so that messages arrive in the order in which they were written. */
  #enqueue(entry) {
    const chain = entry.sessionId ?? entry.newSession.key;
    const previous = this.chains.get(chain) ?? Promise.resolve();
    this.chains.set(chain, previous.then(() => this.#deliver(entry)));
  }

  async #deliver(entry) {
    for (let attempt = 0; this.items.includes(entry); attempt += 1) {
      try {
        await this.#send(entry);
        return;
      } catch (problem) {
        if (!problem.isPassing) {
          entry.refused = { code: problem.code, title: problem.title, detail: problem.detail };
          this.listener.onRefused(entry, problem);
          return;
        }
        const wait = problem.retryAfter ?? BACKOFF_MS[Math.min(attempt, BACKOFF_MS.length - 1)];
        // A key that the server still works on is the ordinary outcome of a reload: no reason to worry anybody.
        if (problem.status !== 409) this.listener.onDelay(entry, problem, wait);
        await this.#pause(entry, wait);
      }
    }
  }

  async #send(entry) {
    if (!entry.sessionId) await this.#openSession(entry);
    const body = { message: entry.message, memory: entry.memory, replaces: entry.replaces };
    const turn = await createTurn(entry.sessionId, body, entry.key);
    this.discard(entry);
    this.listener.onAccepted(entry, turn);
  }

  async #openSession(entry) {
    const { key, body } = entry.newSession;
    const session = await createSession(body, key);
    for (const other of this.items) {
      if (other.newSession?.key !== key) continue;
      other.sessionId = session.id;
      persist(other);
    }
    this.chains.set(session.id, this.chains.get(key));
    this.listener.onSession(entry, session);
  }

  #pause(entry, milliseconds) {
    return new Promise((resolve) => {
      const wake = () => {
        window.removeEventListener('online', wake);
        clearTimeout(timer);
        this.pauses.delete(entry.key);
        resolve();
      };
      const timer = setTimeout(wake, milliseconds);
      window.addEventListener('online', wake);
      this.pauses.set(entry.key, wake);
    });
  }
}

function stored() {
  const entries = [];
  try {
    for (let index = 0; index < localStorage.length; index += 1) {
      const key = localStorage.key(index);
      if (key.startsWith(PREFIX)) entries.push(read(key));
    }
  } catch {
    return [];
  }
  return entries.filter((entry) => entry?.key && entry.message).sort((a, b) => a.created - b.created);
}

/** Random and unique; `crypto.randomUUID` is kept from pages that came without TLS from another machine. */
function newKey() {
  return crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const persist = (entry) => write(PREFIX + entry.key, entry);

function titleOf(message) {
  const line = message.trim().split('\n', 1)[0].replace(/\s+/g, ' ');
  const characters = [...line];
  return characters.length <= TITLE_LENGTH ? line : `${characters.slice(0, TITLE_LENGTH - 1).join('').trimEnd()}…`;
}
