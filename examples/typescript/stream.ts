// Follows a turn to its end, however often the connection is cut: every event once, in its order.
//
// For types of openapi-typescript, whose client has no streams of its own. What @hey-api/openapi-ts makes resumes by itself.

import type { components } from './generated/tidemark.js';

export type TurnEvent = components['schemas']['TurnEvent'];
export type Problem = components['schemas']['Problem'];

/** The server said no, and will say so again. */
export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

export interface FollowOptions {
  /** Sent with every request, such as `X-Tidemark-User`. */
  headers?: HeadersInit;
  signal?: AbortSignal;
  /** So many attempts in a row may fail; 10 when not said. */
  attempts?: number;
}

/** The events of a turn, up to `done`. Pass over types that you do not know: there may be more one day. */
export async function* followTurn(base: string, turnId: string, options: FollowOptions = {}): AsyncGenerator<TurnEvent> {
  const { signal, attempts = 10 } = options;
  const headers = new Headers(options.headers);
  let wait = 1000;
  for (let failed = 0; ; ) {
    try {
      const response = await fetch(new URL(`/v1/turns/${turnId}/events`, base), { headers, signal: signal ?? null });
      if (response.status === 204) return; // There is nothing behind the last event that was seen.
      if (!response.ok || !response.body) throw await refusal(response);
      for await (const frame of frames(response.body)) {
        wait = frame.retry ?? wait;
        if (frame.data === undefined) continue;
        failed = 0;
        // Where to go on, should the connection be cut. Reasoning has no id and is never told again.
        if (frame.id) headers.set('Last-Event-ID', frame.id);
        const event = JSON.parse(frame.data) as TurnEvent;
        yield event;
        if (event.type === 'done') return;
      }
      // Without `done` the turn goes on: the server is going down, or a proxy has had enough.
    } catch (error) {
      if (signal?.aborted || error instanceof Refusal || ++failed >= attempts) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

async function refusal(response: Response): Promise<Error> {
  const passing = response.status === 429 || response.status >= 500;
  return passing ? new Error(`HTTP ${response.status}`) : new Refusal((await response.json()) as Problem);
}

interface Frame {
  id?: string;
  data?: string;
  retry?: number;
}

/** The blocks of a stream of server-sent events. A block that is cut off is none. */
async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const frame: Frame = {};
        for (const line of block.split(/\r?\n/)) {
          const [, name, text = ''] = /^(\w+):? ?(.*)$/.exec(line) ?? [];
          if (name === 'id') frame.id = text;
          if (name === 'data') frame.data = frame.data === undefined ? text : `${frame.data}\n${text}`;
          if (name === 'retry') frame.retry = Number(text);
        }
        yield frame;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
