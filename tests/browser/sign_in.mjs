// A server that wants to know who is there is asked again with a key, and nothing that was written meanwhile is lost. What the server
// answers is played here: how it checks keys is not the page's concern.

import assert from 'node:assert/strict';
import { forgive, send, test, untilTurn } from './lib.mjs';

await test('a refused page signs in, sends what was waiting, and signs out', async (visitor) => {
  const page = await visitor.arrive();
  assert.ok(await page.isHidden('#sign-out'), 'signing out is offered where nobody signs in');
  const context = page.context();
  let known = false;
  const refusal = { status: 401, contentType: 'application/problem+json', body: JSON.stringify({ title: 'Unauthorized', status: 401, code: 'unauthorized' }) };
  await context.route('**/v1/**', (route) => (known ? route.continue() : route.fulfill(refusal)));
  await context.route('**/v1/login', (route) => {
    known = route.request().postDataJSON().key === 'tmk_right';
    const answer = JSON.stringify({ user: 'ada', scopes: ['chat', 'memory:read', 'memory:write'] });
    return known ? route.fulfill({ status: 200, contentType: 'application/json', body: answer }) : route.fulfill(refusal);
  });
  await context.route('**/v1/logout', (route) => {
    known = false;
    return route.fulfill({ status: 204 });
  });

  await send(page, 'Written before signing in');
  await page.waitForSelector('#sign-in[open]');
  await page.keyboard.press('Escape');
  await page.fill('#sign-in-key', 'tmk_wrong');
  await page.press('#sign-in-key', 'Enter');
  await page.waitForSelector('#sign-in-problem:not([hidden])');
  await page.fill('#sign-in-key', 'tmk_right');
  await page.click('#sign-in-submit');
  await untilTurn(page, ['completed']);
  assert.equal(await page.locator('.question-text').innerText(), 'Written before signing in');
  assert.ok(await page.isHidden('#sign-in'));
  const kept = await page.evaluate(() => JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)]));
  assert.ok(!kept.includes('tmk_'), `the key is kept where scripts can read it: ${kept}`);

  // Whoever may not export and erase is not offered to.
  assert.equal(await page.locator('#user-data').evaluate((root) => root.hidden), true);
  await page.click('#sign-out');
  await page.waitForSelector('#sign-in[open]');
  assert.equal(await page.locator('.turn').count(), 0, 'the conversation is still shown to whoever comes next');
  forgive(visitor, /401/);
});
