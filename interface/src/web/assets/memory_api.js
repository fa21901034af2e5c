// The calls of the wire contract that concern memory: what is remembered, what changed it, and a person's data as a whole.

import { listSessions, Problem, request } from './api.js';

const PAGE = 30;
const COUNT_PAGE = 100;
/** So many pages are counted one by one; beyond that a number says "at least". */
const COUNT_PAGES = 20;

const memory = (id) => `/v1/memories/${encodeURIComponent(id)}`;
const user = (name) => `/v1/users/${encodeURIComponent(name)}`;

function pageOf(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined && value !== '') query.set(name, String(value));
  return request('GET', `${path}?${query}`);
}

/** `filter` may name `text`, `scope`, `kind`, `layer` and `state`. */
export const listMemories = (filter, cursor) => pageOf('/v1/memories', { limit: PAGE, ...filter, cursor });
export const getMemory = (id) => request('GET', memory(id));
export const changeMemory = ({ id, version }, body) => request('PATCH', memory(id), { body, version });
export const forgetMemory = (id) => request('DELETE', memory(id));
export const historyOf = (id) => request('GET', `${memory(id)}/history`);
export const recall = (body) => request('POST', '/v1/memories/recall', { body });

/** `filter` may name `session_id`. */
export const listChanges = (filter, cursor) => pageOf('/v1/changes', { limit: PAGE, ...filter, cursor });
export const revertChange = (id) => request('POST', `/v1/changes/${encodeURIComponent(id)}/revert`, { body: {} });

/** Every change of a session, the newest first. */
export async function changesOf(sessionId) {
  const items = [];
  let cursor;
  do {
    const page = await listChanges({ session_id: sessionId, limit: 100 }, cursor);
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return items;
}

/** Everything that is kept of the user, as a file. It may be large and is never parsed. */
export async function exportUser(name) {
  let response;
  try {
    response = await fetch(`${user(name)}/export`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' });
    if (response.ok) return await response.blob();
  } catch {
    throw new Problem({ status: 0, code: 'unreachable' });
  }
  throw new Problem({ status: response.status, ...(await response.json().catch(() => ({}))) });
}

export const eraseUser = (name) => request('DELETE', user(name));

/** How much there is of the user: `{ sessions, messages, memories, more }`; with `more` there is even more than that. */
export async function countOfUser() {
  const count = { sessions: 0, messages: 0, memories: 0, more: false };
  count.more = await eachPage(
    (cursor) => listSessions({ cursor, limit: COUNT_PAGE }),
    (items) => {
      count.sessions += items.length;
      for (const session of items) count.messages += session.message_count;
    },
  );
  const moreMemories = await eachPage(
    (cursor) => listMemories({ limit: COUNT_PAGE }, cursor),
    (items) => {
      count.memories += items.length;
    },
  );
  count.more ||= moreMemories;
  return count;
}

/** Whether pages are left after the most that are read. */
async function eachPage(read, take) {
  let cursor;
  for (let page = 0; page < COUNT_PAGES; page += 1) {
    const { items, next_cursor: next } = await read(cursor);
    take(items);
    if (!next) return false;
    cursor = next;
  }
  return true;
}
