import type { GeneratedCall } from './generate.js';
import { isRecord } from './json-value.js';
import type { Block } from './messages-request.js';
import { piecesOf, sseTyped } from './server-events.js';

type Event = Block & { readonly type: string };

/** A message as server-sent events. `calls`: what the model wrote as the inputs of its calls, in order. */
export function messageStream(
  message: Block,
  content: readonly Block[],
  calls: readonly GeneratedCall[],
): readonly string[] {
  const { stop_reason: reason, stop_sequence: sequence, usage } = message;
  const begun = { ...message, content: [], stop_reason: null, usage: { ...recordOf(usage), output_tokens: 1 } };
  const blocks = content.flatMap((block, index) => blockEvents(block, index, calls));
  const { cache_creation: _parts, service_tier: _tier, ...totals } = recordOf(usage);
  const ping = { type: 'ping' };
  const events: readonly Event[] = [
    { type: 'message_start', message: begun },
    ...blocks.slice(0, 1),
    ping,
    ...blocks.slice(1),
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: sequence }, usage: totals },
    { type: 'message_stop' },
  ];
  return events.map(sseTyped);
}

function blockEvents(block: Block, index: number, calls: readonly GeneratedCall[]): readonly Event[] {
  const { begun, deltas } = told(block, calls);
  return [
    { type: 'content_block_start', index, content_block: begun },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/** A block before anything of it was told, and what is told then. */
function told(
  block: Block,
  calls: readonly GeneratedCall[],
): { readonly begun: Block; readonly deltas: readonly Block[] } {
  switch (block['type']) {
    case 'thinking':
      return {
        begun: { ...block, thinking: '', signature: '' },
        deltas: [
          ...piecesOf(String(block['thinking'])).map((thinking) => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: block['signature'] },
        ],
      };
    case 'tool_use': {
      const written = calls.find(({ id }) => id === block['id'])?.arguments ?? '';
      return {
        begun: { ...block, input: {} },
        deltas: ['', ...piecesOf(written)].map((json) => ({ type: 'input_json_delta', partial_json: json })),
      };
    }
    default:
      return {
        begun: { ...block, text: '' },
        deltas: piecesOf(String(block['text'])).map((text) => ({ type: 'text_delta', text })),
      };
  }
}

function recordOf(value: unknown): Block {
  return isRecord(value) ? value : {};
}
