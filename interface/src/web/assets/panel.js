// The panel beside the conversation: its tabs, and where it stands on a narrow screen.

const WIDE = matchMedia('(min-width: 1100px)');

export class Panel {
  /** `views` has a `{ open(), close?() }` for each tab's name; `listener.toggled(isOpen)` after it came or went. */
  constructor(views, listener) {
    this.views = views;
    this.listener = listener;
    this.root = document.getElementById('panel');
    this.backdrop = document.getElementById('panel-backdrop');
    this.tabs = [...this.root.querySelectorAll('[role="tab"]')];
    for (const tab of this.tabs) {
      tab.addEventListener('click', () => this.show(tab.dataset.tab));
      tab.addEventListener('keydown', (event) => this.#move(event, tab));
    }
    for (const id of ['panel-close', 'panel-backdrop']) document.getElementById(id).addEventListener('click', () => this.close());
    this.root.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing) return;
      event.preventDefault();
      this.close();
    });
    WIDE.addEventListener('change', () => this.#settle());
  }

  get isOpen() {
    return !this.root.hidden;
  }

  /** Whether it covers the conversation instead of standing beside it. */
  get isOver() {
    return this.isOpen && !WIDE.matches;
  }

  /** Opens the tab of that name; what it shows is read anew. */
  show(name) {
    if (!this.isOpen) this.opener = document.activeElement;
    const before = this.current;
    this.current = name;
    for (const tab of this.tabs) {
      const selected = tab.dataset.tab === name;
      tab.setAttribute('aria-selected', String(selected));
      tab.tabIndex = selected ? 0 : -1;
      document.getElementById(tab.getAttribute('aria-controls')).hidden = !selected;
    }
    const opened = !this.isOpen;
    this.root.hidden = false;
    this.#settle();
    if (before && before !== name) this.views[before].close?.();
    if (opened) this.tabs.find((tab) => tab.dataset.tab === name).focus({ preventScroll: true });
    this.views[name].open();
  }

  close() {
    if (!this.isOpen) return;
    this.views[this.current].close?.();
    this.root.hidden = true;
    this.current = undefined;
    this.#settle();
    if (this.opener?.isConnected) this.opener.focus({ preventScroll: true });
  }

  toggle(name) {
    if (this.isOpen && this.current === name) this.close();
    else this.show(name);
  }

  #move(event, tab) {
    const last = this.tabs.length - 1;
    const at = this.tabs.indexOf(tab);
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(this.tabs[to].dataset.tab);
    this.tabs[to].focus();
  }

  #settle() {
    this.backdrop.hidden = !this.isOver;
    document.body.classList.toggle('panel-open', this.isOpen);
    this.listener.toggled(this.isOpen);
  }
}
