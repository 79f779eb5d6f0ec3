import Anthropic from '@anthropic-ai/sdk';
import type { MessageParam } from '@anthropic-ai/sdk/resources/messages';
import { expect, it } from 'vitest';
import { padding } from '../support/chat.js';
import { startPair } from '../support/start.js';
import { createWorker, INSTRUCTIONS, look, TASK, TOOL } from './tool-loop.js';

const WINDOW = 8_000;
const ROUNDS = 30;

/** A loop in which each message has signed thinking of so many tokens; ends where it is refused, or after its rounds. */
async function runLoop(thinkingTokens: number, result: (json: string) => string) {
  const worker = createWorker();
  const pair = await startPair(
    { SPILLWAY_WINDOWS: `*=${WINDOW}` },
    {
      windows: { '*': WINDOW },
      script: (request) => {
        const reply = worker.reply(request);
        const choices = reply?.choices.map((choice) => ({ ...choice, reasoning: padding('thought', thinkingTokens) }));
        return reply === null || choices === undefined ? null : { ...reply, choices };
      },
    },
  );
  const api = new Anthropic({ baseURL: pair.spillway.url, apiKey: 'sk-ant-test', maxRetries: 0 }).messages;
  const messages: MessageParam[] = [{ role: 'user', content: TASK }];
  const thoughts: string[] = [];
  const actions = new Set<string | null>();
  for (let round = 0; round < ROUNDS; round++) {
    const answer = await api
      .create({
        model: 'claude-sonnet-4-5',
        max_tokens: 1_500,
        thinking: { type: 'enabled', budget_tokens: 1_024 },
        system: INSTRUCTIONS,
        tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.parameters }],
        messages,
      })
      .withResponse()
      .catch((error: unknown) => error);
    if (answer instanceof Error) return { pair, thoughts, actions, refusal: answer };
    const { data, response } = answer as { data: Anthropic.Message; response: Response };
    actions.add(response.headers.get('x-spillway-action'));
    messages.push({ role: 'assistant', content: data.content });
    const results = data.content.flatMap((block) => {
      if (block.type === 'thinking') thoughts.push(JSON.stringify(block));
      if (block.type !== 'tool_use') return [];
      return [{ type: 'tool_result' as const, tool_use_id: block.id, content: result(JSON.stringify(block.input)) }];
    });
    messages.push({ role: 'user', content: results });
  }
  return { pair, thoughts, actions, refusal: null };
}

it('a loop of signed messages goes on by shortened results, and every signature stays whole (SPEC 7.3, 7.4)', async () => {
  const { pair, thoughts, actions, refusal } = await runLoop(8, look);
  expect(refusal).toBeNull();
  expect(actions).toEqual(new Set(['none', 'tool-results']));
  const last = Buffer.from(pair.simulator.chatRequests().at(-1)?.bytes ?? []).toString();
  expect(thoughts).toHaveLength(ROUNDS);
  expect(thoughts.slice(0, -1).filter((thought) => !last.includes(thought))).toEqual([]);
});

it('a loop whose signed messages alone fill the window is refused, and told what could not be shortened (SPEC 7.4, 7.7)', async () => {
  const { pair, thoughts, refusal } = await runLoop(500, () => 'nothing');
  expect(refusal).toMatchObject({ status: 400 });
  expect(String(refusal)).toMatch(/prompt is too long.*history that could not be shortened [1-9]/);
  expect(thoughts.length).toBeGreaterThan(5);
  expect(pair.simulator.chatRequests().every(({ status }) => status === 200)).toBe(true);
});
