// The connection is cut in mid-answer again and again, and answered with a proxy's own error: the page comes back by itself, and
// what it shows at the end is what was stored.

import assert from 'node:assert/strict';
import { CuttingProxy } from './cutting_proxy.mjs';
import { forgive, lastTurn, send, test, untilTurn, untilWords, words } from './lib.mjs';

const SLOW = 'count [[tokens=120 delay_ms=80]]';

await test('an answer arrives whole through a way that is cut and that refuses', async (visitor) => {
  const proxy = await CuttingProxy.to(visitor.baseUrl);
  const page = await visitor.arrive({ at: proxy.url });
  let streams = 0;
  page.on('request', (request) => {
    if (request.url().includes('/events')) streams += 1;
  });

  await send(page, SLOW);
  await untilWords(page, 5);
  proxy.cut();
  await untilWords(page, 20);

  // An EventSource gives up for good at any answer but 200; the page makes a new one that goes on where the last one ended.
  proxy.refuse();
  await page.waitForRequest((request) => request.url().includes('?after='));
  const before = await words(await lastTurn(page).locator('.answer').innerText());
  assert.ok(proxy.refused > 0, 'nothing was refused, so the test proves nothing');
  proxy.carry();
  await untilWords(page, before.length + 10);
  proxy.cut();

  const { id } = await untilTurn(page, ['completed']);
  const turn = await visitor.get(`/v1/turns/${id}`);
  assert.equal(words(turn.text).length, 120);
  assert.deepEqual(words(await lastTurn(page).locator('.answer').innerText()), words(turn.text));
  assert.equal(await page.locator('.turn').count(), 1);
  assert.ok(streams >= 3, `${streams} streams were opened`);

  // After `done` nothing is open any more, and nothing is asked.
  const after = streams;
  await page.waitForTimeout(1500);
  assert.equal(streams, after, 'the page opened a stream after the answer was done');
  forgive(visitor, /ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_CLOSED|502 \(Bad Gateway\)|MIME type/);
});
