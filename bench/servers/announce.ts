import type { Server } from 'node:http';

/** Listens on a free loopback port and says where, as Spillway does. */
export function announce(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    process.stderr.write(`listens on http://127.0.0.1:${port}/v1\n`);
  });
  process.on('SIGTERM', () => {
    server.close();
    server.closeAllConnections();
  });
}
