// What @hey-api/openapi-ts generates, against a running server.

import assert from 'node:assert/strict';
import * as tidemark from './generated/sdk/index.js';
import { createClient, createConfig } from './generated/sdk/client/index.js';
import { Reading, base, question, user } from './story.js';

const client = createClient(createConfig({ baseUrl: base, headers: { 'X-Tidemark-User': user } }));

// A conversation, made once however often it is asked for.
const make = () => tidemark.createSession({ client, headers: { 'Idempotency-Key': user }, body: { title: 'Budget' }, throwOnError: true });
const [{ data: session }, { data: again }] = [await make(), await make()];
assert.equal(session.id, again.id);

const path = { id: session.id };
const { data: turn } = await tidemark.createTurn({ client, path, body: { message: question }, throwOnError: true });
assert('turn_id' in turn);
const reading = new Reading();
let done: tidemark.DoneEvent | undefined;
const { stream } = await tidemark.streamTurnEvents({ client, path: { id: turn.turn_id }, sseMaxRetryAttempts: 5, sseDefaultRetryDelay: 200 });
for await (const event of stream) {
  if (!event) continue;
  reading.take(event);
  if (event.type !== 'done') continue;
  done = event;
  break;
}
reading.end(done);

const { data: history } = await tidemark.listMessages({ client, path, throwOnError: true });
assert.deepEqual(history.items.map((message) => message.role), ['user', 'assistant']);
assert.equal(history.items[1]?.content, done?.text);
const { data: over } = await tidemark.cancelTurn({ client, path: { id: turn.turn_id }, body: {}, throwOnError: true });
assert.equal(over.status, 'completed', 'what is over cannot be cancelled');

// Memories: added, recalled, changed, forgotten.
const { data: memory } = await tidemark.createMemories({ client, body: { content: 'The archive closes at five on Fridays', kind: 'fact' }, throwOnError: true });
assert('version' in memory);
const recall = async () => {
  const { data } = await tidemark.recallMemories({ client, body: { query: 'When does the archive close?', top_k: 5 }, throwOnError: true });
  return data.items.map((item) => item.memory.id);
};
assert((await recall()).includes(memory.id));
const one = { id: memory.id };
const stale = await tidemark.updateMemory({ client, path: one, headers: { 'If-Match': '"99"' }, body: { pinned: true } });
assert.equal(stale.error?.code, 'stale_version');
const { data: pinned } = await tidemark.updateMemory({ client, path: one, body: { pinned: true, key: null }, throwOnError: true });
assert.equal(pinned.pinned, true);
assert.equal((await tidemark.deleteMemory({ client, path: one })).response?.status, 204);
assert(!(await recall()).includes(memory.id));

// Problems.
const gone = await tidemark.getMemory({ client, path: one });
assert.equal(gone.error?.code, 'not_found');
const long = await tidemark.createSession({ client, body: { title: 'x'.repeat(201) } });
assert.equal(long.error?.status, 422);
assert.equal(long.error?.errors?.[0]?.field, 'title');
console.log('whole');
