/** The least that hono and undici can do for a proxy: no body is read, nothing is recorded. Its argument is the upstream's base URL. */
import { createServer } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import { stream } from 'undici';
import { announce } from './announce.js';

const [, , upstream = ''] = process.argv;
const app = new Hono<{ Bindings: HttpBindings }>();

app.post('/v1/*', async (c) => {
  const { incoming, outgoing } = c.env;
  const { host: _host, connection: _connection, ...headers } = incoming.headers;
  await stream(
    `${upstream}${c.req.path.slice('/v1'.length)}`,
    { method: 'POST', headers, body: incoming },
    (answer) => {
      const { connection: _kept, 'keep-alive': _alive, 'transfer-encoding': _coding, ...passed } = answer.headers;
      return outgoing.writeHead(answer.statusCode, passed);
    },
  );
  return RESPONSE_ALREADY_SENT;
});

const listener = getRequestListener(app.fetch, { overrideGlobalObjects: false });
announce(createServer((incoming, outgoing) => void listener(incoming, outgoing)));
