// The calls of the wire contract that a conversation uses.

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

  /** Whether the same request may succeed later without any change; what was asked before signing in is asked again after it. */
  get isPassing() {
    return [0, 401, 408, 409, 429].includes(this.status) || this.status >= 500;
  }
}

let signIn = () => {};

/** Calls `ask` whenever the server wants to know first who is there. */
export function onUnauthorized(ask) {
  signIn = ask;
}

/** The JSON that the server answers; throws a `Problem` otherwise. */
export async function request(method, path, { body, key, version } = {}) {
  const headers = { Accept: 'application/json' };
  if (method !== 'GET') headers['Content-Type'] = 'application/json';
  if (key) headers['Idempotency-Key'] = key;
  if (version) headers['If-Match'] = `"${version}"`;
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
  if (response.status === 401) signIn();
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

export function listSessions({ cursor, text, limit = 50 } = {}) {
  const query = new URLSearchParams({ limit: String(limit) });
  if (text) query.set('text', text);
  if (cursor) query.set('cursor', cursor);
  return request('GET', `/v1/sessions?${query}`);
}

export const createSession = (body, key) => request('POST', '/v1/sessions', { body, key });
export const getSession = (id) => request('GET', session(id));
export const changeSession = (id, body) => request('PATCH', session(id), { body });
export const deleteSession = (id) => request('DELETE', session(id));

/** The whole history in order, and up to which message it has been consolidated; the contract lists at most 100 messages a call. */
export async function listMessages(id) {
  const items = [];
  let cursor;
  let boundary;
  do {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (cursor) query.set('cursor', cursor);
    const page = await request('GET', `${session(id)}/messages?${query}`);
    items.push(...page.items);
    cursor = page.next_cursor;
    boundary = page.last_consolidated;
  } while (cursor);
  return { items, boundary };
}

export const createTurn = (sessionId, body, key) => request('POST', `${session(sessionId)}/turns`, { body, key });
export const getTurn = (id) => request('GET', turn(id));
export const cancelTurn = (id) => request('POST', `${turn(id)}/cancel`, { body: {} });
export const eventsOf = (id) => `${turn(id)}/events`;

const TERMINAL = new Set(['completed', 'failed', 'cancelled', 'interrupted']);

export const isTerminal = (status) => TERMINAL.has(status);
