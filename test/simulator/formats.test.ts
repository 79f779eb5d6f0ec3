import { describe, expect, test } from 'vitest';
import { OPENING } from '../../src/core/compaction/headings.js';
import { anthropicMessages } from '../../src/dialects/anthropic-messages.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import type { Dialect } from '../../src/dialects/dialect.js';
import { responses } from '../../src/dialects/responses.js';
import { OVERFLOW_FORMS } from '../../src/simulator/overflow-forms.js';
import { say } from '../../src/simulator/reply-plan.js';
import type { SummaryBehaviour } from '../../src/simulator/summariser.js';
import { jsonOf, post, simulate, typedEventsOf } from './simulate.js';

const DIALECTS = [chatCompletions, responses, anthropicMessages];
const named = DIALECTS.map((dialect) => [dialect.name, dialect] as const);
const KEY = { authorization: 'Bearer key' };

const summaryBody = (dialect: Dialect) =>
  dialect.summaryBody(
    {
      model: 'm',
      instructions: `${OPENING} Keep it short.`,
      input: 'FACT-door=blue-7 was found.',
      maxOutputTokens: 500,
    },
    'provider.example',
  );

/** The same question in each format. */
function question(dialect: Dialect, content: string, stream = false): object {
  const messages = [{ role: 'user', content }];
  return dialect === responses
    ? { model: 'm', input: messages, stream }
    : { model: 'm', messages, stream, ...(dialect === anthropicMessages ? { max_tokens: 100 } : {}) };
}

describe('in every format', () => {
  test.each(named)('a summary call is known by its instructions and summarised: %s', async (_name, dialect) => {
    const simulator = await simulate({ script: () => say('This is no summary.') });
    const response = await post(simulator, dialect.path, summaryBody(dialect), KEY);
    const [message] = dialect.readReply(await jsonOf(response))?.messages ?? [];
    expect(message?.text).toContain('FACT-door=blue-7');
    expect(simulator.summaryRequests()).toHaveLength(1);
    expect(simulator.chatRequests()).toEqual([]);
  });

  test('summary calls are numbered over all formats', async () => {
    const behaviours: readonly SummaryBehaviour[] = ['empty', 'unauthorized', 'rate-limited'];
    const simulator = await simulate({ summariser: behaviours });
    const answers = [];
    for (const dialect of DIALECTS) {
      const response = await post(simulator, dialect.path, summaryBody(dialect), KEY);
      answers.push([
        response.status,
        (await jsonOf(response)).error?.type ?? null,
        response.headers.get('retry-after'),
      ]);
    }
    expect(answers).toEqual([
      [200, null, null],
      [401, 'invalid_request_error', null],
      [429, 'rate_limit_error', '7'],
    ]);
  });

  test.each(named)(
    'a fact the model read is told, and a reply is the same whole and streamed: %s',
    async (_name, dialect) => {
      const simulator = await simulate();
      const ask = async (content: string, stream: boolean) => {
        const text = await (await post(simulator, dialect.path, question(dialect, content, stream), KEY)).text();
        if (!stream) return dialect.readReply(JSON.parse(text))?.messages[0]?.text;
        const folder = dialect.folder();
        for (const event of text.split('\n\n')) {
          const [, name = null, data = ''] = /^(?:event: (\S+)\n)?data: (.*)$/.exec(event) ?? [];
          folder.push(data, name);
        }
        return folder.reply().messages[0]?.text;
      };
      const told = 'The value of FACT-door is blue-7.';
      expect(await ask('FACT-door=blue-7. What is the value of FACT-door?', false)).toBe(told);
      expect(await ask('Hello', true)).toBe(await ask('Hello', false));
      expect(
        simulator.chatRequests().every(({ reply, promptTokens }) => reply?.usage.promptTokens === promptTokens),
      ).toBe(true);
      expect(simulator.textsRead()[0]).toContain('FACT-door=blue-7');
    },
  );

  test.each(named)('a form of overflow that is set is the one that is used: %s', async (_name, dialect) => {
    const simulator = await simulate({ windows: { m: 20 }, overflow: OVERFLOW_FORMS['gemini'] });
    const response = await post(simulator, dialect.path, question(dialect, 'word '.repeat(40)), KEY);
    expect((await jsonOf(response))[0].error.message).toContain('exceeds the maximum number of tokens allowed (20)');
  });
});

describe('a window of the Responses API', () => {
  const long = { model: 'm', input: 'word '.repeat(40) };

  test('is told of without numbers', async () => {
    const simulator = await simulate({ windows: { m: 20 } });
    const response = await post(simulator, '/responses', long);
    expect([response.status, (await jsonOf(response)).error]).toEqual([
      400,
      {
        message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
        type: 'invalid_request_error',
        param: 'input',
        code: 'context_length_exceeded',
      },
    ]);
  });

  test('is told of in the stream by a response that fails, or by an error alone', async () => {
    for (const [form, last] of [
      [
        'responses-failed-event',
        { type: 'response.failed', response: { status: 'failed', error: { code: 'context_length_exceeded' } } },
      ],
      ['responses-error-event', { type: 'error', code: 'context_length_exceeded', param: 'input' }],
    ] as const) {
      const simulator = await simulate({ windows: { m: 20 }, overflow: OVERFLOW_FORMS[form] });
      const events = typedEventsOf(await (await post(simulator, '/responses', { ...long, stream: true })).text());
      expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.in_progress', last.type]);
      expect(events[2]).toMatchObject({ ...last, sequence_number: 2 });
    }
  });

  test('is no matter of the output limit: what does not fit is cut', async () => {
    const simulator = await simulate({ windows: { m: 60 }, script: () => say('word '.repeat(40)) });
    const response = await jsonOf(await post(simulator, '/responses', { ...long, max_output_tokens: 1_000 }));
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    expect(response.usage.total_tokens).toBe(60);
  });
});
