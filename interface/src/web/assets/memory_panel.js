// The memory panel of the page: its tabs, and how they lead back into the conversation.

import { ChangeList } from './change_list.js';
import { MemoryList } from './memory_list.js';
import { Panel } from './panel.js';
import { RecallView } from './recall_view.js';
import { Timeline } from './timeline.js';
import { UserData } from './user_data.js';

const byId = (id) => document.getElementById(id);
/** The tab that each button of the top bar opens. */
const OPENERS = { 'open-timeline': 'timeline', 'open-memory': 'memories' };

export class MemoryPanel {
  /**
   * `listener.sessionId()` and `listener.lastTurn()` tell what is open in the conversation; `listener.openSource(message)` leads
   * to a message; `listener.failed(problem)`, `listener.erased(receipt)`, `listener.toggled()`.
   */
  constructor(listener) {
    const { failed, openSource } = listener;
    const source = (message) => {
      if (this.panel.isOver) this.panel.close();
      openSource(message);
    };
    this.recall = new RecallView(byId('view-recall'), { current: listener.lastTurn, openSource: source });
    const views = {
      memories: new MemoryList(byId('view-memories'), { failed, openSource: source }),
      recall: this.recall,
      timeline: new Timeline(byId('view-timeline'), { failed, openSource: source, sessionId: listener.sessionId }),
      changes: new ChangeList(byId('view-changes'), { failed }),
    };
    this.panel = new Panel(views, {
      toggled: () => {
        this.#settle();
        listener.toggled();
      },
    });
    new UserData(byId('user-data'), { failed, erased: listener.erased });
    for (const [id, tab] of Object.entries(OPENERS)) byId(id).addEventListener('click', () => this.panel.toggle(tab));
  }

  get isOver() {
    return this.panel.isOver;
  }

  /** Why the answer of a turn was given what it was given. */
  explain(view) {
    this.recall.choose(view);
    this.panel.show('recall');
  }

  /** Another conversation is open, or something was said: what is shown about it is read again. */
  refresh({ other = false } = {}) {
    if (other) this.recall.choose(undefined);
    if (!this.panel.isOpen) return;
    const { current } = this.panel;
    if (current === 'timeline' || (other && current === 'recall')) this.panel.views[current].open();
  }

  /** Shows what is open anew, in another language for example. */
  redraw() {
    if (this.panel.isOpen) this.panel.views[this.panel.current].open();
  }

  #settle() {
    for (const [id, tab] of Object.entries(OPENERS)) byId(id).setAttribute('aria-expanded', String(this.panel?.isOpen && this.panel.current === tab));
  }
}
