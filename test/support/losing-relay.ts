import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface LosingRelay {
  readonly port: number;
  /** Passes the next command on, and breaks the connection instead of giving its answer; that a script is unknown is none. */
  loseNextAnswer(): void;
  close(): Promise<void>;
}

/** A way to a server that can lose an answer: what was asked for was done, and nobody was told. */
export async function startLosingRelay(toPort: number): Promise<LosingRelay> {
  let isLosing = false;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(toPort, '127.0.0.1');
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk) => {
      if (!isLosing || chunk.toString('latin1').startsWith('-NOSCRIPT')) return void client.write(chunk);
      isLosing = false;
      client.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    loseNextAnswer() {
      isLosing = true;
    },
    close() {
      for (const socket of open) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
