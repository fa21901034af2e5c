// A conversation with openapi-fetch: `npm install && npm run generate && npm run build && npm run chat`.

import createClient from 'openapi-fetch';
import type { paths } from './generated/tidemark.js';
import { followTurn } from './stream.js';

const base = process.env.TIDEMARK_URL ?? 'http://127.0.0.1:8080';
const question = process.argv[2] ?? 'What is the budget?';
const tidemark = createClient<paths>({ baseUrl: base, headers: { 'X-Tidemark-User': 'ada' } });

// What is to be known beforehand.
await tidemark.POST('/v1/memories', { body: { content: "The project's budget is 400k", kind: 'fact' } });

const { data: session, error } = await tidemark.POST('/v1/sessions', { body: { title: 'Budget' } });
if (!session) throw new Error(error.detail); // Every refusal is a problem document.

// The key makes it safe to send again: the same question is never asked twice.
const { data: turn, error: refused } = await tidemark.POST('/v1/sessions/{id}/turns', {
  params: { path: { id: session.id }, header: { 'Idempotency-Key': crypto.randomUUID() } },
  body: { message: question },
});
if (!turn || !('turn_id' in turn)) throw new Error(refused?.detail);

for await (const event of followTurn(base, turn.turn_id, { headers: { 'X-Tidemark-User': 'ada' } })) {
  if (event.type === 'recall') for (const memory of event.memories) console.log(`[remembered] ${memory.content}`);
  if (event.type === 'message') process.stdout.write(event.token);
  if (event.type === 'done') console.log(`\n[${event.status}]`);
}
