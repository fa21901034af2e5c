// A reload in mid-answer, and a second device that joins, lose nothing and repeat nothing.

import assert from 'node:assert/strict';
import { lastTurn, send, test, untilTurn, untilWords, words } from './lib.mjs';

const SLOW = 'count [[tokens=120 delay_ms=100]]';

await test('a reload in mid-answer loses and repeats nothing', async (visitor) => {
  const page = await visitor.arrive();
  await send(page, SLOW);
  await untilWords(page, 5);
  const seen = [await shown(page)];

  await page.reload();
  await untilWords(page, words(seen[0]).length);
  seen.push(await shown(page));

  // Another profile knows nothing of the running turn but what the server tells.
  const other = await visitor.arrive();
  await other.goto(page.url());
  await untilWords(other, 5);
  await page.reload();
  await untilWords(page, 5);
  assert.equal(await lastTurn(page).getAttribute('data-status'), 'running', 'the answer was over before the test could look; make it slower');
  seen.push(await shown(page));

  const { id, sessionId } = await untilTurn(page, ['completed']);
  await untilTurn(other, ['completed']);

  const turn = await visitor.get(`/v1/turns/${id}`);
  const expected = words(turn.text);
  assert.ok(expected.length >= 20, `the scripted model did not answer as asked: ${turn.text}`);
  for (const text of seen) {
    assert.deepEqual(words(text), expected.slice(0, words(text).length), 'what was shown in mid-answer is not the beginning of the answer');
  }
  assert.deepEqual(words(await shown(page)), expected);
  assert.deepEqual(words(await shown(other)), expected);

  const history = await visitor.history(sessionId);
  assert.deepEqual(
    history.map(({ role, content }) => ({ role, content })),
    [
      { role: 'user', content: SLOW },
      { role: 'assistant', content: turn.text },
    ],
  );
  for (const one of [page, other]) assert.equal(await one.locator('.turn').count(), 1);

  await page.reload();
  await untilTurn(page, ['completed']);
  assert.deepEqual(words(await shown(page)), expected);
});

async function shown(page) {
  return lastTurn(page).locator('.answer').innerText();
}
