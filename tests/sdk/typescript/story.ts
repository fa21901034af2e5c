// What both TypeScript smoke programs share: how they are told where the server is, how they ask for a cut, and what they hold of a stream.

import assert from 'node:assert/strict';

export const base = process.env.TIDEMARK_URL ?? '';
export const user = `sdk-${crypto.randomUUID()}`;
/** The scripted model answers so slowly that the connection can be cut in the middle. */
export const question = 'What is the budget? [[tokens=40 delay_ms=40]]';

interface Told {
  type: string;
  seq?: number;
}

/** Every event once, in order, the tokens equal to the text, and one cut in the middle of the answer. */
export class Reading {
  private seen: number[] = [];
  private text = '';
  private asked = false;

  take(event: Told & { token?: string; text?: string; status?: string }): void {
    assert(event.seq !== undefined);
    this.seen.push(event.seq);
    if (event.type !== 'message') return;
    this.text += event.token;
    if (this.asked) return;
    this.asked = true;
    // Whoever runs this cuts the connection when it reads the line.
    console.log('cut');
  }

  end(done: { text: string; status: string } | undefined): void {
    assert(done, 'the stream ended without its end');
    assert.equal(done.status, 'completed');
    assert.equal(this.text, done.text);
    assert.deepEqual(this.seen, this.seen.map((_, place) => place + 1), 'each event once, in order');
  }
}
