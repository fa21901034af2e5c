// The timeline draws the conversation with its boundary: what lies before it was consolidated, and that can be undone.

import assert from 'node:assert/strict';
import { send, test, until, untilTurn } from './lib.mjs';

/** As many as make a session be consolidated. */
const IMPORTED = 20;

await test('the timeline shows the boundary, and a consolidation can be undone', async (visitor) => {
  const page = await visitor.arrive();
  const session = await visitor.post('/v1/sessions', { title: 'A long story' });
  const messages = Array.from({ length: IMPORTED }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: at === 2 ? 'My name is Mara and I live in Lisbon.' : at % 2 === 0 ? `We decided to build part ${at} in steel.` : `Noted: ${at}.`,
    created_at: new Date(Date.UTC(2026, 2, 1, 9, at)).toISOString(),
  }));
  await visitor.post(`/v1/sessions/${session.id}/messages`, { messages });
  const consolidation = await until('the consolidation', async () => (await visitor.get(`/v1/changes?session_id=${session.id}`)).items.find(({ kind }) => kind === 'consolidation'));
  const { last_consolidated: boundary } = await visitor.get(`/v1/sessions/${session.id}`);
  assert.equal(consolidation.to_seq, boundary);

  await page.goto(`${visitor.baseUrl}/#/s/${session.id}`);
  await page.waitForSelector('.turn');
  await page.click('#open-timeline');
  await page.waitForSelector('.tidemark');
  assert.deepEqual(await drawn(page), { taken: boundary, beyond: IMPORTED - boundary, inOrder: true });

  // What is said now lies beyond it.
  await send(page, 'And one thing more');
  await untilTurn(page, ['completed']);
  await page.waitForFunction((count) => document.querySelectorAll('.moment[data-seq]').length === count, IMPORTED + 2);
  assert.deepEqual(await drawn(page), { taken: boundary, beyond: IMPORTED + 2 - boundary, inOrder: true });
  assert.ok((await page.locator('.timeline-summary').innerText()).includes(`${boundary} of ${IMPORTED + 2} messages`));

  // A moment leads to its message.
  await page.locator('.moment[data-seq="3"] button').click();
  await page.waitForSelector('.turn.is-shown');
  assert.match(await page.locator('.turn.is-shown').innerText(), /Lisbon/);

  const change = page.locator(`#view-timeline .change[data-change-id="${consolidation.id}"]`);
  await change.locator('summary').click();
  await change.locator('.change-content').filter({ hasText: /Lisbon|steel/ }).first().waitFor();
  const learned = consolidation.items.filter(({ op }) => op === 'created');
  assert.equal(await change.locator('.change-items li').count(), consolidation.items.length);
  await change.locator('.undo').click();
  await page.click('#dialog-confirm');
  await page.waitForSelector('#view-timeline .change.is-reverted');
  assert.equal(await page.locator(`#view-timeline .change[data-change-id="${consolidation.id}"] .undo`).count(), 0);
  for (const { memory_id: id } of learned) {
    const answer = await fetch(`${visitor.baseUrl}/v1/memories/${id}`);
    assert.equal(answer.status, 404, 'what the consolidation had learned is still there');
  }
});

/** How many messages stand before the mark and behind it. */
function drawn(page) {
  return page.locator('.timeline').evaluate((line) => {
    const rows = [...line.children];
    const mark = rows.findIndex((row) => row.classList.contains('tidemark'));
    const messages = (part) => part.filter((row) => row.dataset.seq);
    const numbers = messages(rows).map((row) => Number(row.dataset.seq));
    const inOrder = numbers.every((seq, at) => at === 0 || seq > numbers[at - 1]);
    return { taken: messages(rows.slice(0, mark)).length, beyond: messages(rows.slice(mark)).length, inOrder };
  });
}
