// The calls of the wire contract that the page uses.

const TIMEOUT_MS = 20_000;
const PAGE = 100;

/** A refusal with its problem document, or `status: 0` when the server could not be reached. */
export class Problem extends Error {
  constructor({ status, code, title, detail, retryAfter }) {
    super(detail || title || code || `HTTP ${status}`);
    this.status = status;
    this.code = code;
    this.title = title;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later without any change. */
  get isPassing() {
    return this.status === 0 || this.status === 408 || this.status === 409 || this.status === 429 || this.status >= 500;
  }
}

async function request(method, path, { body, key } = {}) {
  const headers = { Accept: 'application/json' };
  if (method !== 'GET') headers['Content-Type'] = 'application/json';
  if (key) headers['Idempotency-Key'] = key;
  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = await response.text();
  } catch {
    throw new Problem({ status: 0, code: 'unreachable' });
  }
  let value;
  try {
    value = text === '' ? undefined : JSON.parse(text);
  } catch {
    // A proxy's own error page is not JSON; the status alone speaks then.
  }
  if (response.ok) return value;
  const seconds = Number(response.headers.get('Retry-After'));
  throw new Problem({
    status: response.status,
    code: value?.code,
    title: value?.title,
    detail: value?.detail,
    retryAfter: Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined,
  });
}

const session = (id) => `/v1/sessions/${encodeURIComponent(id)}`;
const turn = (id) => `/v1/turns/${encodeURIComponent(id)}`;

export function listSessions(cursor) {
  const query = new URLSearchParams({ limit: '50' });
  if (cursor) query.set('cursor', cursor);
  return request('GET', `/v1/sessions?${query}`);
}

export const createSession = (body, key) => request('POST', '/v1/sessions', { body, key });
export const getSession = (id) => request('GET', session(id));
export const changeSession = (id, body) => request('PATCH', session(id), { body });
export const deleteSession = (id) => request('DELETE', session(id));

/** The whole history in order; the contract lists at most 100 messages a call. */
export async function listMessages(id) {
  const items = [];
  let cursor;
  do {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (cursor) query.set('cursor', cursor);
    const page = await request('GET', `${session(id)}/messages?${query}`);
    items.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return items;
}

export const createTurn = (sessionId, body, key) => request('POST', `${session(sessionId)}/turns`, { body, key });
export const getTurn = (id) => request('GET', turn(id));
export const cancelTurn = (id) => request('POST', `${turn(id)}/cancel`, { body: {} });
export const eventsOf = (id) => `${turn(id)}/events`;

const TERMINAL = new Set(['completed', 'failed', 'cancelled', 'interrupted']);

export const isTerminal = (status) => TERMINAL.has(status);
