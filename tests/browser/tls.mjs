// Over TLS the page speaks HTTP/2: many answers are followed live in one connection.

import assert from 'node:assert/strict';
import { lastTurn, required, send, test, untilTurn, untilWords, words } from './lib.mjs';

const TABS = 8;

await test('over TLS and HTTP/2 eight tabs follow their answers live', async (visitor) => {
  const secured = required('TLS_BASE_URL');
  const first = await visitor.arrive({ at: secured, ignoreHTTPSErrors: true });
  assert.equal(await first.evaluate(() => performance.getEntriesByType('navigation')[0].nextHopProtocol), 'h2');
  assert.ok(await first.evaluate(() => isSecureContext));
  const pages = [first];
  while (pages.length < TABS) pages.push(await visitor.open(first.context(), secured));

  await Promise.all(pages.map((page) => send(page, 'count [[tokens=80 delay_ms=150]]')));
  await Promise.all(pages.map((page) => untilWords(page, 5)));
  const running = await Promise.all(pages.map((page) => lastTurn(page).getAttribute('data-status')));
  assert.deepEqual(running, Array(TABS).fill('running'), 'an answer was over before the test could look; make it slower');
  for (const page of pages) {
    await untilTurn(page, ['completed']);
    assert.equal(words(await lastTurn(page).locator('.answer').innerText()).length, 80);
  }
});
