// The open session: its history, the turn that is being answered, and the messages still on their way.

import { cancelTurn, getSession, getTurn, isTerminal, listMessages } from './api.js';
import { turnsOf } from './history.js';
import { read, remove, write } from './storage.js';
import { TurnStream } from './turn_stream.js';
import { TurnView } from './turn_view.js';

const RUNNING = 'tidemark.running.';

/** Turns of a session that this browser has seen accepted and not yet seen closed. */
const remembered = (sessionId) => read(RUNNING + sessionId, []);

export function rememberTurn(sessionId, turnId) {
  const turns = remembered(sessionId);
  if (!turns.includes(turnId)) write(RUNNING + sessionId, [...turns, turnId]);
}

function forgetTurn(sessionId, turnId) {
  const rest = remembered(sessionId).filter((other) => other !== turnId);
  if (rest.length > 0) write(RUNNING + sessionId, rest);
  else remove(RUNNING + sessionId);
}

export class Conversation {
  /** `listener.changed()` after anything that the page around it shows; `listener.finished(sessionId)` after a turn's end. */
  constructor(root, outbox, listener) {
    this.root = root;
    this.outbox = outbox;
    this.listener = listener;
    // Details of past turns (what was recalled, why it failed) are fetched when they come near the view.
    this.nearby = new IntersectionObserver((seen) => this.#fetchDetails(seen), { rootMargin: '1000px' });
    this.#clear();
  }

  get running() {
    return this.unfinished[0];
  }

  /** The last turn that the server has. */
  get lastTurn() {
    return [...this.turns.values()].at(-1);
  }

  /** Where a message of this session stands on the page. */
  viewOf({ turn_id: turnId, seq }) {
    return this.turns.get(turnId)?.root ?? this.imported.find((view) => seq <= view.lastSeq)?.root;
  }

  /** Whether an answer, or the server's word on a message, is still awaited. */
  get isBusy() {
    return this.unfinished.length + this.pending.size > 0;
  }

  get isEmpty() {
    return this.root.childElementCount === 0;
  }

  #clear() {
    this.opening = Symbol('opening');
    this.session = undefined;
    this.sessionId = undefined;
    this.turns?.forEach((view) => view.dispose());
    this.turns = new Map();
    this.imported = [];
    this.pending = new Map();
    this.unfinished = [];
    this.stream?.close();
    this.stream = undefined;
    this.nearby.disconnect();
    this.root.replaceChildren();
  }

  /** A conversation that has no session yet; its first message makes one. */
  openNew() {
    this.#clear();
    this.listener.changed();
  }

  /** Throws the problem when the session cannot be read. What is shown of the same session stays until then. */
  async open(sessionId) {
    const again = this.sessionId === sessionId;
    if (!again) this.#clear();
    this.sessionId = sessionId;
    const opening = Symbol('opening');
    this.opening = opening;
    this.listener.changed();
    // In this order: a turn that ends between the two is then in the messages and still known by its id.
    const session = await getSession(sessionId);
    const { items: messages } = await listMessages(sessionId);
    if (this.opening !== opening) return;
    if (again) {
      this.#clear();
      this.sessionId = sessionId;
      this.opening = opening;
    }
    this.session = session;
    const active = new Set(remembered(sessionId));
    if (session.active_turn_id) active.add(session.active_turn_id);
    this.#showHistory(turnsOf(messages), active);
    await this.#takeUp([...active].sort(), opening);
    if (this.opening !== opening) return;
    for (const entry of this.outbox.of(sessionId)) this.showEntry(entry);
    this.listener.changed();
    this.#followNext();
  }

