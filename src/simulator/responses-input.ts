import type { Refusal } from './answer.js';
import { isRecord } from './json-value.js';
import { openaiError } from './openai-errors.js';
import { idOf, typeOf } from './response-item.js';
import type { ResponseStore } from './response-store.js';
import type { Item, ResponsesRequest } from './responses-request.js';
import type { Seal } from './seal.js';

/** What a request puts before the model. */
export interface ResolvedInput {
  /** What the provider held of it and what came with it, in order; references resolved, a trigger left out. */
  readonly items: readonly Item[];
  /** The last item asks for a compaction. */
  readonly compacts: boolean;
}

/** What a provider holds and knows. */
export interface ResponsesProvider {
  readonly store: ResponseStore;
  readonly seal: Seal;
  /** Serves compaction, and so knows the items that ask for it and come of it. */
  readonly servesCompaction: boolean;
}

/** Puts the history a request refers to in its place; the refusal names what the provider does not hold or cannot open. */
export function resolveInput(request: ResponsesRequest, provider: ResponsesProvider): ResolvedInput | Refusal {
  const { conversation, prompt } = request.body;
  if (conversation != null) return notFound('Conversation', conversation);
  if (prompt != null) return notFound('Prompt', prompt);
  const held = heldHistory(request.previousResponseId, provider.store);
  if ('kind' in held) return held;
  const asksLast = typeOf(request.input.at(-1) ?? {}) === 'compaction_trigger';
  const compacts = asksLast && provider.servesCompaction;
  const items = [...held];
  for (const [index, item] of (compacts ? request.input.slice(0, -1) : request.input).entries()) {
    const resolved = resolveItem(item, `input[${index}]`, provider);
    if ('kind' in resolved) return resolved;
    items.push(resolved.item);
  }
  return { items, compacts };
}

function heldHistory(previousId: string | null, store: ResponseStore): readonly Item[] | Refusal {
  if (previousId === null) return [];
  const previous = store.response(previousId);
  if (previous !== null) return [...previous.input, ...previous.output];
  return openaiError(400, `Previous response with id '${previousId}' not found.`, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}

function resolveItem(
  item: Item,
  param: string,
  { store, seal, servesCompaction }: ResponsesProvider,
): { readonly item: Item } | Refusal {
  const type = typeOf(item);
  const id = idOf(item);
  if (type === 'item_reference') return store.item(id ?? '') ?? itemNotFound(id ?? '');
  if (type === 'compaction_trigger' || (type === 'compaction' && !servesCompaction)) {
    return openaiError(400, `Invalid value: '${type}'.`, { param, code: 'invalid_value' });
  }
  if (type !== 'reasoning' && type !== 'compaction') return { item };
  const { encrypted_content: sealed } = item;
  if (typeof sealed === 'string' && sealed !== '')
    return seal.open(type, sealed) === null ? unopened(sealed) : { item };
  // Without its content such an item is a reference, whatever else it shows.
  return id === null ? { item } : (store.item(id) ?? itemNotFound(id));
}

function unopened(sealed: string): Refusal {
  const shown = `${sealed.slice(0, 4)}...${sealed.slice(-4)}`;
  return openaiError(
    400,
    `The encrypted content ${shown} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
    { code: 'invalid_encrypted_content' },
  );
}

function itemNotFound(id: string): Refusal {
  return openaiError(
    404,
    `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` ` +
      'set to true, or remove this item from your input.',
    { param: 'input' },
  );
}

/** Conversations and stored prompts: the simulator holds none. */
function notFound(what: string, named: unknown): Refusal {
  const id = isRecord(named) ? named['id'] : named;
  return openaiError(404, `${what} with id '${String(id)}' not found.`);
}
