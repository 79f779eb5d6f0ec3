import { describe, expect, test } from 'vitest';
import { callTools } from '../../src/simulator/reply-plan.js';
import type { Simulator } from '../../src/simulator/simulator.js';
import { jsonOf, post, simulate, withoutSerials } from './simulate.js';

const user = { role: 'user', content: 'Hello' };
const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} });
const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'seen' });
const text = (words: string) => ({ type: 'text', text: words });
const marked = { ...text('x'), cache_control: { type: 'ephemeral' } };
const said = (...content: unknown[]) => ({ role: 'assistant', content });
const told = (...content: unknown[]) => ({ role: 'user', content });
const ask = (...messages: unknown[]) => ({ model: 'm', max_tokens: 100, messages });
const ENABLED = { type: 'enabled', budget_tokens: 1_024 };

const REFUSED: readonly (readonly [what: string, body: unknown, message: string])[] = [
  ['malformed JSON', '{"model": ', 'The request body is not valid JSON'],
  ['no model', { max_tokens: 1, messages: [user] }, 'model: Field required'],
  ['no max_tokens', { model: 'm', messages: [user] }, 'max_tokens: Field required'],
  ['max_tokens 0', { ...ask(user), max_tokens: 0 }, 'max_tokens: Input should be greater than or equal to 1'],
  ['max_tokens that are no integer', { ...ask(user), max_tokens: '9' }, 'max_tokens: Input should be a valid integer'],
  ['no messages', { model: 'm', max_tokens: 1 }, 'messages: Field required'],
  ['no message', ask(), 'messages: at least one message is required'],
  ['no content', ask({ role: 'user' }), 'messages.0.content: Field required'],
  [
    'a message that begins as the assistant',
    ask(said(text('x')), user),
    'messages: first message must use the "user" role',
  ],
  [
    'a system message at the start',
    ask({ role: 'system', content: 'x' }, user),
    'messages: Unexpected role "system". The',
  ],
  [
    'a role it does not know',
    ask(user, { role: 'tool', content: 'x' }),
    'messages: Unexpected role "tool". Allowed roles',
  ],
  ['an empty user message', ask(told()), 'messages.0: user messages must have non-empty content'],
  [
    'an empty assistant message that is not the last',
    ask(user, said(), user),
    'messages.1: all messages must have non-empty content except for the optional final assistant message',
  ],
  ['an empty text block', ask(told(text(''), text('x'))), 'messages: text content blocks must be non-empty'],
  [
    'a text block of white space',
    ask(told(text(' \n'))),
    'messages: text content blocks must contain non-whitespace text',
  ],
  ['an empty system block', { ...ask(user), system: [text('')] }, 'system: text content blocks must be non-empty'],
  [
    'a last assistant text that ends in white space',
    ask(user, said(text('So '))),
    'cannot end with trailing whitespace',
  ],
  [
    'five cache marks',
    {
      ...ask(told(marked, { ...result('t'), content: [marked] })),
      system: [marked, marked],
      tools: [{ name: 'look', input_schema: {}, cache_control: { type: 'ephemeral' } }],
    },
    'A maximum of 4 blocks with cache_control may be provided. Found 5.',
  ],
  [
    'a call without a result',
    ask(user, said(use('t1'), use('t2')), told(result('t1'))),
    'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t2. Each',
  ],
  ['a call at the end', ask(user, said(use('t1'))), 'messages.1: `tool_use` ids were found without `tool_result`'],
  [
    'a result behind text',
    ask(user, said(use('t1')), told(text('So'), result('t1'))),
    'messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1.',
  ],
  [
    'a result without a call',
    ask(told(text('x'), result('t1'))),
    'messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each',
  ],
  [
    'a result of a call further back',
    ask(user, said(use('t1')), told(result('t1')), said(text('x')), told(result('t1'))),
    'messages.4.content.0: unexpected `tool_use_id`',
  ],
  ['two results of a call', ask(user, said(use('t1')), told(result('t1'), result('t1'))), 'must have a single result'],
  [
    'a call id twice',
    ask(user, said(use('t1'), use('t1')), told(result('t1'))),
    'messages.1: `tool_use` ids must be unique',
  ],
  [
    'a small budget',
    { ...ask(user), thinking: { ...ENABLED, budget_tokens: 9 } },
    'thinking.enabled.budget_tokens: Input',
  ],
  [
    'a budget as large as max_tokens',
    { ...ask(user), thinking: ENABLED },
    '`max_tokens` must be greater than `thinking.',
  ],
];

