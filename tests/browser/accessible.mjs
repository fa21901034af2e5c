// Every state of the page is checked by axe in both themes, both languages, on a desk and on a phone; and it can be used by keyboard.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lastTurn, required, send, test, until, untilTurn } from './lib.mjs';

const PHONE = { viewport: { width: 380, height: 720 }, hasTouch: true, isMobile: true };
const VISITS = [
  { colorScheme: 'light', locale: 'en-GB' },
  { colorScheme: 'dark', locale: 'zh-CN' },
  { colorScheme: 'light', locale: 'zh-CN', ...PHONE },
  { colorScheme: 'dark', locale: 'en-GB', ...PHONE },
];
const RICH = '## A heading\n\n1. one\n2. **two** and *three* `code`\n\n```sh\nls\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n> quoted\n\n[link](https://example.org)';

await test('axe finds nothing in any state of the page, and the keyboard reaches everything', async (visitor) => {
  const axe = await readFile(join(required('TIDEMARK_TEST_NODE_MODULES_BROWSER'), 'axe-core/axe.min.js'), 'utf8');
  const sessionId = await prepare(visitor);
  for (const visit of VISITS) {
    const page = await visitor.arrive({ reducedMotion: 'reduce', ...visit });
    await page.evaluate(`${axe}; undefined`);
    const check = async (state) => {
      const violations = await page.evaluate(async () => {
        const { violations: found } = await window.axe.run(document, { resultTypes: ['violations'] });
        return found.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.slice(0, 3).map(({ html, failureSummary }) => `${html}\n${failureSummary}`) }));
      });
      const what = `${state}, ${visit.colorScheme}, ${visit.locale}, ${visit.isMobile ? 'phone' : 'desk'}`;
      assert.deepEqual(violations, [], `axe on ${what}: ${JSON.stringify(violations, null, 1)}`);
      const [content, view] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
      assert.ok(content <= view, `${what}: ${content} px in a window of ${view} px`);
    };
    await states(page, sessionId, check);
    await page.context().close();
  }
  await keyboard(await visitor.arrive(), sessionId);
});

/** A session with everything that can be shown, and some memories. */
async function prepare(visitor) {
  const page = await visitor.arrive();
  await send(page, 'I prefer answers as tables');
  const { sessionId } = await untilTurn(page, ['completed']);
  const at = new Date().toISOString();
  await visitor.post(`/v1/sessions/${sessionId}/messages`, {
    messages: [
      { role: 'user', content: 'Show everything', created_at: at },
      { role: 'assistant', content: RICH, created_at: at },
    ],
  });
  await send(page, 'Break [[error_status=400]]');
  await untilTurn(page, ['failed']);
  await until('memories', async () => (await visitor.get('/v1/memories')).items.length > 0);
  await page.context().close();
  return sessionId;
}

async function states(page, sessionId, check) {
  await check('a new conversation');
  await page.evaluate((id) => location.assign(`#/s/${id}`), sessionId);
  await page.waitForSelector('.turn:last-child[data-status="failed"]');
  await page.waitForSelector('.memory');
  await check('a conversation');
  await page.locator('.turn').first().hover();
  await page.locator('.edit').first().click();
  await check('editing a question');
  await page.press('.question-input', 'Escape');

  await page.click('#open-memory');
  await page.waitForSelector('#view-memories .card');
  await page.locator('.memory-history').first().click();
  await page.waitForSelector('.history-list');
  await page.locator('.memory-rename').nth(1).click();
  await check('memories');
  await page.click('.erase');
  await page.waitForSelector('#dialog[open]');
  await check('the question before an erasure');
  await page.press('#dialog', 'Escape');
  await page.click('#tab-recall');
  await page.waitForSelector('#view-recall h3');
  await check('recall');
  await page.click('#tab-timeline');
  await page.waitForSelector('.moment');
  await check('timeline');
  await page.click('#tab-changes');
  await check('changes');
  await page.click('#panel-close');
  if (await page.isVisible('#open-sidebar')) {
    await page.click('#open-sidebar');
    await page.waitForSelector('.drawer-open');
    await check('the drawer');
  }
}

async function keyboard(page, sessionId) {
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.locator('#skip').focus();
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'message', 'the skip link does not lead to the message box');

  await page.evaluate((id) => location.assign(`#/s/${id}`), sessionId);
  await page.waitForSelector('.turn:last-child[data-status="failed"]');
  await page.locator('#open-memory').focus();
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'tab-memories', 'an opened panel does not get the focus');
  await page.keyboard.press('ArrowRight');
  assert.equal(await focused(page), 'tab-recall');
  await page.keyboard.press('End');
  assert.equal(await focused(page), 'tab-changes');
  assert.ok(await page.isVisible('#view-changes'));
  await page.keyboard.press('Escape');
  assert.ok(await page.isHidden('#panel'));
  assert.equal(await focused(page), 'open-memory', 'the focus did not go back to where it came from');

  await lastTurn(page).locator('.edit').focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  assert.match(await page.evaluate(() => document.activeElement.className), /edit/, 'the focus was lost with the editor');
}

function focused(page) {
  return page.evaluate(() => document.activeElement.id);
}
