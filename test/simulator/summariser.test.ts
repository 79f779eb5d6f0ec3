import { describe, expect, test } from 'vitest';
import { SUMMARY_HEADINGS } from '../../src/core/compaction/headings.js';
import { conversationTask } from '../../src/core/compaction/prompt.js';
import { say } from '../../src/simulator/reply-plan.js';
import type { SimulatorOptions } from '../../src/simulator/simulator.js';
import type { SummaryBehaviour } from '../../src/simulator/summariser.js';
import { eventsOf, exactCounter, jsonOf, postChat, simulate } from './simulate.js';

const FACTS = ['FACT-city=Utrecht', 'FACT-port=8484', 'FACT-path=src/main.ts'];
const FILLER = Array.from({ length: 40 }, (_, index) => `[user] Step ${index} is done, see tag-${index}word.`).join(
  '\n',
);
const TRANSCRIPT = `[user] Note ${FACTS[0]}.\n${FILLER}\n[result of call_1] {"log":"${FACTS[1]}\\n${FACTS[2]}"}`;

function summaryBody(more: object = {}, transcript = TRANSCRIPT) {
  const { instructions, input } = conversationTask(null).write({
    previous: null,
    transcript,
    fence: 'f3nc3',
    maxOutputTokens: 1000,
  });
  const messages = [
    { role: 'system', content: instructions },
    { role: 'user', content: input },
  ];
  return { model: 'm', messages, max_completion_tokens: 1000, ...more };
}

async function summarise(
  behaviour: SummaryBehaviour,
  body: object = summaryBody(),
  options: Omit<SimulatorOptions, 'counter'> = {},
) {
  const simulator = await simulate({ summariser: [behaviour], ...options });
  const response = await postChat(simulator, body);
  const text = await response.text();
  return { simulator, response, text };
}

async function choiceOf(behaviour: SummaryBehaviour, body?: object) {
  const { choices, usage } = JSON.parse((await summarise(behaviour, body)).text);
  const [{ message, finish_reason }] = choices;
  return { message, content: message.content as string, stop: finish_reason as string, usage };
}

const hasAllHeadings = (text: string) => SUMMARY_HEADINGS.every((heading) => text.split('\n').includes(heading));

describe('a faithful summary', () => {
  test('has every heading in order, every planted fact, and is smaller than its input', async () => {
    const { content, stop, usage } = await choiceOf('faithful');
    expect(content.split('\n').filter((line) => line.startsWith('## '))).toEqual(SUMMARY_HEADINGS);
    expect(FACTS.filter((fact) => !content.includes(fact))).toEqual([]);
    expect(stop).toBe('stop');
    expect(usage.completion_tokens).toBeLessThan(usage.prompt_tokens / 2);
  });

  test('keeps the newest tags, the latest value of a fact, and what the summary before it carried', async () => {
    const { content } = await choiceOf('faithful');
    expect(content).toContain('tag-39word');
    const second = summaryBody({}, `[user] Now FACT-city=Delft.\n${content}\n[user] No, FACT-city=Leiden.`);
    const { content: again } = await choiceOf('faithful', second);
    expect(again.match(/FACT-\w+=\S+/g)).toEqual(['FACT-port=8484', 'FACT-path=src/main.ts', 'FACT-city=Leiden']);
    expect(again).toContain('tag-39word');
  });

  test('stays within the limit of the request and drops the oldest facts for it', async () => {
    const many = Array.from({ length: 300 }, (_, index) => `FACT-f${index}=value${index}`);
    const body = summaryBody({ max_completion_tokens: 400 }, many.join('\n'));
    const { content, stop, usage } = await choiceOf('faithful', body);
    expect(stop).toBe('stop');
    expect(usage.completion_tokens).toBeLessThanOrEqual(400);
    expect(usage.completion_tokens).toBeGreaterThan(250);
    expect(content).toContain('FACT-f299=value299');
    expect(content).not.toContain('FACT-f0=');
    expect(hasAllHeadings(content)).toBe(true);
  });

  test('is streamed when that is asked for', async () => {
    const { text } = await summarise('faithful', summaryBody({ stream: true }));
    const streamed = eventsOf(text)
      .map(({ choices }) => choices[0].delta.content ?? '')
      .join('');
    expect(streamed).toBe((await choiceOf('faithful')).content);
  });

  test('is what every summary call gets once the list of behaviours is used up, and chat requests use none', async () => {
    const simulator = await simulate({ summariser: ['empty', 'server-error'], script: () => say('Hi') });
    const outcomes: unknown[] = [];
    for (const body of [
      summaryBody(),
      { model: 'm', messages: [{ role: 'user', content: 'x' }] },
      summaryBody(),
      summaryBody(),
    ]) {
      const { choices, error } = await jsonOf(await postChat(simulator, body));
      outcomes.push(error?.type ?? choices[0].message.content.slice(0, 9));
    }
    expect(outcomes).toEqual(['', 'Hi', 'server_error', '## Intent']);
    expect(simulator.summaryRequests().map(({ status }) => status)).toEqual([200, 500, 200]);
    expect(simulator.chatRequests()).toHaveLength(1);
  });
});

test('a function chooses the behaviour by request and number, and may hold the call', async () => {
  const seen: unknown[] = [];
  let release = (_: SummaryBehaviour) => {};
  const held = new Promise<SummaryBehaviour>((resolve) => (release = resolve));
  const simulator = await simulate({
    summariser: (request, call) => {
      seen.push([request.model, request.outputCap, call]);
      return held;
    },
  });
  const pending = postChat(simulator, summaryBody());
  await simulator.waitFor(({ state }) => state === 'answering');
  release('whitespace');
  expect((await jsonOf(await pending)).choices[0].message.content.trim()).toBe('');
  expect(seen).toEqual([['m', 1000, 0]]);
});

