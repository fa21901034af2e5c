// The page in both languages, in dark, on a desk and on a phone: nothing untranslated, nothing that overflows, nothing
// that moves under the reader's eyes.

import assert from 'node:assert/strict';
import { lastTurn, send, test, untilTurn, untilWords } from './lib.mjs';

const LONG = 'count [[tokens=250 delay_ms=40]]';

await test('the page holds in both languages, on a desk and on a phone', async (visitor) => {
  await phone(await visitor.arrive({ locale: 'zh-CN', viewport: { width: 380, height: 600 }, hasTouch: true, isMobile: true, colorScheme: 'dark' }));
  await desk(await visitor.arrive({ viewport: { width: 900, height: 420 } }));
});

async function phone(page) {
  assert.match(await page.getAttribute('#message', 'placeholder'), /[\u4e00-\u9fff]/);
  assert.equal(await page.locator('#sidebar').evaluate((sidebar) => sidebar.inert), true, 'a closed drawer can be reached by the keyboard');
  await fits(page);

  await page.tap('#open-sidebar');
  await page.waitForSelector('.drawer-open');
  await page.tap('[data-language="en"]');
  assert.equal(await page.getAttribute('html', 'lang'), 'en');
  assert.equal(await page.getAttribute('#message', 'placeholder'), 'Write a message');
  await page.tap('#close-sidebar');
  await page.reload();
  assert.equal(await page.getAttribute('html', 'lang'), 'en', 'the choice of language did not last');

  await page.fill('#message', 'a question from a phone');
  await page.tap('#send');
  await untilTurn(page, ['completed']);
  await fits(page);

  const missing = await page.evaluate(async () => {
    const { STRINGS } = await import('/assets/strings.js');
    const [en, zh] = [Object.keys(STRINGS.en), Object.keys(STRINGS.zh)];
    const bound = [...document.querySelectorAll('[data-i18n], [data-i18n-aria-label], [data-i18n-title], [data-i18n-placeholder]')];
    const used = bound.flatMap(({ dataset }) => [dataset.i18n, dataset.i18nAriaLabel, dataset.i18nTitle, dataset.i18nPlaceholder]).filter(Boolean);
    return [...en.filter((key) => !zh.includes(key)), ...[...zh, ...used].filter((key) => !en.includes(key))];
  });
  assert.deepEqual(missing, [], 'texts that are not there in every language');
}

async function desk(page) {
  const [sidebar, conversation] = [await page.locator('#sidebar').boundingBox(), await page.locator('#conversation').boundingBox()];
  assert.ok(sidebar.x + sidebar.width <= conversation.x, 'the sidebar does not stand beside the conversation');
  assert.equal(conversation.height, 420);

  await send(page, 'something short first');
  await untilTurn(page, ['completed']);
  await page.evaluate(() => {
    window.shift = 0;
    window.moved = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries().filter((one) => !one.hadRecentInput)) {
        window.shift += entry.value;
        for (const { node } of entry.sources) if (node?.closest) window.moved.push(node.className || node.localName);
      }
    }).observe({ type: 'layout-shift' });
  });
  await send(page, LONG);
  await untilWords(page, 60);
  await send(page, 'a second question, queued meanwhile');
  await page.waitForSelector('.turn[data-status="queued"]');

  // Followed to the bottom, until the reader scrolls away.
  assert.ok((await distance(page)) <= 2, 'the newest text was not kept in view');
  await page.locator('#scroller').evaluate((scroller) => scroller.scrollTo(0, 0));
  await page.waitForSelector('#to-latest:not([hidden])');
  await page.waitForFunction(() => document.querySelectorAll('.turn[data-status="completed"]').length === 3);
  assert.equal(await page.locator('#scroller').evaluate(({ scrollTop }) => scrollTop), 0, 'the page scrolled away from what was being read');
  await page.click('#to-latest');
  assert.ok((await distance(page)) <= 2);
  assert.equal(await lastTurn(page).locator('.question-text').innerText(), 'a second question, queued meanwhile');
  const [shift, moved] = await page.evaluate(() => [window.shift, window.moved]);
  console.log(`layout shift while answers were written: ${shift.toFixed(4)}`);
  assert.ok(shift < 0.1, `the layout shifted by ${shift} while the answer was written`);
  // What stands below a growing text moves down; nothing else moves.
  const others = moved.filter((name) => !/^(turn|turn-foot)$/.test(name));
  assert.deepEqual(others, [], 'something moved that was being read');
  await fits(page);
}

function distance(page) {
  return page.locator('#scroller').evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight);
}

async function fits(page) {
  const [content, view] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(content <= view, `the page is ${content} px wide in a window of ${view} px`);
  // Only its parts scroll: what is scrolled to inside one of them must not move the frame.
  const [height, visible] = await page.evaluate(() => [document.documentElement.scrollHeight, window.innerHeight]);
  assert.ok(height <= visible, `the page is ${height} px high in a window of ${visible} px`);
}