  #showHistory(groups, active) {
    for (const group of groups) {
      // A message sent while the history was still being read has its view already.
      const view = this.turns.get(group.turnId) ?? this.#addView({ id: group.turnId, message: group.question });
      if (active.has(group.turnId)) continue;
      for (const call of group.calls) view.tool({ call_id: call.id, name: call.name, state: call.answered ? 'finished' : 'failed' });
      if (group.answer !== undefined || !group.turnId) {
        view.finish({ status: group.partial ? 'cancelled' : 'completed', text: group.answer }, { quiet: true });
      }
      if (group.turnId) {
        this.nearby.observe(view.root);
      } else {
        view.lastSeq = group.lastSeq;
        this.imported.push(view);
      }
    }
  }

  /** Finds out how the turns stand that may be unfinished, oldest first (ids rise with time). */
  async #takeUp(turnIds, opening) {
    for (const id of turnIds) {
      let turn;
      try {
        turn = await getTurn(id);
      } catch (problem) {
        if (problem.status === 404) {
          forgetTurn(this.sessionId, id);
          continue;
        }
        throw problem;
      }
      if (this.opening !== opening) return;
      this.#showTurn(turn);
      this.root.append(this.turns.get(id).root);
    }
  }

  #showTurn(turn) {
    const view = this.turns.get(turn.id) ?? this.#addView({ id: turn.id, message: turn.message });
    if (turn.message) view.ask(turn.message);
    if (isTerminal(turn.status)) {
      forgetTurn(this.sessionId, turn.id);
      view.finish({ ...turn, text: turn.text ?? view.text }, { quiet: true });
      return;
    }
    if (turn.status === 'queued') view.showQueued();
    else view.showRunning(turn.started_at ?? turn.created_at);
    if (!this.unfinished.includes(view)) this.unfinished.push(view);
  }

  #addView({ id, message }) {
    const view = new TurnView({ id, message, actions: this.#actions() });
    if (id) this.turns.set(id, view);
    this.root.append(view.root);
    return view;
  }

  #actions() {
    return { resend: (view, message) => this.listener.resend(view, message), explain: (view) => this.listener.explain(view) };
  }

  async #fetchDetails(seen) {
    for (const { isIntersecting, target } of seen) {
      if (!isIntersecting) continue;
      this.nearby.unobserve(target);
      const opening = this.opening;
      const view = this.turns.get(target.dataset.turnId);
      const turn = await getTurn(target.dataset.turnId).catch(() => null);
      if (this.opening !== opening || !turn || !view || this.unfinished.includes(view)) continue;
      this.#showTurn(turn);
      if (this.unfinished.includes(view)) this.#followNext();
    }
  }

  /** Whether something was said here elsewhere, on another device for example. Never while this page itself waits for something. */
  async isBehind() {
    const { opening, session } = this;
    if (!session || this.isBusy) return false;
    const now = await getSession(session.id).catch(() => null);
    if (!now || this.opening !== opening || this.isBusy) return false;
    return now.message_count !== this.session.message_count || Boolean(now.active_turn_id);
  }

  // --- Messages on their way ---

  showEntry(entry) {
    let view = this.pending.get(entry.key);
    if (!view) {
      view = new TurnView({
        message: entry.message,
        actions: { ...this.#actions(), sendNow: () => this.#sendNow(entry), discard: () => this.#discard(entry) },
      });
      this.pending.set(entry.key, view);
    }
    this.root.append(view.root);
    for (const root of this.#replacedBy(entry)) root.hidden = true;
    view.showPending(entry);
    this.listener.changed();
  }

  showDelay(entry, problem, wait) {
    this.pending.get(entry.key)?.showDelayed(problem, wait);
  }

  #sendNow(entry) {
    this.outbox.retry(entry);
    this.showEntry(entry);
  }

  #discard(entry) {
    this.outbox.discard(entry);
    for (const root of this.#replacedBy(entry)) root.hidden = false;
    this.pending.get(entry.key)?.root.remove();
    this.pending.delete(entry.key);
    this.listener.changed();
  }

  /** The views of the turn that `entry` replaces and of all after it. */
  #replacedBy(entry) {
    const views = [...this.root.children];
    const first = views.indexOf(this.turns.get(entry.replaces)?.root);
    if (first < 0) return [];
    const waiting = new Set([...this.pending.values()].map((view) => view.root));
    return views.slice(first).filter((root) => !waiting.has(root));
  }

  #dropReplaced(entry) {
    for (const root of this.#replacedBy(entry)) {
      this.turns.get(root.dataset.turnId)?.dispose();
      this.turns.delete(root.dataset.turnId);
      this.nearby.unobserve(root);
      root.remove();
    }
  }

  /** The new session that `entry` has made becomes the open one. */
  adopt(entry, session) {
    if (!this.pending.has(entry.key)) return false;
    this.sessionId = session.id;
    this.session = session;
    return true;
  }

  accept(entry, turn) {
    const view = this.pending.get(entry.key);
    if (!view) return;
    this.#dropReplaced(entry);
    this.pending.delete(entry.key);
    if (this.turns.has(turn.turn_id)) {
      view.root.remove();
      return;
    }
    view.identify(turn.turn_id);
    this.turns.set(turn.turn_id, view);
    if (this.unfinished.length > 0 || turn.status === 'queued') view.showQueued();
    else view.showRunning();
    this.unfinished.push(view);
    this.listener.changed();
    this.#followNext();
  }

  // --- The turn being answered ---

  /** One stream a view: a queued turn is followed once those before it have ended. */
  #followNext() {
    const view = this.unfinished[0];
    if (!view || this.stream?.turnId === view.id) return;
    this.stream?.close();
    const sessionId = this.sessionId;
    const started = () => {
      if (view.state !== 'running') view.showRunning();
      this.listener.changed();
    };
    this.stream = new TurnStream(view.id, {
      start: ({ status }) => {
        if (status !== 'queued') started();
        else if (view.state !== 'running') view.showQueued();
      },
      recall: ({ memories }) => {
        started();
        view.recall(memories);
      },
      message: ({ token }) => {
        if (view.state !== 'running') started();
        view.append(token);
      },
      tool: (event) => view.tool(event),
      reset: () => view.replace(''),
      snapshot: ({ text }) => {
        started();
        view.replace(text);
      },
      done: (turn) => {
        view.finish(turn);
        this.#left(sessionId, view);
      },
      gone: () => {
        view.showGone();
        this.#left(sessionId, view);
      },
    });
  }

  async #left(sessionId, view) {
    forgetTurn(sessionId, view.id);
    this.stream = undefined;
    this.unfinished = this.unfinished.filter((other) => other !== view);
    this.listener.changed();
    this.listener.finished(sessionId);
    this.#followNext();
    if (this.unfinished.length > 0) return;
    // Another device may have queued a turn meanwhile.
    const opening = this.opening;
    const session = await getSession(sessionId).catch(() => null);
    if (!session || this.opening !== opening) return;
    this.session = session;
    if (!session.active_turn_id || this.turns.get(session.active_turn_id)?.isFinished) return;
    await this.#takeUp([session.active_turn_id], opening).catch(() => {});
    if (this.opening === opening) this.#followNext();
  }

  /** Stops the turn that is being answered; the part written so far is kept. */
  async stop() {
    const view = this.running;
    if (!view || view.stopping) return;
    view.showStopping();
    try {
      await cancelTurn(view.id);
    } catch (problem) {
      if (!view.isFinished) view.stopFailed();
      throw problem;
    }
  }
}
