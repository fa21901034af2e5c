// Every state of a turn is shown for what it is, with its reason; and an answer arrives where no stream opens at all.

import assert from 'node:assert/strict';
import { forgive, lastTurn, send, test, untilTurn, words } from './lib.mjs';

await test('a turn shows how it stands, and why it failed', async (visitor) => {
  const page = await visitor.arrive();
  await thinksWaitsAndAnswers(page);
  await usesTools(page);
  await fails(page, visitor);
  await waitsWhenThereIsTooMuch(page, visitor, 'too_many_requests', 'Too many requests');
  await waitsWhenThereIsTooMuch(page, visitor, 'too_many_tokens', 'The tokens of today');
  await arrivesWithoutAStream(page, visitor);
});

async function thinksWaitsAndAnswers(page) {
  await send(page, 'A long thought [[first_ms=2500 tokens=20 delay_ms=100]]');
  await page.waitForSelector('.turn[data-status="running"]');
  await page.waitForFunction(() => /Thinking · \d+ s/.test(document.querySelector('.turn:last-child .status').textContent));
  await send(page, 'A question behind it');
  await page.waitForSelector('.turn:last-child[data-status="queued"]');
  assert.match(await lastTurn(page).locator('.status').innerText(), /Queued/);
  // What waits is not to be edited, since it could replace nothing.
  assert.equal(await page.locator('.edit:visible, .retry:visible').count(), 0);
  await page.waitForFunction(() => /Answering/.test(document.querySelector('.turn .status').textContent));
  await untilTurn(page, ['completed']);
  assert.equal(await page.locator('.turn[data-status="completed"]').count(), 2);
  assert.equal(await lastTurn(page).locator('.answer').getAttribute('aria-busy'), 'false');
}

async function usesTools(page) {
  await send(page, 'Look it up [[tool=search_memory tokens=5]]');
  await untilTurn(page, ['completed']);
  const tool = lastTurn(page).locator('.tool');
  assert.equal(await tool.getAttribute('data-state'), 'finished');
  assert.match(await tool.innerText(), /search_memory/);
  await page.reload();
  await untilTurn(page, ['completed']);
  await page.waitForSelector('.turn:last-child .tool[data-state="finished"]');
}

async function fails(page, visitor) {
  await send(page, 'Break [[error_status=400]]');
  const { id } = await untilTurn(page, ['failed']);
  const { problem } = await visitor.get(`/v1/turns/${id}`);
  assert.ok((await lastTurn(page).locator('.trouble').innerText()).includes(problem.detail));
  assert.equal(await lastTurn(page).getAttribute('data-problem'), problem.code);
  await page.reload();
  await page.waitForFunction((detail) => document.querySelector('.turn:last-child .trouble')?.textContent.includes(detail), problem.detail);
}

/** A message that is refused for what was asked for already says how long it waits and why, and is sent then. */
async function waitsWhenThereIsTooMuch(page, visitor, code, said) {
  let refused = false;
  await page.context().route('**/v1/sessions/*/turns', (route) => {
    if (refused) return route.continue();
    refused = true;
    const problem = { title: 'Too many requests', status: 429, code, detail: 'too many' };
    return route.fulfill({ status: 429, contentType: 'application/problem+json', headers: { 'Retry-After': '3' }, body: JSON.stringify(problem) });
  });
  await send(page, 'Said too soon [[tokens=5]]');
  await page.waitForFunction((text) => new RegExp(`${text}.* in 3 s`).test(document.querySelector('.turn:last-child .status').textContent), said);
  await untilTurn(page, ['completed']);
  assert.ok(refused);
  await page.context().unrouteAll({ behavior: 'ignoreErrors' });
  forgive(visitor, /429/);
}

/** Streams that a proxy keeps to itself: after three seconds the page asks for the turn instead. */
async function arrivesWithoutAStream(page, visitor) {
  await page.context().route('**/v1/turns/*/events*', () => {});
  const asked = page.waitForRequest((request) => /\/v1\/turns\/[0-9a-f-]+$/.test(request.url()));
  await send(page, 'Said without a stream [[tokens=30 delay_ms=100]]');
  await asked;
  const { id } = await untilTurn(page, ['completed']);
  const { text } = await visitor.get(`/v1/turns/${id}`);
  assert.deepEqual(words(await lastTurn(page).locator('.answer').innerText()), words(text));
  await page.context().unrouteAll({ behavior: 'ignoreErrors' });
  forgive(visitor, /ERR_ABORTED/);
}