describe('a summary that loses facts', () => {
  const factsKept = async (seed: number, dropProbability: number) => {
    const transcript = Array.from({ length: 60 }, (_, index) => `FACT-f${index}=v${index}`).join(' ');
    const { content } = await choiceOf({ kind: 'lossy', seed, dropProbability }, summaryBody({}, transcript));
    return content.match(/FACT-\w+=\w+/g) ?? [];
  };

  test('drops the same ones for the same seed, others for another, about as many as it is told', async () => {
    const first = await factsKept(1, 0.5);
    expect(await factsKept(1, 0.5)).toEqual(first);
    expect(await factsKept(2, 0.5)).not.toEqual(first);
    expect(first.length).toBeGreaterThan(15);
    expect(first.length).toBeLessThan(45);
    expect(await factsKept(1, 0)).toHaveLength(60);
    expect(await factsKept(1, 1)).toHaveLength(0);
  });
});

describe('a summary call goes wrong as told:', () => {
  test('empty and white space stop normally without text', async () => {
    expect(await choiceOf('empty')).toMatchObject({ content: '', stop: 'stop' });
    const { content, stop } = await choiceOf('whitespace');
    expect([content.trim(), content.length > 0, stop]).toEqual(['', true, 'stop']);
  });

  test('cut stops by length before its end', async () => {
    const { content, stop } = await choiceOf('cut');
    expect(stop).toBe('length');
    expect((await choiceOf('faithful')).content.startsWith(content)).toBe(true);
    expect(hasAllHeadings(content)).toBe(false);
  });

  test('tool-call calls a tool, tool-call-text writes one', async () => {
    const { message, stop } = await choiceOf('tool-call');
    expect([message.content, message.tool_calls.length, stop]).toEqual([null, 1, 'tool_calls']);
    expect(await choiceOf('tool-call-text')).toMatchObject({
      content: expect.stringMatching(/^<tool_call>/),
      stop: 'stop',
    });
  });

  test('reasoning-only thinks and says nothing', async () => {
    const { message, stop } = await choiceOf('reasoning-only');
    expect([message.content, hasAllHeadings(message.reasoning_content), stop]).toEqual(['', true, 'stop']);
  });

  test('echo says its input again, past the limit', async () => {
    const body = summaryBody({ max_completion_tokens: 5 });
    expect(await choiceOf('echo', body)).toMatchObject({ content: body.messages[1]?.content, stop: 'stop' });
  });

  test('continues-chat has no heading, missing-heading all but one', async () => {
    expect((await choiceOf('continues-chat')).content).not.toContain('##');
    const { content } = await choiceOf('missing-heading');
    expect(SUMMARY_HEADINGS.filter((heading) => !content.includes(heading))).toHaveLength(1);
  });

  test('larger has every heading and outgrows its input', async () => {
    const { content, stop } = await choiceOf('larger');
    const counter = await exactCounter();
    expect(counter.count(content)).toBeGreaterThan(counter.count(TRANSCRIPT));
    expect([hasAllHeadings(content), stop]).toEqual([true, 'stop']);
  });

  test.each(['no-answer', 'dies'] as const)('%s breaks the connection, streamed or not', async (behaviour) => {
    for (const stream of [false, true]) {
      const simulator = await simulate({ summariser: [behaviour] });
      const read = postChat(simulator, summaryBody({ stream })).then((response) => response.text());
      await expect(read).rejects.toThrow(/fetch failed|terminated/);
      await simulator.waitFor(({ state }) => state === 'cut');
    }
  });

  test('hangs waits until the client leaves', async () => {
    const simulator = await simulate({ summariser: ['hangs'] });
    const leaving = new AbortController();
    const pending = postChat(simulator, summaryBody(), { signal: leaving.signal });
    await simulator.waitFor(({ status }) => status === 200);
    leaving.abort();
    await expect(pending).rejects.toThrow(/abort/);
    expect(await simulator.waitFor(({ state }) => state === 'aborted')).toMatchObject({ kind: 'summary' });
  });

  test('slow is faithful after a while', async () => {
    const { content } = await choiceOf({ kind: 'slow', delayMs: 1 });
    expect(hasAllHeadings(content)).toBe(true);
  });

  test.each([
    ['overflow', 400, 'context_length_exceeded'],
    ['unauthorized', 401, 'invalid_api_key'],
    ['rate-limited', 429, 'rate_limit_exceeded'],
    ['server-error', 500, null],
  ] as const)('%s is an error of status %i', async (behaviour, status, code) => {
    const { response, text } = await summarise(behaviour);
    expect([response.status, JSON.parse(text).error.code]).toEqual([status, code]);
    expect(response.headers.get('retry-after')).toBe(status === 429 ? '7' : null);
  });

  test('malformed-json is a success that cannot be read', async () => {
    const { response, text } = await summarise('malformed-json');
    expect(response.status).toBe(200);
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
  });

  test('its own input may overflow the window, whatever the behaviour', async () => {
    const { response, simulator } = await summarise('faithful', summaryBody(), { windows: { m: 500 } });
    expect(response.status).toBe(400);
    expect(simulator.summaryRequests()).toHaveLength(1);
  });
});
