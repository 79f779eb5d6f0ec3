import { jsonAnswer } from './answer.js';
import type { ConversationRoute, RequestStamp } from './conversation-route.js';
import { malformedJson, openaiError } from './openai-errors.js';
import type { RecordedRequest } from './request-log.js';
import type { ResponseStore } from './response-store.js';
import { plain, refused } from './routed.js';
import type { Routed } from './routed.js';

export interface ResponsesRoutes {
  readonly store: ResponseStore;
  readonly converse: ConversationRoute;
  /** Null: of a provider that does not compact. */
  readonly compact: ConversationRoute | null;
}

/** Serves `/responses` and what lies below it; null for other paths. `route`: method and path without the version. */
export async function serveResponses(
  route: string,
  { body }: RecordedRequest,
  isUpgrade: boolean,
  stamp: RequestStamp,
  { store, converse, compact }: ResponsesRoutes,
): Promise<Routed | null> {
  switch (route) {
    case 'POST /responses':
      return body === undefined ? refused('chat', malformedJson()) : converse(body, stamp);
    case 'POST /responses/compact':
      if (compact === null) return refused('compaction', unknownUrl('POST /v1/responses/compact'));
      return body === undefined ? refused('compaction', malformedJson()) : compact(body, stamp);
    case 'GET /responses':
      // A socket is not spoken here: a client that would rather have one is told at once.
      return refused(
        'other',
        isUpgrade ? openaiError(426, 'Upgrade Required') : openaiError(405, 'Method not allowed'),
      );
    default:
  }
  const [, method, id] = /^(GET|DELETE) \/responses\/([^/]+)$/.exec(route) ?? [];
  if (id === undefined) return null;
  if (method === 'DELETE') {
    return store.delete(id) ? plain('other', jsonAnswer(200, { id, object: 'response', deleted: true })) : notFound(id);
  }
  const stored = store.response(id);
  return stored === null ? notFound(id) : plain('other', jsonAnswer(200, stored.body));
}

function notFound(id: string): Routed {
  return refused('other', openaiError(404, `Response with id '${id}' not found.`));
}

function unknownUrl(url: string) {
  return openaiError(404, `Invalid URL (${url})`);
}
