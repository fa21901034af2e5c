// Joins the parts of the page: which session is open, what the address says, and who is told of what.

import { changeSession } from './api.js';
import { Composer } from './composer.js';
import { Conversation, rememberTurn } from './conversation.js';
import { element } from './dom.js';
import { bind, currentLanguage, setLanguage, translate } from './i18n.js';
import { Outbox } from './outbox.js';
import { Follower } from './scroll.js';
import { Sidebar, showTitle } from './sidebar.js';

const REOPEN_MS = 2000;
const NOTICE_MS = 8000;
const SUGGESTIONS = 3;

const byId = (id) => document.getElementById(id);

let temporary = false;
let reopenTimer;
let noticeTimer;

const follower = new Follower(byId('scroller'), byId('turns'), byId('to-latest'));

const sidebar = new Sidebar({
  renamed: (session) => {
    if (session.id === conversation.sessionId) {
      conversation.session = session;
      render();
    }
  },
  deleted: (id) => {
    if (id === conversation.sessionId) location.hash = '#/';
  },
  failed: notify,
});

const outbox = new Outbox({
  onSession: (entry, session) => {
    sidebar.put(session);
    if (!conversation.adopt(entry, session)) return;
    // The address changes without a reload of the view, which already shows this conversation.
    history.replaceState(null, '', `#/s/${session.id}`);
    composer.draftKey = session.id;
    sidebar.select(session.id);
    render();
  },
  onAccepted: (entry, turn) => {
    rememberTurn(entry.sessionId, turn.turn_id);
    if (entry.sessionId === conversation.sessionId) conversation.accept(entry, turn);
    hideNotice();
    refreshSessions();
  },
  onDelay: (entry) => conversation.showDelay(entry),
  onRefused: (entry) => {
    if (conversation.pending.has(entry.key)) conversation.showEntry(entry);
  },
});

const conversation = new Conversation(byId('turns'), outbox, {
  changed: render,
  finished: refreshSessions,
  retry: send,
});

const composer = new Composer({
  send,
  stop: () => conversation.stop().catch(notify),
});

function send(message) {
  const [after] = conversation.pending.keys();
  const entry = outbox.add({
    sessionId: conversation.sessionId,
    message,
    memory: temporary ? 'off' : undefined,
    after: outbox.items.find((one) => one.key === after),
  });
  conversation.showEntry(entry);
  follower.follow();
}

// --- What is open ---

async function route() {
  clearTimeout(reopenTimer);
  const [, sessionId] = /^#\/s\/([0-9a-f-]+)$/i.exec(location.hash) ?? [];
  showDrawer(false);
  if (sessionId && sessionId === conversation.sessionId) return;
  temporary = false;
  composer.open(sessionId);
  sidebar.select(sessionId);
  if (!sessionId) {
    conversation.openNew();
    composer.focus();
    return;
  }
  await openSession(sessionId);
}

async function openSession(sessionId) {
  byId('loading').hidden = false;
  try {
    await conversation.open(sessionId);
    if (conversation.sessionId !== sessionId) return;
    temporary = conversation.session?.memory === 'off';
    hideNotice();
    follower.follow();
    composer.focus();
  } catch (problem) {
    if (conversation.sessionId !== sessionId) return;
    if (problem.isPassing) {
      notice('unreachable');
      reopenTimer = setTimeout(() => openSession(sessionId), REOPEN_MS);
      return;
    }
    conversation.openNew();
    history.replaceState(null, '', '#/');
    composer.open();
    notice('session_missing', undefined, NOTICE_MS);
  } finally {
    if (conversation.session || !conversation.sessionId) byId('loading').hidden = true;
    render();
  }
}

function render() {
  const { sessionId, session } = conversation;
  const title = byId('title');
  if (sessionId) showTitle(title, session ? session.title : ' ');
  else bind(title, 'new_session');
  document.title = session?.title ? `${session.title} – Tidemark` : 'Tidemark';
  byId('welcome').hidden = Boolean(sessionId) || !conversation.isEmpty;
  bind(byId('welcome-detail'), temporary ? 'temporary_detail' : 'welcome_detail');
  byId('temporary').setAttribute('aria-pressed', String(temporary));
  byId('temporary-badge').hidden = !temporary;
  composer.showRunning(Boolean(conversation.running));
  composer.showTemporary(temporary);
}

async function refreshSessions() {
  try {
    await sidebar.refresh();
    sidebar.select(conversation.sessionId);
  } catch (problem) {
    if (problem.isPassing) {
      notice('unreachable', undefined, NOTICE_MS);
      setTimeout(refreshSessions, NOTICE_MS);
    } else {
      notify(problem);
    }
  }
}

// --- Notices ---

function notice(key, parameters, milliseconds) {
  clearTimeout(noticeTimer);
  bind(byId('banner'), key, parameters);
  byId('banner').hidden = false;
  if (milliseconds) noticeTimer = setTimeout(hideNotice, milliseconds);
}

function hideNotice() {
  clearTimeout(noticeTimer);
  byId('banner').hidden = true;
}

function notify(problem) {
  if (problem.status === 0) notice('unreachable', undefined, NOTICE_MS);
  else notice('action_failed', { reason: problem.message }, NOTICE_MS);
}

// --- Around it: drawer, language, temporary chat, suggestions ---

const phone = matchMedia('(max-width: 760px)');

function showDrawer(open) {
  document.body.classList.toggle('drawer-open', open);
  byId('open-sidebar').setAttribute('aria-expanded', String(open));
  byId('sidebar').inert = phone.matches && !open;
  byId('conversation').inert = phone.matches && open;
}

function showLanguage() {
  for (const button of document.querySelectorAll('[data-language]')) {
    button.setAttribute('aria-pressed', String(button.dataset.language === currentLanguage()));
  }
}

byId('open-sidebar').addEventListener('click', () => {
  showDrawer(true);
  byId('close-sidebar').focus();
});
for (const id of ['close-sidebar', 'backdrop']) {
  byId(id).addEventListener('click', () => {
    showDrawer(false);
    byId('open-sidebar').focus();
  });
}
byId('new-session').addEventListener('click', () => {
  showDrawer(false);
  composer.focus();
});
byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('message').focus();
});
phone.addEventListener('change', () => showDrawer(false));
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && document.body.classList.contains('drawer-open') && !event.defaultPrevented) byId('close-sidebar').click();
});

for (const button of document.querySelectorAll('[data-language]')) {
  button.addEventListener('click', () => {
    setLanguage(button.dataset.language);
    showLanguage();
  });
}

byId('temporary').addEventListener('click', async () => {
  temporary = !temporary;
  render();
  if (!conversation.session) return;
  try {
    await changeSession(conversation.session.id, { memory: temporary ? 'off' : 'on' });
  } catch (problem) {
    temporary = !temporary;
    render();
    notify(problem);
  }
});

for (let number = 1; number <= SUGGESTIONS; number += 1) {
  const button = bind(element('button', { type: 'button', className: 'suggestion' }), `suggestion_${number}`);
  button.addEventListener('click', () => composer.write(button.textContent));
  byId('suggestions').append(button);
}

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') refreshSessions();
});
window.addEventListener('hashchange', route);

translate();
showLanguage();
showDrawer(false);
refreshSessions();
await route();
// What an earlier page could not send and that had no session yet continues in the new conversation.
if (!conversation.sessionId) {
  for (const entry of outbox.items.filter((one) => !one.sessionId)) conversation.showEntry(entry);
}
outbox.resume();
