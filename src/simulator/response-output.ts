import type { GeneratedCall, GeneratedChoice } from './generate.js';
import { tokenLogprobs } from './logprobs.js';
import type { Item, ResponsesRequest } from './responses-request.js';
import type { Seal } from './seal.js';

/** What the model said as items, with everything they carry in secret; `serial` makes their ids. */
export function outputItems(
  choice: GeneratedChoice,
  request: ResponsesRequest,
  serial: string,
  seal: Seal,
): readonly Item[] {
  const isCut = choice.stop !== 'stop' && choice.stop !== 'tool_calls';
  const items = [
    ...reasoningItems(choice, request, serial, seal),
    ...messageItems(choice, request, serial),
    ...choice.calls.map((call, index) => callItem(call, index, request, serial)),
  ];
  return items.map((item, index) =>
    item['type'] === 'reasoning'
      ? item
      : { ...item, status: isCut && index === items.length - 1 ? 'incomplete' : 'completed' },
  );
}

/** A compaction as its one item. */
export function compactionItem(text: string, serial: string, seal: Seal): Item {
  return { id: `cmp_simulated_${serial}`, type: 'compaction', encrypted_content: seal.seal('compaction', text) };
}

/** An item as the client gets it: what it carries in secret only if the request included that. */
export function shownItem(item: Item, { include }: ResponsesRequest): Item {
  if (item['type'] !== 'reasoning' || include.includes('reasoning.encrypted_content')) return item;
  const { encrypted_content: _sealed, ...shown } = item;
  return shown;
}

function reasoningItems(
  { reasoning: text }: GeneratedChoice,
  { reasoning }: ResponsesRequest,
  serial: string,
  seal: Seal,
): readonly Item[] {
  if (text === '') return [];
  const isShown = reasoning?.['summary'] != null;
  return [
    {
      id: `rs_simulated_${serial}`,
      type: 'reasoning',
      summary: isShown ? [{ type: 'summary_text', text }] : [],
      encrypted_content: seal.seal('reasoning', text),
    },
  ];
}

function messageItems(choice: GeneratedChoice, request: ResponsesRequest, serial: string): readonly Item[] {
  const { text, refusal, reasoning, calls } = choice;
  const isSilent = text === '' && refusal === '';
  if (isSilent && (calls.length > 0 || reasoning !== '')) return [];
  const said = { type: 'output_text', annotations: [], logprobs: outputLogprobs(text, request), text };
  return [
    {
      id: `msg_simulated_${serial}`,
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [...(text !== '' || isSilent ? [said] : []), ...(refusal === '' ? [] : [{ type: 'refusal', refusal }])],
    },
  ];
}

/** Log probabilities where the request includes them. */
export function outputLogprobs(text: string, { include, body }: ResponsesRequest): readonly unknown[] {
  if (!include.includes('message.output_text.logprobs')) return [];
  const top = body['top_logprobs'];
  return tokenLogprobs(text, typeof top === 'number' ? top : 0);
}

function callItem(call: GeneratedCall, index: number, { tools }: ResponsesRequest, serial: string): Item {
  const tool = tools.find(({ name }) => name === call.name);
  const id = `simulated_${serial}_${index}`;
  const named = { call_id: call.id, name: call.name };
  const namespace = tool?.namespace ?? null;
  const listed = namespace === null ? {} : { namespace };
  return tool?.isCustom === true
    ? { id: `ctc_${id}`, type: 'custom_tool_call', status: 'completed', input: call.arguments, ...named, ...listed }
    : { id: `fc_${id}`, type: 'function_call', status: 'completed', arguments: call.arguments, ...named, ...listed };
}
