// openapi-typescript and openapi-fetch against a running server.

import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';
import type { paths } from './generated/tidemark.js';
import { Reading, base, question, user } from './story.js';
import { Refusal, followTurn, type TurnEvent } from './stream.js';

const headers = { 'X-Tidemark-User': user };
const tidemark = createClient<paths>({ baseUrl: base, headers });

// A conversation, made once however often it is asked for.
const make = () => tidemark.POST('/v1/sessions', { params: { header: { 'Idempotency-Key': user } }, body: { title: 'Budget' } });
const [session, again] = [(await make()).data, (await make()).data];
assert(session);
assert.equal(session.id, again?.id);

const path = { id: session.id };
const { data: turn } = await tidemark.POST('/v1/sessions/{id}/turns', { params: { path }, body: { message: question } });
assert(turn && 'turn_id' in turn);
const reading = new Reading();
let done: (TurnEvent & { type: 'done' }) | undefined;
for await (const event of followTurn(base, turn.turn_id, { headers })) {
  reading.take(event);
  if (event.type === 'done') done = event;
}
reading.end(done);

const { data: history } = await tidemark.GET('/v1/sessions/{id}/messages', { params: { path } });
assert.deepEqual(history?.items.map((message) => message.role), ['user', 'assistant']);
assert.equal(history.items[1]?.content, done?.text);
const { data: over } = await tidemark.POST('/v1/turns/{id}/cancel', { params: { path: { id: turn.turn_id } }, body: {} });
assert.equal(over?.status, 'completed', 'what is over cannot be cancelled');

// Memories: added, recalled, changed, forgotten.
const { data: memory } = await tidemark.POST('/v1/memories', { body: { content: 'The archive closes at five on Fridays', kind: 'fact' } });
assert(memory && 'version' in memory);
const recall = async () => {
  const { data } = await tidemark.POST('/v1/memories/recall', { body: { query: 'When does the archive close?', top_k: 5 } });
  return data?.items.map((item) => item.memory.id) ?? [];
};
assert((await recall()).includes(memory.id));
const one = { path: { id: memory.id } };
const stale = await tidemark.PATCH('/v1/memories/{id}', { params: { ...one, header: { 'If-Match': '"99"' } }, body: { pinned: true } });
assert.equal(stale.error?.code, 'stale_version');
const { data: pinned } = await tidemark.PATCH('/v1/memories/{id}', { params: one, body: { pinned: true, key: null } });
assert.equal(pinned?.pinned, true);
assert.equal((await tidemark.DELETE('/v1/memories/{id}', { params: one })).response.status, 204);
assert(!(await recall()).includes(memory.id));

// Problems.
const gone = await tidemark.GET('/v1/memories/{id}', { params: one });
assert.equal(gone.error?.code, 'not_found');
const long = await tidemark.POST('/v1/sessions', { body: { title: 'x'.repeat(201) } });
assert.equal(long.error?.status, 422);
assert.equal(long.error?.errors?.[0]?.field, 'title');
await assert.rejects(followTurn(base, crypto.randomUUID(), { headers }).next(), Refusal);
console.log('whole');
