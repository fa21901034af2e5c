// One question before something that cannot be undone.

import { element } from './dom.js';
import { bind } from './i18n.js';

const dialog = document.getElementById('dialog');
const title = document.getElementById('dialog-title');
const subject = document.getElementById('dialog-subject');
const detail = document.getElementById('dialog-detail');
const list = document.getElementById('dialog-list');
const confirmButton = document.getElementById('dialog-confirm');

/**
 * Whether the person goes on. `title`, `detail` and `action` are keys of texts, or `[key, parameters]`; `subject` is what it is
 * about, in the person's own words; `items` are further such texts, as a list.
 */
export function confirmed({ title: heading, detail: body, action, subject: about, items = [] }) {
  show(title, heading);
  show(detail, body);
  show(confirmButton, action);
  subject.textContent = about ?? '';
  subject.hidden = !about;
  list.replaceChildren(...items.map((item) => show(element('li', {}), item)));
  list.hidden = items.length === 0;
  dialog.returnValue = '';
  const opener = document.activeElement;
  return new Promise((resolve) => {
    dialog.addEventListener(
      'close',
      () => {
        if (opener?.isConnected) opener.focus();
        resolve(dialog.returnValue === 'confirm');
      },
      { once: true },
    );
    dialog.showModal();
  });
}

const show = (node, key) => (Array.isArray(key) ? bind(node, ...key) : bind(node, key));
