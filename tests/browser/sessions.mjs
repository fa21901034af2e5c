// Sessions are created, switched, renamed and deleted, with the mouse and with the keyboard.

import assert from 'node:assert/strict';
import { newSession, send, test, untilTurn } from './lib.mjs';

await test('sessions can be switched, renamed and deleted', async (visitor) => {
  const page = await visitor.arrive();
  await send(page, 'The first of two conversations');
  const first = await untilTurn(page, ['completed']);
  await newSession(page);
  await send(page, 'The second of two conversations');
  const second = await untilTurn(page, ['completed']);
  assert.notEqual(first.sessionId, second.sessionId);
  const row = (id) => page.locator(`.session[data-session-id="${id}"]`);

  const order = await page.locator('.session').evaluateAll((rows) => rows.map((one) => one.dataset.sessionId));
  assert.ok(order.indexOf(second.sessionId) < order.indexOf(first.sessionId), 'the newest session is not listed first');

  await row(first.sessionId).locator('a').click();
  await page.waitForFunction(() => document.querySelector('.question-text')?.textContent === 'The first of two conversations');
  assert.equal(await page.locator('.turn').count(), 1);
  assert.equal(await row(first.sessionId).locator('a').getAttribute('aria-current'), 'page');
  await page.goBack();
  await page.waitForFunction(() => document.querySelector('.question-text')?.textContent === 'The second of two conversations');

  await row(second.sessionId).locator('.session-rename').click();
  await page.fill('.session-edit', 'Given up');
  await page.press('.session-edit', 'Escape');
  assert.equal((await visitor.get(`/v1/sessions/${second.sessionId}`)).title, 'The second of two conversations');
  await row(second.sessionId).locator('.session-rename').click();
  await page.fill('.session-edit', '重命名 <b>&amp;');
  const renamed = page.waitForResponse((response) => response.request().method() === 'PATCH');
  await page.press('.session-edit', 'Enter');
  assert.equal((await renamed).status(), 200);
  assert.equal((await visitor.get(`/v1/sessions/${second.sessionId}`)).title, '重命名 <b>&amp;');
  await page.waitForFunction(() => document.getElementById('title').textContent === '重命名 <b>&amp;');
  assert.equal(await row(second.sessionId).locator('.session-title').innerText(), '重命名 <b>&amp;');

  // The search is by title, in any language; Escape ends it.
  await page.fill('#session-search', '重命名');
  await row(first.sessionId).waitFor({ state: 'detached' });
  await row(second.sessionId).waitFor();
  await page.fill('#session-search', 'nothing is called so');
  await page.waitForSelector('#sidebar-note:not([hidden])');
  assert.equal(await page.locator('.session').count(), 0);
  await page.press('#session-search', 'Escape');
  await row(first.sessionId).waitFor();

  await row(second.sessionId).locator('.session-delete').click();
  await page.click('#dialog [value="cancel"]');
  assert.equal(await row(second.sessionId).count(), 1);
  await row(second.sessionId).locator('.session-delete').click();
  await page.click('#dialog-confirm');
  await page.waitForSelector('#welcome:not([hidden])');
  assert.equal(await row(second.sessionId).count(), 0);
  const gone = await fetch(`${visitor.baseUrl}/v1/sessions/${second.sessionId}`);
  assert.equal(gone.status, 404);
  assert.equal(await row(first.sessionId).count(), 1);

  await page.reload();
  await row(first.sessionId).waitFor();
  assert.equal(await row(second.sessionId).count(), 0);
});
