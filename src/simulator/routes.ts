import type { Answer } from './answer.js';
import { jsonAnswer, refusalAnswer } from './answer.js';
import { createChatRoute } from './chat-route.js';
import type { ModelOptions, Routed } from './chat-route.js';
import { credentialOf, masked } from './credential.js';
import { echo } from './echo.js';
import { embeddings } from './embeddings.js';
import { malformedJson, missingKey, wrongKey } from './openai-errors.js';
import type { RecordedRequest } from './request-log.js';

/** The one key that is refused. */
const BAD_KEY = 'bad-key';

export interface RouteOptions extends ModelOptions {
  /** Ids of `GET /v1/models`. */
  readonly models: readonly string[];
  /** Answers a path that no other route serves; null leaves it to the echo. */
  readonly respond: (request: RecordedRequest) => Answer | null;
}

/** Answers a received request; `headers` are the full ones, which the record does not keep. */
export type Route = (request: RecordedRequest, headers: Readonly<Record<string, string>>) => Promise<Routed>;

/** The paths of the API, with and without `/v1`; `/health` alone needs no key. */
export function createRoutes(options: RouteOptions): Route {
  const chat = createChatRoute(options);
  return async (request, headers) => {
    const route = `${request.method} ${request.path.replace(/^\/v1(?=\/)/, '')}`;
    if (route === 'GET /health') return plain('other', jsonAnswer(200, { status: 'ok', simulator: true }));
    const credential = credentialOf(headers);
    if (credential === null) return plain('other', refusalAnswer(missingKey()));
    if (credential === BAD_KEY) return plain('other', refusalAnswer(wrongKey(masked(credential))));
    const seconds = Math.floor(request.arrivedAt / 1000);
    switch (route) {
      case 'POST /chat/completions':
        if (request.body === undefined) return plain('chat', refusalAnswer(malformedJson()));
        return chat(request.body, request.index, seconds);
      case 'POST /embeddings':
        if (request.body === undefined) return plain('embeddings', refusalAnswer(malformedJson()));
        return plain('embeddings', embeddings(request.body, options.counter));
      case 'GET /models':
        return plain(
          'models',
          jsonAnswer(200, { object: 'list', data: options.models.map((id) => modelEntry(id, seconds)) }),
        );
      default:
        return plain('other', options.respond(request) ?? echo(request));
    }
  };
}

function plain(kind: Routed['kind'], answer: Answer): Routed {
  return { kind, promptTokens: null, prefix: null, reply: null, answer };
}

function modelEntry(id: string, seconds: number) {
  return { id, object: 'model', created: seconds, owned_by: 'spillway-simulator' };
}
