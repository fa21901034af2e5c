// A way to the server that a test may cut, or make answer as a proxy does whose server is away.

import net from 'node:net';

const BAD_GATEWAY = 'HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 7\r\nConnection: close\r\n\r\nno way\n';

export class CuttingProxy {
  /** A way to `target`, an address such as `http://127.0.0.1:8080`. */
  static async to(target) {
    const proxy = new CuttingProxy(new URL(target));
    await new Promise((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  constructor({ hostname, port }) {
    this.open = new Set();
    this.refusing = false;
    this.refused = 0;
    this.server = net.createServer((client) => {
      this.#keep(client);
      if (this.refusing) {
        client.once('data', () => {
          this.refused += 1;
          client.end(BAD_GATEWAY);
        });
        return;
      }
      const server = net.connect(Number(port), hostname);
      this.#keep(server);
      client.pipe(server).pipe(client);
      client.on('close', () => server.destroy());
      server.on('close', () => client.destroy());
    });
  }

  #keep(socket) {
    this.open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.open.delete(socket));
  }

  get url() {
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  /** Ends every connection; new ones are carried. */
  cut() {
    for (const socket of this.open) socket.destroy();
  }

  /** Answers 502 to everything, over connections that are new. */
  refuse() {
    this.refusing = true;
    this.cut();
  }

  carry() {
    this.refusing = false;
    this.cut();
  }
}
