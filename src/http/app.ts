import { Hono } from 'hono';
import { SpillwayError } from '../core/errors.js';
import type { Directory } from '../core/ports.js';
import type { Deletion } from '../proxy/deletion.js';
import type { Proxy } from '../proxy/request.js';
import { checkHost, checkLoan, checkOperator } from './auth.js';
import { conversations, type ConversationsDeps } from './conversations.js';
import { defectOf, errorForm, errorResponse, type Defect } from './errors.js';
import { models, type ModelsDeps } from './models.js';
import { tenants, type TenantsDeps } from './tenants.js';
import { targetOf, type Upstreams } from './upstreams.js';

export interface AppDeps<Bindings extends object> extends ConversationsDeps<Bindings>, ModelsDeps, TenantsDeps {
  readonly deletion: Deletion;
  readonly directory: Directory;
  readonly proxy: Proxy;
  readonly upstreams: Upstreams;
  /** True once no new request is wanted. */
  readonly isStopping: () => boolean;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  readonly reportDefect: (defect: Defect) => void;
  /** Hears of what is refused before the proxy or by the API. Without its path, which may carry what is the client's. */
  readonly reportRefusal: (refusal: Refusal) => void;
}

interface Refusal {
  readonly method: string;
  readonly status: number;
  readonly code: string;
}

/** Every route. What is under an API root goes to the proxy, whatever its method, unread; all else is ours. */
export function createApp<Bindings extends object>(deps: AppDeps<Bindings>): Hono<{ Bindings: Bindings }> {
  const { platform, access, upstreams, proxy } = deps;
  const app = new Hono<{ Bindings: Bindings }>();

  app.onError((error, c) => {
    const form = errorForm(error);
    if (error instanceof SpillwayError)
      deps.reportRefusal({ method: c.req.method, status: form.status, code: error.code });
    else deps.reportDefect(defectOf(error));
    return errorResponse(form, form.status === 401 ? { 'www-authenticate': 'Bearer' } : {});
  });

  app.use(async (_, next) => {
    if (deps.isStopping()) throw new SpillwayError('shutting_down', 'Spillway is stopping and takes no new request.');
    await next();
  });

  app.get('/health', (c) => c.json({ status: 'ok' }));

  app.use('/spillway/*', async (c, next) => {
    await checkOperator(platform.incoming(c.req.raw, c.env), access);
    await next();
    c.header('cache-control', 'no-store');
    c.header('x-content-type-options', 'nosniff');
  });
  app.route('/spillway/v1/conversations', conversations(deps));
  app.route('/spillway/v1/models', models(deps));
  app.route('/spillway/v1/tenants', tenants(deps));

  app.all('*', async (c) => {
    const arrivedAt = deps.now();
    const caller = platform.incoming(c.req.raw, c.env);
    const { method, headers, body } = caller;
    checkHost(caller, access);
    const url = new URL(c.req.url);
    const target = targetOf(method, url.pathname, headers, upstreams);
    if (target === null) throw new SpillwayError('not_found', notFound(method, url.pathname), 'path');
    checkLoan(caller, access, target.upstream.apiKey !== null);
    if (/\bwebsocket\b/i.test(headers['upgrade'] ?? '')) return websocketRefusal();
    const request = { ...target, method, query: url.search, headers, body, arrivedAt };
    return platform.respond(c.env, (sink) => proxy(request, sink));
  });

  return app;
}

function notFound(method: string, path: string): string {
  const hint = path.startsWith('/spillway/') ? '' : " A client's base URL ends in /v1.";
  return `There is no ${method} ${path} here.${hint}`;
}

/** Clients that try a websocket first fall back at once on this status. */
function websocketRefusal(): Response {
  const form = {
    status: 426,
    type: 'invalid_request_error',
    code: 'websocket_unsupported',
    message: 'Spillway speaks HTTP, not websocket: send the same request without the upgrade.',
    field: 'upgrade',
    overflow: null,
  };
  return errorResponse(form, { upgrade: 'HTTP/1.1', connection: 'upgrade' });
}
