import Anthropic from '@anthropic-ai/sdk';
import { expect, it } from 'vitest';
import { callTools, say } from '../../src/simulator/reply-plan.js';
import { padding } from '../support/chat.js';
import { startPair } from '../support/start.js';
import { nodesOf, onlyConversation } from '../support/stored.js';
import { INSTRUCTIONS, TOOL } from './tool-loop.js';

const WINDOW = 6_000;
const LOOK = callTools({ name: TOOL.name, arguments: '{"part":0}' });
const tools = [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.parameters }];

/** A thread whose second message has a result of so many tokens; what is sent of it, and what comes back. */
async function startThread(resultTokens: number, settings: Readonly<Record<string, string>> = {}) {
  const pair = await startPair(
    { SPILLWAY_WINDOWS: `*=${WINDOW}`, ...settings },
    {
      servesThreads: true,
      windows: { '*': WINDOW * 4 },
      script: ({ messages }) => (messages.some(({ role }) => role === 'assistant') ? say('Seen.') : LOOK),
    },
  );
  const { messages: api } = new Anthropic({ baseURL: pair.spillway.url, apiKey: 'sk-ant-test', maxRetries: 0 }).beta;
  const opening = {
    model: 'm',
    max_tokens: 1_500,
    system: INSTRUCTIONS,
    tools,
    messages: [{ role: 'user' as const, content: 'Look.' }],
    thread: { type: 'create' as const },
  };
  const first = await api.create(opening);
  const call = first.content.find((block) => block.type === 'tool_use');
  if (call === undefined) throw new Error('no call');
  const content = padding('seen', resultTokens);
  const next = api.create({
    model: 'm',
    max_tokens: 1_500,
    messages: [{ role: 'user' as const, content: [{ type: 'tool_result' as const, tool_use_id: call.id, content }] }],
    thread: { type: 'continue' as const, previous_message_id: first.id },
  });
  return { pair, next };
}

it('a server thread passes untouched while it fits, and its nodes follow what it refers to (SPEC 1.7)', async () => {
  const { pair, next } = await startThread(200);
  const { data, response } = await next.withResponse();
  expect(data.content).toMatchObject([{ type: 'text', text: 'Seen.' }]);
  expect(response.headers.get('x-spillway-action')).toBe('none');
  const sent = pair.simulator.chatRequests().at(-1)?.body;
  expect(sent).toMatchObject({ thread: { type: 'continue' }, messages: [{ role: 'user' }] });
  const nodes = await nodesOf(pair, (await onlyConversation(pair)).id);
  expect(nodes.map(({ role }) => role)).toEqual(['user', 'llm', 'tool', 'llm']);
  expect(nodes.map(({ predecessor }) => predecessor)).toEqual(['ROOT', ...nodes.slice(0, -1).map(({ id }) => id)]);
});

it('a server thread that no longer fits is asked for whole: only the provider has its tools (SPEC 1.7)', async () => {
  const { pair, next } = await startThread(5_000);
  await expect(next).rejects.toMatchObject({
    status: 404,
    error: { error: { type: 'not_found_error', details: { error_code: 'thread_not_found' } } },
  });
  expect(pair.simulator.chatRequests()).toHaveLength(1);
});

it('a server thread is never asked for whole where nothing may be rewritten', async () => {
  const { next } = await startThread(5_000, { SPILLWAY_MODE: 'observe' });
  expect((await next).content).toMatchObject([{ type: 'text', text: 'Seen.' }]);
});
