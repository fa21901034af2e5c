// A person's data as a whole: taken along, or removed for good.

import { confirmed } from './dialog.js';
import { element } from './dom.js';
import { bind } from './i18n.js';
import { countOfUser, eraseUser, exportUser } from './memory_api.js';
import { may, userName } from './sign_in.js';

export class UserData {
  /** `listener.failed(problem)`, `listener.erased(receipt)`. */
  constructor(root, listener) {
    this.listener = listener;
    this.exporting = bind(element('button', { type: 'button', className: 'text-button export' }), 'export');
    this.erasing = bind(element('button', { type: 'button', className: 'text-button danger erase' }), 'erase');
    this.exporting.addEventListener('click', () => this.#alone(this.exporting, () => this.#export()));
    this.erasing.addEventListener('click', () => this.#alone(this.erasing, () => this.#erase()));
    root.append(this.exporting, this.erasing);
    // The tenant's own affair: a key for chatting alone is refused both.
    root.hidden = !may('admin');
  }

  async #alone(button, act) {
    button.disabled = true;
    try {
      await act();
    } catch (problem) {
      this.listener.failed(problem);
    } finally {
      button.disabled = false;
    }
  }

  async #export() {
    const url = URL.createObjectURL(await exportUser(userName()));
    const name = `tidemark-${userName()}-${new Date().toISOString().slice(0, 10)}.jsonl`;
    const link = element('a', { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    // The download has begun by then, whatever its size.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  }

  async #erase() {
    const { more, ...count } = await countOfUser();
    const items = Object.entries(count).map(([what, number]) => [`erase_${what}`, { count: number, more }]);
    const goes = await confirmed({ title: 'erase_title', detail: 'erase_detail', action: 'erase_confirm', items });
    if (goes) this.listener.erased(await eraseUser(userName()));
  }
}
