// The pictures of the documentation, of a small story told to a real server. A run looks whether they can be taken and are small
// enough; with TIDEMARK_UPDATE=1 it also writes them to docs/screenshots.

import assert from 'node:assert/strict';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { lastTurn, send, test, until, untilTurn } from './lib.mjs';

const FOLDER = fileURLToPath(new URL('../../docs/screenshots/', import.meta.url));
const MOST_BYTES = 120 * 1024;
/** What the pictures take for now, so that they show the same times whenever they are taken. */
const NOW = '2026-05-02T09:41:00Z';
const DAY_MS = 24 * 3600 * 1000;
const QUESTION = 'What about the flat, the movers and the budget?';
/** The scripted model knows these questions by heart (tests/tests/browser.rs). */
const LATER = 'Who takes the piano?';

const STORY = [
  'I am moving to Lisbon in June.',
  'That is a big step. What is settled already?',
  'We decided to take the flat in Graça.',
  'The flat in Graça, then. Is there a date?',
  'The movers come on 12 June at eight in the morning.',
  'That leaves about six weeks.',
  'My budget for the move is 4,000 euros.',
  'Good to know. I will keep to that.',
  'I prefer answers as tables.',
  'Tables it is.',
  'The piano stays with my sister Nora.',
  'One heavy thing less to carry.',
  'I am allergic to cats, and the landlord has two of them.',
  'Then the flat should be cleaned before you arrive.',
  'We decided to sell the car before we leave.',
  'The car is sold first.',
  'The movers want half of the money in advance.',
  'That is usual; ask for a receipt.',
  'My budget for the move is 4,500 euros.',
  'Changed to 4,500 euros.',
];
const OTHERS = ['A birthday without sugar', 'Names for a sailing boat', 'Why the tomatoes turn yellow', '里斯本的春天', 'Notes on the tides at Graça'];

await test('the pictures of the documentation can be taken', async (visitor) => {
  const story = await tell(visitor);
  const writer = await arrive(visitor);
  await send(writer, QUESTION);
  const { id, sessionId } = await untilTurn(writer, ['completed']);
  await until('the memories behind the answer', async () => (await visitor.get(`/v1/turns/${id}`)).memories.length > 2);
  await writer.goto(`${visitor.baseUrl}/#/s/${story}`);
  await writer.waitForSelector('.turn');
  await send(writer, LATER);
  await untilTurn(writer, ['completed']);
  await writer.context().close();

  for (const colorScheme of ['light', 'dark']) {
    const page = await arrive(visitor, { colorScheme });
    await open(page, visitor, sessionId);
    await take(page, colorScheme);
    await page.context().close();
  }

  const page = await arrive(visitor);
  await open(page, visitor, sessionId);
  await page.click('#open-memory');
  await page.selectOption('[data-filter="layer"]', 'semantic');
  await page.waitForFunction(() => document.querySelectorAll('#view-memories .card').length < 10);
  const budget = page.locator('#view-memories .card').filter({ hasText: '4,500' });
  await budget.locator('.memory-history').click();
  await budget.locator('.history-list').first().waitFor();
  await take(page, 'memory');
  await open(page, visitor, story);
  await page.click('#open-timeline');
  await page.waitForSelector('.tidemark');
  await page.locator('#view-timeline .change[data-kind="consolidation"] summary').last().click();
  await page.locator('#view-timeline .change-content').last().filter({ hasText: /\w/ }).waitFor();
  await page.locator('.tidemark').evaluate((mark) => mark.scrollIntoView({ block: 'center' }));
  await take(page, 'timeline');
  await page.context().close();

  const phone = await arrive(visitor, { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true, colorScheme: 'dark' });
  await open(phone, visitor, sessionId);
  await take(phone, 'phone');
});

/** Sessions to be listed, and one with a past that was consolidated; its id. */
async function tell(visitor) {
  for (const title of OTHERS) await visitor.post('/v1/sessions', { title });
  const { id } = await visitor.post('/v1/sessions', { title: 'Moving to Lisbon' });
  const first = Date.parse('2026-04-30T18:02:00Z');
  const messages = STORY.map((content, at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content, created_at: new Date(first + at * 60_000).toISOString() }));
  await visitor.post(`/v1/sessions/${id}/messages`, { messages });
  await until('the consolidation', async () => (await visitor.get(`/v1/sessions/${id}`)).last_consolidated === STORY.length);
  return id;
}

async function arrive(visitor, options = {}) {
  const page = await visitor.arrive({ at: null, viewport: { width: 1280, height: 800 }, deviceScaleFactor: 2, reducedMotion: 'reduce', timezoneId: 'UTC', ...options });
  await page.clock.setFixedTime(NOW);
  // What happened in this run happened now, as far as the pictures go.
  await page.route(/\/v1\/(sessions|changes|memories|turns)(?!.*\/events)/, async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    const told = text.replaceAll(/"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g, (whole, time) => (Date.parse(time) > Date.now() - DAY_MS ? `"${NOW}"` : whole));
    await route.fulfill({ response, body: told });
  });
  await page.goto(`${visitor.baseUrl}/`);
  await page.waitForSelector('#message');
  return page;
}

async function open(page, visitor, sessionId) {
  await page.goto(`${visitor.baseUrl}/#/s/${sessionId}`);
  await page.waitForSelector('.turn:last-child[data-status="completed"]');
  await lastTurn(page).locator('.memory').first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.session').length > 5);
}

async function take(page, name) {
  await page.evaluate(async () => {
    document.activeElement.blur();
    await document.fonts.ready;
  });
  await page.mouse.move(0, 0);
  await page.waitForTimeout(300);
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 90 });
  const picture = Buffer.from(data, 'base64');
  assert.ok(picture.length <= MOST_BYTES, `${name} takes ${picture.length} bytes`);
  const path = `${FOLDER}${name}.webp`;
  if (process.env.TIDEMARK_UPDATE === '1') {
    await mkdir(FOLDER, { recursive: true });
    await writeFile(path, picture);
    console.log(`wrote ${path}, ${picture.length} bytes`);
  }
  assert.ok((await stat(path)).size <= MOST_BYTES, `${path} is too large`);
}
