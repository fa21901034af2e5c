// Asks on the example page, as a person would, and prints the answer.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const { chromium } = createRequire(join(process.env.MODULES, 'package.json'))('playwright-core');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
});
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => {
    throw error;
  });
  await page.goto(process.env.PAGE);
  await page.getByRole('button', { name: 'Ask' }).click();
  const answer = page.locator('#answer[data-status="completed"]');
  await answer.waitFor({ timeout: 30_000 });
  console.log(await answer.textContent());
} finally {
  await browser.close();
}
