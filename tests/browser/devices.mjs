// Two devices with the same conversation open: whoever comes back to one sees what was said on the other.

import assert from 'node:assert/strict';
import { send, test, untilTurn, untilWords } from './lib.mjs';

await test('who comes back to a device sees what was said on another', async (visitor) => {
  const desk = await visitor.arrive();
  await send(desk, 'Said at the desk');
  const { sessionId } = await untilTurn(desk, ['completed']);
  const phone = await visitor.arrive();
  await phone.goto(`${visitor.baseUrl}/#/s/${sessionId}`);
  await untilTurn(phone, ['completed']);
  await send(phone, 'Said on the phone [[tokens=60 delay_ms=100]]');
  await untilWords(phone, 3);

  // Back at the desk while the answer is being written: it goes on there.
  await comeBack(desk);
  await desk.waitForSelector('.turn:nth-child(2)[data-status="running"]');
  await untilWords(desk, 3);
  assert.equal(await desk.locator('.turn').count(), 2);
  await untilTurn(desk, ['completed']);

  // And back on the phone after something was said and answered elsewhere.
  await untilTurn(phone, ['completed']);
  await send(desk, 'Said at the desk again');
  await untilTurn(desk, ['completed']);
  await comeBack(phone);
  await phone.waitForFunction(() => document.querySelectorAll('.turn[data-status="completed"]').length === 3);

  // Nothing is drawn anew where nothing was said.
  await phone.evaluate(() => {
    document.querySelector('.turn').dataset.kept = 'yes';
  });
  await comeBack(phone);
  await phone.waitForTimeout(500);
  assert.equal(await phone.locator('.turn[data-kept]').count(), 1, 'the conversation was drawn anew without need');
});

/** The browser tells this when a tab or an app comes to the front. */
function comeBack(page) {
  return page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
}
