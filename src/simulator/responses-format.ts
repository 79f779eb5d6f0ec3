import type { TokenCounter } from '../core/ports.js';
import type { Refusal } from './answer.js';
import type { Asked, Format, Spoken } from './format.js';
import { isRecord } from './json-value.js';
import { systemTextOf } from './model-request.js';
import { OPENAI_ERRORS, inputExceedsWindow } from './openai-errors.js';
import { createPrefixCache } from './prefix-cache.js';
import { closedResponse, openResponse, responseUsage } from './response-body.js';
import { readable, typeOf } from './response-item.js';
import { compactionItem, outputItems, shownItem } from './response-output.js';
import { failedEvent, responseStream } from './response-stream.js';
import { resolveInput } from './responses-input.js';
import type { ResponsesProvider } from './responses-input.js';
import { promptMessages, responsesTokens } from './responses-prompt.js';
import { readResponsesRequest } from './responses-request.js';
import type { Item, ResponsesRequest } from './responses-request.js';
import { brokenItem, brokenList } from './responses-rules.js';

interface AskedResponse extends Asked {
  readonly wire: ResponsesRequest;
  /** All the model reads but instructions and tools, as `ResolvedInput.items`. */
  readonly items: readonly Item[];
}

/** The format of `POST /responses`. */
export function createResponsesFormat(counter: TokenCounter, provider: ResponsesProvider): Format<AskedResponse> {
  const output = ({ head, asked, reply }: Spoken<AskedResponse>): readonly Item[] => {
    const [choice] = reply.choices;
    if (choice === undefined) return [];
    return asked.compacts
      ? [compactionItem(choice.text, head.serial, provider.seal)]
      : outputItems(choice, asked.wire, head.serial, provider.seal);
  };
  const shown = (spoken: Spoken<AskedResponse>) => output(spoken).map((item) => shownItem(item, spoken.asked.wire));
  const whole = (spoken: Spoken<AskedResponse>): Item =>
    closedResponse(spoken.head, spoken.asked.wire, spoken.reply, shown(spoken));
  return {
    kind: 'chat',
    ids: { reply: 'resp_simulated_', call: 'call_simulated_' },
    overflow: { where: 'http', refusal: inputExceedsWindow },
    piecesBefore: { first: 0, stream: 2, 'after-content': 6 },
    refusesCap: false,
    stopAtWindow: 'length',
    errors: OPENAI_ERRORS,
    createCache: createPrefixCache,
    read: (body) => readAsked(body, counter, provider),
    whole,
    stream: (spoken) => {
      const { head, asked } = spoken;
      return responseStream(openResponse(head, asked.wire), whole(spoken), shown(spoken), asked.wire);
    },
    failure: ({ head, asked }, refusal, afterPieces) =>
      failedEvent(openResponse(head, asked.wire), responseError(refusal), afterPieces),
    keep: (spoken) => {
      const { head, asked } = spoken;
      if (!asked.wire.store) return;
      provider.store.keep(head.id, { body: whole(spoken), input: asked.items, output: output(spoken) });
    },
    refusal: (refusal) => refusal,
  };
}

/** The format of `POST /responses/compact`: the user's messages and one item for all the rest, neither streamed nor stored. */
export function createCompactFormat(counter: TokenCounter, provider: ResponsesProvider): Format<AskedResponse> {
  return {
    ...createResponsesFormat(counter, provider),
    kind: 'compaction',
    read: (body) => {
      const asked = readAsked(body, counter, provider);
      return 'kind' in asked ? asked : { ...asked, compacts: true, request: { ...asked.request, stream: false } };
    },
    whole: ({ head, asked, reply }) => ({
      id: head.id,
      object: 'response.compaction',
      created_at: head.createdAt,
      output: [
        ...asked.items.filter((item) => typeOf(item) === 'message' && item['role'] === 'user'),
        compactionItem(reply.choices[0]?.text ?? '', head.serial, provider.seal),
      ],
      usage: responseUsage(reply.usage),
    }),
    keep: () => {},
  };
}

function readAsked(body: unknown, counter: TokenCounter, provider: ResponsesProvider): AskedResponse | Refusal {
  const wire = readResponsesRequest(body);
  if ('kind' in wire) return wire;
  const broken = brokenItem(wire.input);
  if (broken !== null) return broken;
  const resolved = resolveInput(wire, provider);
  if ('kind' in resolved) return resolved;
  const { items, compacts } = resolved;
  const brokenWhole = brokenList(items, provider.store);
  if (brokenWhole !== null) return brokenWhole;
  const read = items.map((item) => readable(item, provider.seal));
  const tokens = responsesTokens(wire, read, counter);
  const messages = promptMessages(wire.instructions, read);
  const request = {
    model: wire.model,
    stream: wire.stream,
    messages,
    systemText: systemTextOf(messages),
    toolNames: wire.tools.map(({ name }) => name),
    choices: 1,
    outputCap: wire.outputCap,
    promptTokens: tokens.messages + tokens.functions,
    body: wire.body,
    reads: { ...wire.body, input: read },
  };
  const { reasoning } = wire;
  const reasons = reasoning !== null && reasoning['effort'] !== 'none';
  return { wire, items, compacts, request, tokens, reasoning: reasons ? 'always' : 'as-planned' };
}

function responseError({ body }: Refusal): { readonly code: string; readonly message: string } {
  const error = isRecord(body) && isRecord(body['error']) ? body['error'] : {};
  const { code, message } = error;
  return {
    code: typeof code === 'string' ? code : 'server_error',
    message: typeof message === 'string' ? message : 'An error occurred while processing your request.',
  };
}
