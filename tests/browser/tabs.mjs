// Ten tabs of one browser over HTTP/1.1, which opens six connections to a host: every answer arrives, and nobody waits for a stream.

import assert from 'node:assert/strict';
import { lastTurn, send, test, untilTurn, words } from './lib.mjs';

const TABS = 10;
/** Two of the six connections stay free for everything else. */
const STREAMS = 4;

/** Has a page note when it opens and closes streams, by the clock that all tabs share: what the browser tells of them comes in no order. */
function noteStreams() {
  const now = () => performance.timeOrigin + performance.now();
  window.followed = [];
  window.EventSource = class extends EventSource {
    constructor(...given) {
      super(...given);
      this.noted = { begun: now(), ended: Infinity };
      window.followed.push(this.noted);
    }

    close() {
      super.close();
      this.noted.ended = Math.min(this.noted.ended, now());
    }
  };
}

async function streamsOf(pages) {
  return (await Promise.all(pages.map((page) => page.evaluate(() => window.followed)))).flat();
}

/** What ends at the moment another begins is not open beside it. */
function mostAtOnce(streams) {
  const steps = streams.flatMap(({ begun, ended }) => [
    { at: begun, by: 1 },
    { at: ended, by: -1 },
  ]);
  steps.sort((one, other) => one.at - other.at || one.by - other.by);
  let open = 0;
  return Math.max(...steps.map(({ by }) => (open += by)));
}

await test('ten tabs answer at once over six connections', async (visitor) => {
  const first = await visitor.arrive();
  assert.equal(await first.evaluate(() => performance.getEntriesByType('navigation')[0].nextHopProtocol), 'http/1.1');
  await first.context().addInitScript(noteStreams);
  await first.reload();
  const pages = [first];
  while (pages.length < TABS) pages.push(await visitor.open(first.context()));

  await Promise.all(pages.map((page, number) => send(page, `count in tab ${number} [[tokens=60 delay_ms=100]]`)));
  await Promise.all(pages.map((page) => page.waitForSelector('.turn:last-child[data-turn-id]')));

  // While the streams run, a request of any tab is answered.
  const took = await pages[TABS - 1].evaluate(async () => {
    const asked = performance.now();
    await (await fetch('/v1/sessions?limit=1')).json();
    return performance.now() - asked;
  });
  const open = (await streamsOf(pages)).filter(({ ended }) => ended === Infinity);
  assert.ok(open.length > 0, 'no stream was open, so the test proves nothing');
  assert.ok(took < 3000, `a request beside the streams took ${Math.round(took)} ms`);

  for (const page of pages) {
    const { id } = await untilTurn(page, ['completed']);
    const { text } = await visitor.get(`/v1/turns/${id}`);
    assert.equal(words(text).length, 60);
    assert.deepEqual(words(await lastTurn(page).locator('.answer').innerText()), words(text));
  }
  const most = mostAtOnce(await streamsOf(pages));
  assert.ok(most <= STREAMS, `${most} streams were open at once`);
});
