// Stop keeps the part that was written, marks it, and leaves the session usable.

import assert from 'node:assert/strict';
import { lastTurn, send, test, untilTurn, untilWords, words } from './lib.mjs';

const LONG = 'count [[tokens=200 delay_ms=100]]';

await test('stop stores the partial text and the session goes on', async (visitor) => {
  const page = await visitor.arrive();
  await stopped(page, visitor, () => page.click('#stop'));
  await stopped(page, visitor, () => page.keyboard.press('Escape'));

  assert.ok(await page.isHidden('#stop'), 'there is nothing left to stop');
  await page.reload();
  await page.waitForSelector('.turn:last-child[data-status="cancelled"] .retry:not([hidden])');
  await page.waitForFunction(() => document.querySelectorAll('.turn[data-status="cancelled"]').length === 2);

  await send(page, 'And now something short');
  await untilTurn(page, ['completed']);
});

async function stopped(page, visitor, stop) {
  await send(page, LONG);
  await untilWords(page, 5);
  await stop();
  const { id, sessionId } = await untilTurn(page, ['cancelled']);
  const turn = await visitor.get(`/v1/turns/${id}`);
  assert.equal(turn.status, 'cancelled');
  const written = words(turn.text);
  assert.ok(written.length >= 5 && written.length < 200, `${written.length} words were stored`);
  assert.deepEqual(words(await lastTurn(page).locator('.answer').innerText()), written, 'the page shows another text than was stored');
  const answer = (await visitor.history(sessionId)).findLast(({ role }) => role === 'assistant');
  assert.equal(answer.content, turn.text);
  assert.equal(answer.partial, true, 'the stored part is not marked');
}
