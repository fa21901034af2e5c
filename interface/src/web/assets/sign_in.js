// Who is there: asked for when the server wants to know, and never seen where it does not.

import { onUnauthorized, request } from './api.js';
import { bind } from './i18n.js';
import { read, remove, removeAll, write } from './storage.js';

const SIGNED_IN = 'tidemark.signed_in';
/** What the server calls whoever names nobody. */
const DEFAULT_USER = 'default';

const dialog = document.getElementById('sign-in');
const form = document.getElementById('sign-in-form');
const key = document.getElementById('sign-in-key');
const user = document.getElementById('sign-in-user');
const problem = document.getElementById('sign-in-problem');
const submit = document.getElementById('sign-in-submit');

export const isSignedIn = () => Boolean(read(SIGNED_IN));

/** Whether the key that was signed in with has this scope; where nobody signs in everybody has all of them. */
export function may(scope) {
  const { scopes } = read(SIGNED_IN) ?? {};
  return !scopes || scopes.includes(scope);
}

/** The name under which this person's data is kept. */
export const userName = () => read(SIGNED_IN)?.user ?? DEFAULT_USER;

/** Shows the form at the first refusal. After signing in the page starts anew, and what waited to be sent is sent. */
export function askWhenWanted() {
  onUnauthorized(() => {
    if (dialog.open) return;
    dialog.showModal();
    key.focus();
  });
  // There is nothing behind it to go back to.
  dialog.addEventListener('cancel', (event) => event.preventDefault());
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    problem.hidden = true;
    submit.disabled = true;
    try {
      const answer = await request('POST', '/v1/login', { body: { key: key.value.trim(), user: user.value.trim() || undefined } });
      write(SIGNED_IN, { user: answer?.user, scopes: answer?.scopes });
      location.reload();
    } catch (refusal) {
      submit.disabled = false;
      if (refusal.status === 401) bind(problem, 'sign_in_refused');
      else if (refusal.status === 0) bind(problem, 'unreachable');
      else bind(problem, 'action_failed', { reason: refusal.message });
      problem.hidden = false;
      key.select();
    }
  });
}

/** Leaves nothing of this person in the browser but how the page looks. */
export async function signOut() {
  await request('POST', '/v1/logout', { body: {} });
  remove(SIGNED_IN);
  removeAll(['tidemark.outbox.', 'tidemark.running.']);
  sessionStorage.clear();
  location.assign('/');
}
