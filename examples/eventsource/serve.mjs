// Serves the page and passes /v1/ on to Tidemark, so that both are of one origin: `node serve.mjs`, then open what it prints.

import { createReadStream } from 'node:fs';
import { createServer, request } from 'node:http';

const tidemark = new URL(process.env.TIDEMARK_URL ?? 'http://127.0.0.1:8080');

const server = createServer((asked, answer) => {
  if (!asked.url.startsWith('/v1/')) {
    answer.setHeader('Content-Type', 'text/html; charset=utf-8');
    createReadStream(new URL('index.html', import.meta.url)).pipe(answer);
    return;
  }
  const { method, url: path, headers } = asked;
  const passed = request({ host: tidemark.hostname, port: tidemark.port, method, path, headers }, (given) => {
    answer.writeHead(given.statusCode, given.headers);
    given.pipe(answer); // As it comes, unbuffered.
  });
  passed.on('error', () => answer.destroy());
  answer.on('close', () => passed.destroy());
  asked.pipe(passed);
});

server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
