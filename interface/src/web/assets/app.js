// Joins the parts of the page: which session is open, what the address says, and who is told of what.

import { changeSession } from './api.js';
import { Composer } from './composer.js';
import { Conversation, rememberTurn } from './conversation.js';
import { confirmed } from './dialog.js';
import { element } from './dom.js';
import { bind, currentLanguage, setLanguage, translate } from './i18n.js';
import { MemoryPanel } from './memory_panel.js';
import { Outbox } from './outbox.js';
import { Follower } from './scroll.js';
import { Sidebar, showTitle } from './sidebar.js';
import { askWhenWanted, isSignedIn, signOut } from './sign_in.js';
import { currentTheme, setTheme, showTheme } from './theme.js';

const REOPEN_MS = 2000;
const NOTICE_MS = 8000;
const SUGGESTIONS = 3;
const FLASH_MS = 1600;

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
  onDelay: (entry, problem, wait) => conversation.showDelay(entry, problem, wait),
  onRefused: (entry) => {
    if (conversation.pending.has(entry.key)) conversation.showEntry(entry);
  },
});

const conversation = new Conversation(byId('turns'), outbox, {
  changed: render,
  finished: () => {
    refreshSessions();
    panel.refresh();
  },
  resend: (view, message) => send(message, view.id),
  explain: (view) => panel.explain(view),
});

const panel = new MemoryPanel({
  sessionId: () => conversation.sessionId,
  lastTurn: () => conversation.lastTurn,
  openSource,
  failed: notify,
  erased: () => {
    notice('erased', undefined, NOTICE_MS);
    location.hash = '#/';
    refreshSessions();
    panel.redraw();
  },
  toggled: settle,
});

const composer = new Composer({
  send,
  stop: () => conversation.stop().catch(notify),
});

/** `replaces` is the turn whose place the message takes, with all after it. */
function send(message, replaces) {
  const [after] = conversation.pending.keys();
  const entry = outbox.add({
    sessionId: conversation.sessionId,
    message,
    memory: temporary ? 'off' : undefined,
    after: outbox.items.find((one) => one.key === after),
    replaces,
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
    panel.refresh({ other: true });
    composer.focus();
    return;
  }
  await openSession(sessionId);
}

async function openSession(sessionId) {
  const again = sessionId === conversation.sessionId && !conversation.isEmpty;
  byId('loading').hidden = again;
  try {
    await conversation.open(sessionId);
    if (conversation.sessionId !== sessionId) return;
    temporary = conversation.session?.memory === 'off';
    hideNotice();
    panel.refresh({ other: true });
    if (!showSource() && !again) follower.follow();
    if (!again) composer.focus();
  } catch (problem) {
    if (conversation.sessionId !== sessionId) return;
    if (problem.isPassing) {
      noticePassing(problem);
      reopenTimer = setTimeout(() => openSession(sessionId), problem.retryAfter ?? REOPEN_MS);
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

/** Shows what was said elsewhere meanwhile, but takes nothing away from whoever is editing. */
async function catchUp() {
  const { sessionId } = conversation;
  const behind = await conversation.isBehind();
  if (behind && sessionId === conversation.sessionId && !document.querySelector('.question-form')) await openSession(sessionId);
}

// --- Where something was said ---

let source;

/** Leads to a message: to its session first, where another is open. */
function openSource(message) {
  source = message;
  if (message.session_id === conversation.sessionId) showSource();
  else location.hash = `#/s/${message.session_id}`;
}

/** Whether there was a message to lead to. */
function showSource() {
  if (source?.session_id !== conversation.sessionId) return false;
  const view = conversation.viewOf(source);
  source = undefined;
  if (!view) return false;
  view.scrollIntoView({ block: 'start' });
  view.classList.add('is-shown');
  setTimeout(() => view.classList.remove('is-shown'), FLASH_MS);
  return true;
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
  byId('turns').classList.toggle('is-busy', conversation.isBusy);
  composer.showRunning(Boolean(conversation.running));
  composer.showTemporary(temporary);
}

async function refreshSessions() {
  try {
    await sidebar.refresh();
    sidebar.select(conversation.sessionId);
  } catch (problem) {
    if (problem.isPassing) {
      noticePassing(problem, NOTICE_MS);
      setTimeout(refreshSessions, Math.max(NOTICE_MS, problem.retryAfter ?? 0));
    } else {
      notify(problem);
    }
  }
}

// --- Notices ---

const waitOf = ({ retryAfter = 1000 }) => ({ seconds: Math.ceil(retryAfter / 1000) });

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

/** Says of what is tried again why that has to be. */
function noticePassing(problem, milliseconds) {
  if (problem.status === 401) return;
  if (problem.status === 429) notice('limited', waitOf(problem), milliseconds);
  else notice('unreachable', undefined, milliseconds);
}

function notify(problem) {
  if (problem.status === 401) return;
  if (problem.status === 0) notice('unreachable', undefined, NOTICE_MS);
  else if (problem.status === 429) notice('limited_now', waitOf(problem), NOTICE_MS);
  else notice('action_failed', { reason: problem.message }, NOTICE_MS);
}

// --- Around it: drawer, panel, language, theme, temporary chat, suggestions, signing out ---

const phone = matchMedia('(max-width: 760px)');

function showDrawer(open) {
  document.body.classList.toggle('drawer-open', open);
  byId('open-sidebar').setAttribute('aria-expanded', String(open));
  settle();
}

/** What lies under something else can be reached by nobody. */
function settle() {
  const drawer = document.body.classList.contains('drawer-open');
  const covered = panel.isOver;
  byId('sidebar').inert = covered || (phone.matches && !drawer);
  byId('conversation').inert = covered || (phone.matches && drawer);
}

function showChoices() {
  for (const button of document.querySelectorAll('[data-language]')) {
    button.setAttribute('aria-pressed', String(button.dataset.language === currentLanguage()));
  }
  for (const button of document.querySelectorAll('[data-theme-choice]')) {
    button.setAttribute('aria-pressed', String(button.dataset.themeChoice === currentTheme()));
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
    showChoices();
    panel.redraw();
  });
}
for (const button of document.querySelectorAll('[data-theme-choice]')) {
  button.addEventListener('click', () => {
    setTheme(button.dataset.themeChoice);
    showChoices();
  });
}

byId('sign-out').hidden = !isSignedIn();
byId('sign-out').addEventListener('click', async () => {
  const unsent = outbox.items.length;
  if (unsent > 0 && !(await confirmed({ title: 'sign_out_title', detail: ['sign_out_detail', { count: unsent }], action: 'sign_out' }))) return;
  await signOut().catch(notify);
});

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
  if (document.visibilityState === 'visible') {
    refreshSessions();
    catchUp();
  }
});
window.addEventListener('hashchange', route);

askWhenWanted();
translate();
showTheme();
showChoices();
showDrawer(false);
refreshSessions();
await route();
// What an earlier page could not send and that had no session yet continues in the new conversation.
if (!conversation.sessionId) {
  for (const entry of outbox.items.filter((one) => !one.sessionId)) conversation.showEntry(entry);
}
outbox.resume();
performance.mark('usable');
