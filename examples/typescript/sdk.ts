// The same with what @hey-api/openapi-ts generates: its streams resume by themselves. `npm run sdk`.

import { createSession, createTurn, streamTurnEvents } from './generated/sdk/index.js';
import { client } from './generated/sdk/client.gen.js';

client.setConfig({ baseUrl: process.env.TIDEMARK_URL ?? 'http://127.0.0.1:8080', headers: { 'X-Tidemark-User': 'ada' } });

const session = await createSession({ body: { title: 'Budget' }, throwOnError: true });
const turn = await createTurn({
  path: { id: session.data.id },
  body: { message: process.argv[2] ?? 'What is the budget?' },
  throwOnError: true,
});
if (!('turn_id' in turn.data)) throw new Error('only with `Prefer: wait` the answer comes at once');

const { stream } = await streamTurnEvents({ path: { id: turn.data.turn_id } });
for await (const event of stream) {
  if (!event) continue;
  if (event.type === 'message') process.stdout.write(event.token);
  if (event.type === 'done') {
    console.log(`\n[${event.status}]`);
    break;
  }
}
