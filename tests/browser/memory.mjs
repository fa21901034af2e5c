// A preference told in one session is recalled in the next, and shown as such.

import assert from 'node:assert/strict';
import { lastTurn, newSession, send, test, untilTurn } from './lib.mjs';

const PREFERENCE = 'I prefer answers as tables';

await test('a preference told in one session is shown as recalled in the next', async (visitor) => {
  const page = await visitor.arrive();
  await send(page, PREFERENCE);
  const told = await untilTurn(page, ['completed']);

  await newSession(page);
  await send(page, 'How did our sales develop over the last four quarters?');
  const asked = await untilTurn(page, ['completed']);
  assert.notEqual(asked.sessionId, told.sessionId, 'the question went into the same session');

  const chip = lastTurn(page).locator('.memory[data-via="profile"]').filter({ hasText: 'tables' }).first();
  assert.equal(await chip.count(), 1, `no chip shows the preference; the turn shows: ${await lastTurn(page).innerText()}`);
  assert.equal(await chip.getAttribute('data-scope'), 'user_profile');
  assert.match(await chip.locator('.memory-scope').innerText(), /About you/);
  assert.match(await chip.locator('.memory-facts').innerText(), /profile/);

  const turn = await visitor.get(`/v1/turns/${asked.id}`);
  const memory = turn.memories.find((one) => one.via === 'profile' && one.content.includes('tables'));
  assert.ok(memory, 'the stored turn does not name the preference');
  assert.ok((await chip.locator('.memory-score').innerText()).includes(memory.score.toFixed(2)), 'the chip shows another score than was stored');

  // The chip stands above the answer, and it is there again when the page is loaded anew.
  const [chipBox, answerBox] = [await chip.boundingBox(), await lastTurn(page).locator('.answer').boundingBox()];
  assert.ok(chipBox.y + chipBox.height <= answerBox.y, 'the chip does not stand above the answer');
  await page.reload();
  await page.waitForSelector('.turn:last-child .memory[data-via="profile"]');

  // A temporary chat neither recalls nor learns.
  await newSession(page);
  await page.click('#temporary');
  await send(page, 'I prefer answers in verse');
  const temporary = await untilTurn(page, ['completed']);
  assert.equal(await lastTurn(page).locator('.memory').count(), 0, 'a temporary chat recalled something');
  assert.equal((await visitor.get(`/v1/turns/${temporary.id}`)).memories?.length ?? 0, 0);
  await newSession(page);
  await send(page, 'How did our costs develop over the last four quarters?');
  await untilTurn(page, ['completed']);
  const recalled = await lastTurn(page).locator('.memory').allInnerTexts();
  assert.ok(recalled.some((one) => one.includes('tables')), `recalled: ${recalled}`);
  assert.ok(!recalled.some((one) => one.includes('verse')), `a temporary chat was learned from: ${recalled}`);
});
