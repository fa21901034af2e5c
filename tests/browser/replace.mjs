// Trying again and asking in other words take the place of what was there: on the page, in the history, and in what is remembered.

import assert from 'node:assert/strict';
import { forgive, lastTurn, send, test, untilTurn } from './lib.mjs';

await test('trying again and editing a question replace it and all that followed', async (visitor) => {
  const page = await visitor.arrive();
  const asked = async (sessionId) => (await visitor.history(sessionId)).filter(({ role }) => role === 'user').map(({ content }) => content);

  // A failed answer says why, and trying again leaves one question.
  const broken = 'It breaks [[error_status=400]]';
  await send(page, broken);
  const failed = await untilTurn(page, ['failed']);
  assert.ok((await lastTurn(page).locator('.trouble').innerText()).length > 10, 'the page does not say why the answer failed');
  await lastTurn(page).locator('.retry').click();
  await page.waitForSelector(`.turn:last-child[data-status="failed"]:not([data-turn-id="${failed.id}"])`);
  assert.equal(await page.locator('.turn').count(), 1);
  assert.deepEqual(await asked(failed.sessionId), [broken]);

  // Asked in other words; Escape leaves it as it was.
  await lastTurn(page).hover();
  await lastTurn(page).locator('.edit').click();
  await page.fill('.question-input', 'given up');
  await page.press('.question-input', 'Escape');
  assert.equal(await lastTurn(page).locator('.question-text').innerText(), broken);
  await edit(page, 0, 'I live in Rome');
  const { sessionId } = await untilTurn(page, ['completed']);
  assert.deepEqual(await asked(sessionId), ['I live in Rome']);

  await send(page, 'A second question');
  await untilTurn(page, ['completed']);
  await send(page, 'A third question');
  await untilTurn(page, ['completed']);
  assert.equal(await page.locator('.turn').count(), 3);
  await edit(page, 0, 'I live in Oslo');
  const edited = await untilTurn(page, ['completed']);
  assert.equal(await page.locator('.turn').count(), 1, 'what followed the edited question is still shown');
  assert.deepEqual(await asked(sessionId), ['I live in Oslo']);
  await page.reload();
  await untilTurn(page, ['completed']);
  assert.equal(await page.locator('.turn').count(), 1);
  assert.equal(await lastTurn(page).getAttribute('data-turn-id'), edited.id);

  // A replacing message whose request fails is kept with what it replaces, over a reload too.
  const context = page.context();
  await context.route('**/turns', (route) => (route.request().method() === 'POST' ? route.abort('connectionreset') : route.continue()));
  await edit(page, 0, 'I live in Bern');
  await page.waitForSelector('.turn[data-status="pending"] .send-again:not([hidden])');
  assert.equal(await page.locator('.turn:visible').count(), 1);
  await page.reload();
  await page.waitForSelector('.turn[data-status="pending"]');
  assert.equal(await page.locator('.turn:visible').count(), 1);
  await context.unroute('**/turns');
  await page.locator('.send-again:visible').click();
  await page.waitForSelector(`.turn[data-status="completed"]:not([data-turn-id="${edited.id}"])`);
  assert.deepEqual(await asked(sessionId), ['I live in Bern']);
  forgive(visitor, /ERR_CONNECTION_RESET/);
});

async function edit(page, at, text) {
  const turn = page.locator('.turn').nth(at);
  await turn.hover();
  await turn.locator('.edit').click();
  await page.fill('.question-input', text);
  await page.press('.question-input', 'Enter');
  await page.waitForFunction((wanted) => [...document.querySelectorAll('.question-text')].at(-1)?.textContent === wanted, text);
}
