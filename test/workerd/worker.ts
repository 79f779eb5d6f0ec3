import type { DurableObjectState } from 'cloudflare:workers';
import type { Clock } from '../../src/core/ports.js';
import type { Bindings } from '../../src/worker/bindings.js';
import { ConversationObject as Conversation } from '../../src/worker/conversation-object.js';
import { DirectoryObject as Directory } from '../../src/worker/directory-object.js';

/** What the objects here take for the time; tests run in the same isolate. */
const times: { now: Clock } = { now: () => Date.now() };

/** A test sets it before it asks an object for anything. */
export function setClock(clock: Clock): void {
  times.now = clock;
}

/** The objects here, of one store among many: its name begins that of each of them. */
function storeOf(state: DurableObjectState, bindings: Bindings): Bindings {
  const [store = ''] = /^.*\//.exec(state.id.name ?? '') ?? [];
  const { CONVERSATIONS, DIRECTORIES } = bindings;
  return {
    ...bindings,
    CONVERSATIONS: { getByName: (name) => CONVERSATIONS.getByName(store + name) },
    DIRECTORIES: { getByName: (name) => DIRECTORIES.getByName(store + name) },
  };
}

export class ConversationObject extends Conversation {
  constructor(state: DurableObjectState, bindings: Bindings) {
    super(state, storeOf(state, bindings), () => times.now());
  }
}

export class DirectoryObject extends Directory {
  constructor(state: DurableObjectState, bindings: Bindings) {
    super(state, storeOf(state, bindings), () => times.now());
  }
}

export default {
  fetch: (): Response => new Response(null, { status: 404 }),
};
