// What the browser tests share: a browser, a page that reports its errors, and the steps a person takes.
//
// Environment: BASE_URL (the server under test), TIDEMARK_TEST_NODE_MODULES_BROWSER (the folder that holds
// playwright-core: a `node_modules` or its parent), TIDEMARK_TEST_CHROMIUM (default /usr/bin/chromium).

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const TEST_TIMEOUT_MS = 150_000;
const STEP_TIMEOUT_MS = 30_000;

export function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

function playwright() {
  const folder = required('TIDEMARK_TEST_NODE_MODULES_BROWSER');
  const require = createRequire(join(folder, 'package.json'));
  return require('playwright-core');
}

/** Runs one test and ends the process: 0 when `body` returns and no page reported an error, 1 otherwise. */
export async function test(name, body) {
  const watchdog = setTimeout(() => {
    console.error(`FAILED ${name}: not finished within ${TEST_TIMEOUT_MS / 1000} s`);
    process.exit(1);
  }, TEST_TIMEOUT_MS);
  let browser;
  let failure;
  const errors = [];
  try {
    const baseUrl = required('BASE_URL').replace(/\/$/, '');
    browser = await playwright().chromium.launch({
      executablePath: process.env.TIDEMARK_TEST_CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
    });
    await body(new Visitor(browser, baseUrl, errors));
    assert.deepEqual(errors, [], 'the page reported errors');
  } catch (error) {
    failure = error;
  }
  await browser?.close().catch(() => {});
  clearTimeout(watchdog);
  if (failure) {
    console.error(`FAILED ${name}: ${failure.stack ?? failure}`);
    if (errors.length > 0) console.error(`The page's errors:\n${errors.join('\n')}`);
    process.exit(1);
  }
  console.log(`ok ${name}`);
  process.exit(0);
}

/** Somebody with a browser profile of their own. */
export class Visitor {
  constructor(browser, baseUrl, errors) {
    this.browser = browser;
    this.baseUrl = baseUrl;
    this.errors = errors;
  }

  /** A new profile with one page, opened at `/` of the server or of the address `at`; `null` opens nothing yet. */
  async arrive({ at = this.baseUrl, ...options } = {}) {
    const context = await this.browser.newContext({ locale: 'en-GB', viewport: { width: 1200, height: 800 }, ...options });
    context.setDefaultTimeout(STEP_TIMEOUT_MS);
    return this.open(context, at);
  }

  /** One more page of a profile. */
  async open(context, at = this.baseUrl) {
    const page = await context.newPage();
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(`console: ${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => this.errors.push(`exception: ${error.stack ?? error}`));
    page.on('request', (request) => {
      if (!request.url().startsWith(at ?? this.baseUrl) && !request.url().startsWith('blob:')) this.errors.push(`outside request: ${request.url()}`);
    });
    if (at !== null) {
      await page.goto(`${at}/`);
      await page.waitForSelector('#message');
    }
    return page;
  }

  /** The JSON that the server answers at `path`. */
  async get(path) {
    const response = await fetch(this.baseUrl + path);
    assert.equal(response.status, 200, `GET ${path}`);
    return response.json();
  }

  async post(path, body) {
    const response = await fetch(this.baseUrl + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    assert.ok(response.ok, `POST ${path}: ${response.status}`);
    return response.json();
  }

  /** The whole history of a session. */
  async history(sessionId) {
    const items = [];
    let cursor;
    do {
      const page = await this.get(`/v1/sessions/${sessionId}/messages?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
      items.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor);
    return items;
  }
}

/** Takes back errors that a test has made itself; anything else still counts. */
export function forgive(visitor, pattern) {
  visitor.errors.splice(0, visitor.errors.length, ...visitor.errors.filter((error) => !pattern.test(error)));
}

/** Asks `look` until it answers something true. */
export async function until(what, look) {
  const end = Date.now() + STEP_TIMEOUT_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(Date.now() < end, `${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Leaves whatever is open for a conversation without a session. */
export async function newSession(page) {
  await page.click('#new-session');
  await page.waitForSelector('#welcome:not([hidden])');
}

export async function send(page, message) {
  await page.fill('#message', message);
  await page.press('#message', 'Enter');
}

export const lastTurn = (page) => page.locator('.turn').last();

/** The last turn once it has reached one of `statuses`: `{ id, sessionId }`. */
export async function untilTurn(page, statuses) {
  const selector = statuses.map((status) => `.turn:last-child[data-turn-id][data-status="${status}"]`).join(', ');
  const turn = await page.waitForSelector(selector);
  const sessionId = /#\/s\/([0-9a-f-]+)/.exec(page.url())?.[1];
  assert.ok(sessionId, `the address names no session: ${page.url()}`);
  return { id: await turn.getAttribute('data-turn-id'), sessionId };
}

/** Waits until the last answer shows at least `count` words. */
export async function untilWords(page, count) {
  await page.waitForFunction(
    (least) => {
      const answer = [...document.querySelectorAll('.turn')].at(-1)?.querySelector('.answer');
      return (answer?.textContent.match(/[\p{L}\p{N}]+/gu) ?? []).length >= least;
    },
    count,
  );
}

/** The words of a text: layout and Markdown marks aside, this is what a reader is told. */
export const words = (text) => text.match(/[\p{L}\p{N}]+/gu) ?? [];
