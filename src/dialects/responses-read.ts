import type { Message } from '../core/message.js';
import type { ReadRequest } from './dialect.js';
import { isEmpty, isJsonObject, positiveInteger, type JsonObject } from './json-value.js';
import { groupsOf, readGroup, sourceOf } from './responses-group.js';
import { plainMessage, typeOf } from './responses-item.js';

/**
 * Reads a Responses request. The instructions are the field `instructions`, if it says anything, and then the system and developer items
 * that the input begins with; so the indices of `kept` items are those of the input's messages (see `groupsOf`), behind one for the field
 * where there is one. A reference to an item is a message of its own whatever stands before it, and means nothing until it is looked up.
 *
 * Null for what cannot be read without guessing, and for what must reach the provider untouched: a conversation that it holds, and a
 * response that is made in the background and fetched later. May run out of stack on hostile nesting.
 */
export function readRequest(body: unknown): ReadRequest | null {
  if (!isJsonObject(body) || !isEmpty(body['conversation']) || (body['background'] ?? false) !== false) return null;
  const model = body['model'] ?? '';
  const stream = body['stream'] ?? false;
  const continues = body['previous_response_id'] ?? '';
  const field = readInstructions(body['instructions']);
  const items = inputItems(body['input']);
  if (typeof model !== 'string' || typeof stream !== 'boolean' || typeof continues !== 'string') return null;
  if (field === null || items === null) return null;

  const asksToCompact = typeOf(items.at(-1)) === 'compaction_trigger';
  const list = asksToCompact ? items.slice(0, -1) : items;
  const messages: Message[] = [];
  for (const group of groupsOf(list)) {
    const message = readGroup(sourceOf(list, group));
    if (message === null) return null;
    messages.push(message);
  }
  const first = messages.findIndex((message) => message.role !== 'system');
  if (first === -1) return null;
  const chain = messages.slice(first);
  const references = referencesIn(chain);
  return {
    model,
    stream,
    // Every stream reports it.
    includesUsage: true,
    choices: 1,
    instructions: [...(field === undefined ? [] : [field]), ...messages.slice(0, first)],
    messages: chain,
    fixedJson: [body['tools'], isJsonObject(body['text']) ? body['text']['format'] : null]
      .filter((value) => !isEmpty(value))
      .map((value) => JSON.stringify(value)),
    outputCap: positiveInteger(body['max_output_tokens']),
    session: sessionOf(body),
    continues: continues === '' ? null : continues,
    references,
    selfContained: continues === '' && references.size === 0 && isEmpty(body['prompt']) && !usesHostedTools(body),
    rewritable: true,
    asksToCompact,
  };
}

/** The field `instructions` as the message it is; undefined where it says nothing, null where it cannot be read. */
export function readInstructions(field: unknown): Message | null | undefined {
  if (field === undefined || field === null || field === '') return undefined;
  return typeof field === 'string' ? { ...plainMessage('system', { instructions: field }), text: field } : null;
}

/** Reads a message from its source, be it of the input or the field `instructions`. */
export function readSource(source: unknown): Message | null {
  const field = isJsonObject(source) && typeOf(source) === null ? source['instructions'] : undefined;
  return field === undefined ? readGroup(source) : (readInstructions(field) ?? null);
}

/** A string is the one user message it stands for. */
function inputItems(input: unknown): readonly unknown[] | null {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  return Array.isArray(input) ? input : null;
}

function referencesIn(messages: readonly Message[]): ReadonlyMap<number, string> {
  const references = new Map<number, string>();
  for (const [index, { source }] of messages.entries()) {
    const id = isJsonObject(source) && typeOf(source) === 'item_reference' ? source['id'] : null;
    if (typeof id === 'string') references.set(index, id);
  }
  return references;
}

/** The body field by which real clients name a session (SPEC 1.2). */
function sessionOf(body: JsonObject): string | null {
  const key = body['prompt_cache_key'];
  return typeof key === 'string' && key !== '' ? key : null;
}

/** Tools that the client runs, or that only say more of the tools in the request. */
const CLIENT_TOOLS: ReadonlySet<unknown> = new Set([
  'function',
  'custom',
  'namespace',
  'local_shell',
  'apply_patch',
  'computer',
  'computer_use_preview',
  'tool_search',
]);

/** Whether a tool runs at the provider, so that the model reads what no request shows (SPEC 7.9). */
function usesHostedTools(body: JsonObject): boolean {
  const tools: readonly unknown[] = Array.isArray(body['tools']) ? body['tools'] : [];
  return tools.some((tool) => {
    if (!isJsonObject(tool)) return true;
    if (tool['type'] !== 'shell') return !CLIENT_TOOLS.has(tool['type']);
    const place = tool['environment'];
    return isJsonObject(place) && place['type'] !== 'local';
  });
}
