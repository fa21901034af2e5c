// Enter that confirms an input method's composition does not send the message.

import assert from 'node:assert/strict';
import { send, test, untilTurn } from './lib.mjs';

await test('Enter during a composition does not send', async (visitor) => {
  const page = await visitor.arrive({ locale: 'zh-CN' });
  assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN');
  let sent = 0;
  page.on('request', (request) => {
    if (request.method() === 'POST') sent += 1;
  });

  await page.focus('#message');
  await page.evaluate(() => {
    window.composing = [];
    document.getElementById('message').addEventListener('keydown', (event) => window.composing.push(event.isComposing));
  });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Input.imeSetComposition', { text: 'nihao', selectionStart: 5, selectionEnd: 5 });
  await page.keyboard.press('Enter');
  assert.deepEqual(await page.evaluate(() => window.composing), [true], 'the browser did not compose, so the test proves nothing');
  await devtools.send('Input.insertText', { text: '你好' });

  // Safari: the composition has ended already when the key that ended it is reported, as key code 229.
  await page.evaluate(() => {
    document.getElementById('message').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }));
  });
  await page.waitForTimeout(300);
  assert.equal(sent, 0, 'Enter sent the message in mid-composition');
  assert.equal(await page.locator('.turn').count(), 0);
  assert.match(await page.inputValue('#message'), /你好/);

  await page.keyboard.press('Shift+Enter');
  assert.match(await page.inputValue('#message'), /\n$/, 'Shift+Enter starts a new line');
  assert.equal(sent, 0, 'Shift+Enter sent the message');

  await send(page, '你好，世界');
  await untilTurn(page, ['completed']);
  assert.equal(await page.locator('.question-text').innerText(), '你好，世界');
});