test.each(REFUSED)('%s is refused', async (_what, body, message) => {
  const simulator = await simulate();
  const response = await post(simulator, '/messages', body);
  expect(response.status).toBe(400);
  const { error, ...rest } = await jsonOf(response);
  expect(error).toEqual({ type: 'invalid_request_error', message: expect.stringContaining(message) });
  expect(rest).toEqual({ type: 'error', request_id: 'req_simulated_0' });
  expect(simulator.requests[0]).toMatchObject({ kind: 'chat', status: 400, reply: null });
});

const ACCEPTED: readonly (readonly [what: string, body: object])[] = [
  [
    'parallel calls, answered in another order, with text behind',
    ask(user, said(use('t1'), use('t2')), told(result('t2'), result('t1'), text('So'))),
  ],
  ['a result without content', ask(user, said(use('t1')), told({ type: 'tool_result', tool_use_id: 't1' }))],
  ['an answer that is begun', ask(user, said(text('So')))],
  ['two user messages in a row', ask(user, user)],
  ['instructions in the middle', ask(user, { role: 'system', content: 'Be brief.' })],
  [
    'instructions between a call and its result',
    ask(user, said(use('t1')), { role: 'system', content: 'x' }, told(result('t1'))),
  ],
  ['four cache marks', ask(told(marked, marked, marked, marked))],
  ['members it does not know', { ...ask(user), output_config: { effort: 'low' }, context_management: { edits: [] } }],
];

test.each(ACCEPTED)('%s is accepted', async (_what, body) => {
  expect((await post(await simulate(), '/messages', body)).status).toBe(200);
});

/** A block of thinking as the simulator made it. */
interface Thinking {
  readonly type: string;
  readonly thinking: string;
  readonly signature: string;
}

/** What a client makes of a message before it sends it back. */
type Change = (block: Thinking, rest: readonly unknown[]) => readonly unknown[];

describe('thinking that comes back', () => {
  const first = { ...ask(user), max_tokens: 2_000, thinking: ENABLED };
  const script = () => callTools({ name: 'look', arguments: '{}' });

  async function loop(simulator: Simulator, change: Change, more: object = {}) {
    const { content } = await jsonOf(await post(simulator, '/messages', first));
    const [block, ...rest] = content;
    const messages = [user, said(...change(block, rest)), told(result(rest[0].id))];
    const response = await post(simulator, '/messages', { ...first, messages, ...more });
    return [response.status, (await jsonOf(response)).error?.message ?? null];
  }

  test.each<readonly [string, Change]>([
    ['as it was', (block, rest) => [block, ...rest]],
    ['without its text', (block, rest) => [{ ...block, thinking: '' }, ...rest]],
    ['redacted', ({ signature }, rest) => [{ type: 'redacted_thinking', data: signature }, ...rest]],
  ])('%s is read as what it was', async (_what, change) => {
    const simulator = await simulate({ script });
    expect(await loop(simulator, (block, rest) => [block, ...rest])).toEqual([200, null]);
    expect(await loop(simulator, change)).toEqual([200, null]);
    expect(simulator.requests[3]?.promptTokens).toBe(simulator.requests[1]?.promptTokens);
    const [, asItWas, , changed] = withoutSerials(simulator.textsRead());
    expect(changed).toBe(asItWas);
  });

  test.each<readonly [string, Change]>([
    ['other text', (block, rest) => [{ ...block, thinking: `${block.thinking}!` }, ...rest]],
    ['another signature', (block, rest) => [{ ...block, signature: `A${block.signature.slice(1)}` }, ...rest]],
    ['no signature', ({ type, thinking }, rest) => [{ type, thinking }, ...rest]],
  ])('with %s is refused', async (_what, change) => {
    const simulator = await simulate({ script });
    expect(await loop(simulator, change)).toEqual([
      400,
      'messages.1.content.0: Invalid `signature` in `thinking` block',
    ]);
  });

  test('from another provider is refused', async () => {
    const other = await simulate({ script, secret: 'another' });
    const [block] = (await jsonOf(await post(other, '/messages', first))).content;
    expect(await loop(await simulate({ script }), (_own, rest) => [block, ...rest])).toMatchObject([
      400,
      expect.stringContaining('Invalid `signature`'),
    ]);
  });

  test('has to begin the turn that goes on over tool results, as long as it is enabled', async () => {
    const simulator = await simulate({ script });
    const without: Change = (_block, rest) => rest;
    expect(await loop(simulator, without)).toEqual([
      400,
      expect.stringContaining(
        'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.',
      ),
    ]);
    expect(await loop(simulator, without, { thinking: { type: 'adaptive' } })).toEqual([200, null]);
    expect(await loop(simulator, without, { thinking: undefined })).toEqual([200, null]);
  });

  test('is not the last block of a message', async () => {
    expect(await loop(await simulate({ script }), (block, rest) => [...rest, block])).toEqual([
      400,
      'messages.1: The final block in an assistant message cannot be `thinking`.',
    ]);
  });
});
