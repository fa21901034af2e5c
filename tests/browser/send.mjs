// A message whose request fails, or whose acknowledgement is lost, is neither lost nor sent twice.

import assert from 'node:assert/strict';
import { forgive, send, test, untilTurn } from './lib.mjs';

const MESSAGE = `A message that must arrive once, ${Date.now()}`;

await test('a message survives failed requests and reloads and is sent once', async (visitor) => {
  const page = await visitor.arrive();
  const context = page.context();
  const keys = { sessions: [], turns: [] };
  const ways = { sessions: 'cut', turns: 'cut' };
  // `cut`: the request never arrives. `lose`: the server accepts, and its answer is lost on the way.
  const intercept = (resource) => async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    keys[resource].push(route.request().headers()['idempotency-key']);
    if (ways[resource] === 'through') return route.continue();
    if (ways[resource] === 'lose') await route.fetch();
    return route.abort('connectionreset');
  };
  await context.route('**/v1/sessions', intercept('sessions'));
  await context.route('**/v1/sessions/*/turns', intercept('turns'));
  const failure = (end) => page.waitForEvent('requestfailed', (request) => request.method() === 'POST' && request.url().endsWith(end));
  const kept = () => page.waitForSelector('.turn[data-status="pending"] .send-again:not([hidden])');

  // Neither session nor turn can be made; a reload keeps the message.
  await send(page, MESSAGE);
  await kept();
  const again = failure('/v1/sessions');
  await page.reload();
  await again;
  assert.equal(await page.locator('.question-text').innerText(), MESSAGE);

  // The session is made twice over as far as the page can tell, then the turn.
  ways.sessions = 'lose';
  const lostSession = failure('/v1/sessions');
  await kept();
  await page.click('.send-again');
  await lostSession;
  ways.sessions = 'through';
  await failure('/turns');
  ways.turns = 'lose';
  const lostTurn = failure('/turns');
  await kept();
  await page.click('.send-again');
  await lostTurn;
  ways.turns = 'through';
  await page.reload();

  const { id, sessionId } = await untilTurn(page, ['completed']);
  for (const [resource, used] of Object.entries(keys)) {
    assert.ok(used.length >= 3, `expected three attempts at ${resource}, saw ${used.length}`);
    assert.equal(new Set(used).size, 1, `the attempts at ${resource} carried different keys: ${used}`);
  }
  const asked = (await visitor.history(sessionId)).filter(({ role }) => role === 'user');
  assert.deepEqual(asked.map(({ content, turn_id: turn }) => [content, turn]), [[MESSAGE, id]]);
  const { items } = await visitor.get('/v1/sessions?limit=100');
  assert.equal(items.filter(({ title }) => title === MESSAGE).length, 1, 'the session was made more than once');
  assert.equal(await page.locator('.turn').count(), 1);
  assert.equal(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('tidemark.outbox.')).length), 0);

  forgive(visitor, /ERR_CONNECTION_RESET/);
});
