import type { Answer } from './answer.js';
import { jsonAnswer } from './answer.js';
import { ANTHROPIC_ERRORS, missingAnthropicKey, withRequestId } from './anthropic-errors.js';
import { createChatFormat } from './chat-format.js';
import { createConversations } from './conversation-route.js';
import type { ModelOptions } from './conversation-route.js';
import { credentialOf, masked } from './credential.js';
import { echo } from './echo.js';
import { embeddings } from './embeddings.js';
import { createMessageThreads } from './message-threads.js';
import { createMessagesFormat } from './messages-format.js';
import { serveMessages } from './messages-routes.js';
import { malformedJson, missingKey, wrongKey } from './openai-errors.js';
import type { RecordedRequest } from './request-log.js';
import { createResponseStore } from './response-store.js';
import { createCompactFormat, createResponsesFormat } from './responses-format.js';
import { serveResponses } from './responses-routes.js';
import { plain, refused } from './routed.js';
import type { Routed } from './routed.js';
import { createSeal } from './seal.js';

/** The one key that is refused. */
const BAD_KEY = 'bad-key';

export interface RouteOptions extends ModelOptions {
  readonly rolesMustAlternate: boolean;
  readonly servesCompaction: boolean;
  readonly servesThreads: boolean;
  readonly cutsAtWindow: boolean;
  readonly largestBodyBytes: number;
  readonly secret: string;
  /** Marks the ids of replies as this simulator's. */
  readonly idMark: string;
  /** Ids of `GET /v1/models`. */
  readonly models: readonly string[];
  /** Answers a path that no other route serves; null leaves it to the echo. */
  readonly respond: (request: RecordedRequest) => Answer | null;
}

/** Answers a received request; `headers` are the full ones, which the record does not keep. */
export type Route = (request: RecordedRequest, headers: Readonly<Record<string, string>>) => Promise<Routed>;

/** The paths of the API, with and without `/v1`; `/health` alone needs no key. */
export function createRoutes(options: RouteOptions): Route {
  const { counter } = options;
  const seal = createSeal(options.secret);
  const converse = createConversations(options);
  const chat = converse(createChatFormat(counter, options));
  const responsesProvider = { store: createResponseStore(), seal, servesCompaction: options.servesCompaction };
  const responses = {
    store: responsesProvider.store,
    converse: converse(createResponsesFormat(counter, responsesProvider)),
    compact: options.servesCompaction ? converse(createCompactFormat(counter, responsesProvider)) : null,
  };
  const threads = createMessageThreads(options.servesThreads);
  const messages = {
    counter,
    seal,
    largestBodyBytes: options.largestBodyBytes,
    converse: converse(createMessagesFormat(counter, { seal, threads, cutsAtWindow: options.cutsAtWindow })),
  };

  return async (request, headers) => {
    const route = routeOf(request);
    if (route === 'GET /health') return plain('other', jsonAnswer(200, { status: 'ok', simulator: true }));
    const requestId = requestIdOf(request);
    const unauthorized = keyRefusal(request, headers, requestId);
    if (unauthorized !== null) return unauthorized;
    const seconds = Math.floor(request.arrivedAt / 1000);
    const stamp = { serial: `${options.idMark}_${request.index}`, requestId, seconds };
    switch (route) {
      case 'POST /chat/completions':
        if (request.body === undefined) return refused('chat', malformedJson());
        // No later request refers to a completion, and ids that come again with a new simulator make runs comparable.
        return chat(request.body, { ...stamp, serial: String(request.index) });
      case 'POST /embeddings':
        if (request.body === undefined) return refused('embeddings', malformedJson());
        return plain('embeddings', embeddings(request.body, counter));
      case 'GET /models': {
        const data = options.models.map((id) => modelEntry(id, seconds));
        return plain('models', jsonAnswer(200, { object: 'list', data }));
      }
      default: {
        const isUpgrade = headers['upgrade'] !== undefined;
        return (
          (await serveResponses(route, request, isUpgrade, stamp, responses)) ??
          (await serveMessages(route, request, headers['anthropic-version'], stamp, messages)) ??
          plain('other', options.respond(request) ?? echo(request))
        );
      }
    }
  };
}

/** Whether a path is one of those that answer in Anthropic's form. */
export function isMessagesPath(path: string): boolean {
  return /^(\/v1)?\/messages(\/|$)/.test(path);
}

export function requestIdOf({ index }: Pick<RecordedRequest, 'index'>): string {
  return `req_simulated_${index}`;
}

function routeOf({ method, path }: RecordedRequest): string {
  return `${method} ${path.replace(/^\/v1(?=\/)/, '')}`;
}

/** The refusal of a request without a key, or with the one that is refused; null for any other. */
function keyRefusal(
  { path }: RecordedRequest,
  headers: Readonly<Record<string, string>>,
  requestId: string,
): Routed | null {
  const credential = credentialOf(headers);
  if (credential !== null && credential !== BAD_KEY) return null;
  if (!isMessagesPath(path)) return refused('other', credential === null ? missingKey() : wrongKey(masked(credential)));
  const refusal = credential === null ? missingAnthropicKey() : ANTHROPIC_ERRORS.wrongKey(masked(credential));
  return refused('other', withRequestId(refusal, requestId));
}

function modelEntry(id: string, seconds: number) {
  return { id, object: 'model', created: seconds, owned_by: 'spillway-simulator' };
}
