// What the page costs a visitor who comes for the first time: bytes, and the time until a message can be written. The time is told
// and not judged, since it depends on the machine.

import assert from 'node:assert/strict';
import { test } from './lib.mjs';

const MOST_BYTES = 100 * 1024;

await test('the whole page is transferred in less than 100 KiB', async (visitor) => {
  const page = await visitor.arrive({ at: null });
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Network.enable');
  const files = new Map();
  let bytes = 0;
  devtools.on('Network.responseReceived', ({ requestId, response }) => files.set(requestId, response));
  devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (files.has(requestId)) bytes += encodedDataLength;
  });
  await page.goto(`${visitor.baseUrl}/`);
  await page.waitForFunction(() => performance.getEntriesByName('usable').length > 0);
  await page.waitForLoadState('networkidle');
  const [usable, paint] = await page.evaluate(() => [performance.getEntriesByName('usable')[0].startTime, performance.getEntriesByName('first-contentful-paint')[0]?.startTime]);

  const own = [...files.values()].filter(({ url }) => !url.includes('/v1/'));
  assert.ok(own.length > 10, `only ${own.length} files were seen`);
  for (const { url, headers } of own) {
    const compressible = !url.endsWith('/icon.svg');
    if (compressible) assert.equal(headers['content-encoding'] ?? headers['Content-Encoding'], 'gzip', `${url} is not compressed`);
  }
  console.log(`the page: ${own.length} files, ${bytes} bytes transferred; usable after ${Math.round(usable)} ms, first paint after ${Math.round(paint)} ms`);
  assert.ok(bytes < MOST_BYTES, `${bytes} bytes were transferred`);

  // Whoever comes again is sent nothing anew.
  bytes = 0;
  files.clear();
  await page.reload();
  await page.waitForLoadState('networkidle');
  console.log(`the page again: ${bytes} bytes transferred`);
  assert.ok(bytes < MOST_BYTES / 4, `${bytes} bytes were transferred to whoever has the page already`);
});
