// Ten tabs of one browser over HTTP/1.1, which opens six connections to a host: every answer arrives, and nobody waits for a stream.

import assert from 'node:assert/strict';
import { lastTurn, send, test, untilTurn, words } from './lib.mjs';

const TABS = 10;
/** Two of the six connections stay free for everything else. */
const STREAMS = 4;

await test('ten tabs answer at once over six connections', async (visitor) => {
  const first = await visitor.arrive();
  const pages = [first];
  while (pages.length < TABS) pages.push(await visitor.open(first.context()));
  assert.equal(await first.evaluate(() => performance.getEntriesByType('navigation')[0].nextHopProtocol), 'http/1.1');

  let open = 0;
  let most = 0;
  for (const page of pages) {
    const streams = new Set();
    const ended = (request) => {
      if (streams.delete(request)) open -= 1;
    };
    page.on('request', (request) => {
      if (!request.url().includes('/events')) return;
      streams.add(request);
      open += 1;
      most = Math.max(most, open);
    });
    page.on('requestfinished', ended);
    page.on('requestfailed', ended);
  }

  await Promise.all(pages.map((page, number) => send(page, `count in tab ${number} [[tokens=60 delay_ms=100]]`)));
  await Promise.all(pages.map((page) => page.waitForSelector('.turn:last-child[data-turn-id]')));

  // While the streams run, a request of any tab is answered.
  const took = await pages[TABS - 1].evaluate(async () => {
    const asked = performance.now();
    await (await fetch('/v1/sessions?limit=1')).json();
    return performance.now() - asked;
  });
  assert.ok(open > 0, 'no stream was open, so the test proves nothing');
  assert.ok(took < 3000, `a request beside the streams took ${Math.round(took)} ms`);

  for (const page of pages) {
    const { id } = await untilTurn(page, ['completed']);
    const { text } = await visitor.get(`/v1/turns/${id}`);
    assert.equal(words(text).length, 60);
    assert.deepEqual(words(await lastTurn(page).locator('.answer').innerText()), words(text));
  }
  assert.ok(most <= STREAMS, `${most} streams were open at once`);
});
