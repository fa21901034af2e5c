// A question that is asked in other words: the answer to it, and what came after, are replaced.

import { isComposing } from './composer.js';
import { element } from './dom.js';
import { bind, bindAttribute } from './i18n.js';

/** Lets the person change `text` in place of `node`; `send(text)` with what it became. */
export function editQuestion(node, text, send) {
  const opener = document.activeElement;
  const input = element('textarea', { className: 'question-input', rows: '1' });
  bindAttribute(input, 'aria-label', 'edit_question');
  input.value = text;
  const cancel = bind(element('button', { type: 'button', className: 'button' }), 'cancel');
  const submit = bind(element('button', { type: 'submit', className: 'button primary' }), 'send');
  const actions = element('div', { className: 'question-actions' }, bind(element('span', { className: 'question-note' }), 'edit_detail'), cancel, submit);
  const form = element('form', { className: 'question-form' }, input, actions);

  const fit = () => {
    input.style.height = 'auto';
    input.style.height = `${input.scrollHeight}px`;
    submit.disabled = input.value.trim() === '';
  };
  const close = () => {
    form.remove();
    node.hidden = false;
    if (opener?.isConnected) opener.focus();
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const changed = input.value.trim();
    if (changed === '') return;
    close();
    send(changed);
  });
  input.addEventListener('input', fit);
  input.addEventListener('keydown', (event) => {
    if (isComposing(event)) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      form.requestSubmit();
    } else if (event.key === 'Escape') {
      event.preventDefault();
      close();
    }
  });
  cancel.addEventListener('click', close);

  node.hidden = true;
  node.after(form);
  fit();
  input.focus();
  input.setSelectionRange(text.length, text.length);
}
