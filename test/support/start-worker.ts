import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { unstable_startWorker } from 'wrangler';

const ADMIN_TOKEN = 'the-token-of-the-operator';

export interface StartedWorker {
  readonly url: string;
  /** The official client, pointed at the Worker. */
  client(headers?: Record<string, string>): OpenAI;
  post(body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>;
  /** A resource of Spillway's own API, parsed; `path` begins after `/spillway/v1`. */
  api(path: string, method?: string): Promise<Record<string, unknown>>;
  /** Ends the runtime and starts another on the same storage. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

type Settings = Readonly<Record<string, string>>;

/** The Worker of this project in workerd, on a free port, with storage of its own. */
export async function openWorker(settings: Settings): Promise<StartedWorker> {
  const folder = await mkdtemp(join(tmpdir(), 'spillway-worker-'));
  const start = async () => {
    const worker = await unstable_startWorker({
      config: 'wrangler.toml',
      bindings: Object.fromEntries(
        Object.entries({
          SPILLWAY_TENANT_SECRET: 'a-secret-of-more-than-thirty-two-characters',
          SPILLWAY_ADMIN_TOKEN: ADMIN_TOKEN,
          ...settings,
        }).map(([name, value]) => [name, { type: 'plain_text', value } as const]),
      ),
      dev: {
        server: { hostname: '127.0.0.1', port: 0 },
        inspector: false,
        watch: false,
        logLevel: 'none',
        persist: folder,
      },
    });
    await worker.ready;
    return { worker, url: (await worker.url).origin };
  };
  let running = await start();
  return {
    get url() {
      return running.url;
    },
    client: (headers = {}) =>
      new OpenAI({ baseURL: `${running.url}/v1`, apiKey: 'sk-test', maxRetries: 0, defaultHeaders: headers }),
    post: (body, headers = {}, signal) =>
      fetch(`${running.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-test', 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        signal: signal ?? null,
      }),
    async api(path, method = 'GET') {
      const headers = { 'x-spillway-admin-token': ADMIN_TOKEN };
      const response = await fetch(`${running.url}/spillway/v1${path}`, { method, headers });
      return (await response.json()) as Record<string, unknown>;
    },
    async restart() {
      await running.worker.dispose();
      running = await start();
    },
    async close() {
      await running.worker.dispose();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
