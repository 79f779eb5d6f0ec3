import type { OpenAI } from 'openai';
import { describe, expect, it } from 'vitest';
import { OVERFLOW_FORMS } from '../../src/simulator/overflow-forms.js';
import { replayedOverflow } from '../../src/simulator/replayed-overflow.js';
import type { OverflowForm, Script } from '../../src/simulator/reply-plan.js';
import { reportedCases } from '../core/overflow/evidence.js';
import type { ReportedCase } from '../core/overflow/evidence.js';
import { FACT_TOLD, longConversation, scriptedPair } from '../support/scripted-pair.js';
import type { ScriptedPair } from '../support/scripted-pair.js';

/** Only the provider knows of a window. */
const unknown = scriptedPair();
/** A window is believed in that a conversation of turns of so many tokens nearly fills, and the true one is smaller. */
const BELIEVED = 11_000;
const NEARLY_FULL = { turnTokens: 985, outputCap: 20 };
const believed = scriptedPair({ SPILLWAY_WINDOWS: `*=${BELIEVED}`, SPILLWAY_TRIGGER: '0.95' });

interface Question {
  readonly model: string;
  readonly stream: boolean;
  readonly turnTokens?: number | undefined;
  readonly outputCap?: number | undefined;
  readonly includesUsage?: boolean | undefined;
}

/** What the official client made of an answer. */
interface Heard {
  readonly text: string;
  readonly finishReason: string | null;
  readonly action: string | null;
}

const ORDINARY: Heard = { text: FACT_TOLD, finishReason: 'stop', action: 'reactive' };

/** Asks through the official client; rejects as it does. */
async function ask({ started }: ScriptedPair, question: Question): Promise<Heard> {
  const { model, stream, turnTokens, outputCap, includesUsage = false } = question;
  const { completions } = started.client().chat;
  const messages = longConversation(model, turnTokens) as OpenAI.ChatCompletionMessageParam[];
  const request = { model, messages, ...(outputCap === undefined ? {} : { max_completion_tokens: outputCap }) };
  if (!stream) {
    const { data, response } = await completions.create(request).withResponse();
    const [choice] = data.choices;
    return {
      text: choice?.message.content ?? '',
      finishReason: choice?.finish_reason ?? null,
      action: response.headers.get('x-spillway-action'),
    };
  }
  const { data, response } = await completions
    .create({ ...request, stream, stream_options: { include_usage: includesUsage } })
    .withResponse();
  let text = '';
  let finishReason: string | null = null;
  for await (const { choices } of data) {
    text += choices[0]?.delta.content ?? '';
    finishReason = choices[0]?.finish_reason ?? finishReason;
  }
  return { text, finishReason, action: response.headers.get('x-spillway-action') };
}

/** The client hears one ordinary reply, to a request that was refused, summarised and asked once more, and no more. */
async function expectRecovery(pair: ScriptedPair, question: Question, script: Script): Promise<void> {
  pair.script(question.model, script);
  pair.newRequests();
  expect(await ask(pair, question)).toEqual(ORDINARY);
  expectOneRetry(pair);
}

function expectOneRetry(pair: ScriptedPair): void {
  const requests = pair.newRequests();
  const summaries = requests.slice(1, -1);
  expect(summaries.length).toBeGreaterThan(0);
  expect(requests.map(({ kind }) => kind)).toEqual(['chat', ...summaries.map(() => 'summary'), 'chat']);
  const [refused, retried] = [requests[0], requests.at(-1)];
  expect(retried?.bytes).not.toEqual(refused?.bytes);
  expect(retried?.promptTokens).toBeLessThan(refused?.promptTokens ?? 0);
}

const bothKinds = <T>(name: string, entry: T) =>
  [false, true].map((stream) => [`${name}, stream ${stream}`, stream, entry] as const);

/** How a reported body travels: over HTTP to a request of either kind, or as events in a stream. */
function transports(line: ReportedCase): readonly [stream: boolean, script: () => Script][] {
  const body = typeof line.body === 'string' ? line.body : JSON.stringify(line.body);
  if (line.status >= 400) return [false, true].map((stream) => [stream, () => replayedOverflow(body, line.status)]);
  const events = line.where === 'sse' ? body : `data: ${body}\n\n`;
  const headers = { 'content-type': 'text/event-stream; charset=utf-8' };
  return [[true, () => replayedOverflow(events, line.status, { headers })]];
}

/** A history this much above its limit needs turns of some size, or there is no room for a summary. */
function turnTokensFor({ limit, used }: ReportedCase): number {
  return limit !== null && used !== null && used > 2 * limit ? 1_000 : 250;
}

/** Told by the usage of a reply alone, and so judged beside a window; or an event of another dialect. */
function isNoRefusal({ where, body }: ReportedCase): boolean {
  return where === 'finish' || where === 'silent' || JSON.stringify(body).startsWith('{"type":"response.failed"');
}

const refusals = reportedCases
  .map((line, index) => ({ line, name: `${index} ${line.provider} ${line.status}` }))
  .filter(({ line }) => (line.is_overflow || line.class === 'bytes') && !isNoRefusal(line) && line.body !== '');

const travelling = (lines: typeof refusals) =>
  lines.flatMap(({ line, name }) =>
    transports(line).map(([stream, script]) => [`${name}, stream ${stream}`, stream, line, script] as const),
  );

describe('a reported overflow is compacted away, and the official client hears one ordinary reply (SPEC 6.4)', () => {
  const recovered = refusals.filter(({ line }) => line.class !== 'fit');

  it('none is forgotten', () => expect(recovered).toHaveLength(79));

  it.each(travelling(recovered))('%s', (model, stream, line, script) =>
    expectRecovery(unknown, { model, stream, turnTokens: turnTokensFor(line) }, script()),
  );

  it.each(bothKinds('an empty 400 beside a window that is nearly full', ''))('%s', (model, stream, body) =>
    expectRecovery(believed, { model, stream, ...NEARLY_FULL }, replayedOverflow(body, 400)),
  );
});

describe('a reported overflow of input and requested output, where the client gave a cap of its own', () => {
  // A total without its parts fits no other conversation than its own.
  const split = refusals.filter(({ line }) => line.class === 'fit' && line.provider !== 'siliconflow');
  const leavesRoom = ({ line }: (typeof split)[number]): boolean =>
    (line.used_output ?? 0) < 0.9 * (line.limit ?? Infinity);

  it.each(travelling(split.filter(leavesRoom)))('is compacted away, SPEC 6.4: %s', (model, stream, _, script) =>
    expectRecovery(unknown, { model: `fit ${model}`, stream, outputCap: 20 }, script()),
  );

  it.each(travelling(split.filter((entry) => !leavesRoom(entry))))(
    'is passed on where the output alone fills the window, SPEC 5.4: %s',
    async (model, stream, line, script) => {
      unknown.script(`fit ${model}`, script());
      unknown.newRequests();
      const asked = ask(unknown, { model: `fit ${model}`, stream, outputCap: 20 });
      await expect(asked).rejects.toMatchObject({ status: line.status });
      expect(unknown.newRequests().map(({ kind }) => kind)).toEqual(['chat']);
    },
  );
});

const refusing =
  (form: OverflowForm, limitTokens: number, mostTokens = limitTokens): Script =>
  ({ promptTokens }) =>
    promptTokens > mostTokens ? { kind: 'overflow', limitTokens, form } : null;

/** Seen in the usage only once the reply has been relayed, or beside a window smaller than what was asked. */
const SEEN_LATER: ReadonlySet<string> = new Set([
  'openai-after-content',
  'stop-reason-after-content',
  'length-after-content',
  'above-window',
  'cut-prompt',
  'empty-reply',
]);
/** Told by nothing but how full the window must have been. */
const BESIDE_A_WINDOW: ReadonlySet<string> = new Set(['empty-body', 'length-without-content']);

describe('an overflow in every form of the simulator is compacted away (SPEC 6.2)', () => {
  const forms = Object.entries(OVERFLOW_FORMS).filter(([name]) => !SEEN_LATER.has(name));
  const told = forms.filter(([name]) => !BESIDE_A_WINDOW.has(name));

  it.each(told.flatMap(([name, form]) => bothKinds(name, form)))('%s', (name, stream, form) =>
    expectRecovery(unknown, { model: `form ${name}`, stream }, refusing(form, 2_000)),
  );

  it.each(forms.filter(([name]) => BESIDE_A_WINDOW.has(name)).flatMap(([name, form]) => bothKinds(name, form)))(
    '%s',
    (name, stream, form) =>
      expectRecovery(
        believed,
        { model: `form ${name}`, stream, ...NEARLY_FULL, includesUsage: true },
        refusing(form, BELIEVED, 8_000),
      ),
  );

  it('a limit far below the request is taken at its word, whether or not the use is stated', async () => {
    for (const name of ['openai', 'github-models', 'gemini-without-count', 'dashscope', 'cohere-excess-only']) {
      const form = OVERFLOW_FORMS[name];
      if (form === undefined) throw new Error(name);
      await expectRecovery(unknown, { model: `far ${name}`, stream: false, turnTokens: 1_000 }, refusing(form, 2_000));
    }
  });
});

describe('an overflow that was seen after content was relayed', () => {
  it.each([
    ['openai-after-content', true],
    ['stop-reason-after-content', false],
    ['stop-reason-after-content', true],
  ] as const)('makes the next turn compact before it is sent (SPEC 6.3): %s, stream %s', async (name, stream) => {
    const form = OVERFLOW_FORMS[name];
    if (form === undefined) throw new Error(name);
    const question = { model: `late ${name} ${stream}`, stream };
    unknown.script(question.model, refusing(form, 2_000));
    unknown.newRequests();
    // The error is the client's to see, a reply stands as it came: nothing is retried.
    await ask(unknown, question).then(
      (heard) => expect(heard).toMatchObject({ action: 'none', finishReason: 'model_context_window_exceeded' }),
      (error: unknown) => expect(error).toMatchObject({ code: 'context_length_exceeded' }),
    );
    expect(unknown.newRequests().map(({ kind }) => kind)).toEqual(['chat']);
    expect(await ask(unknown, question)).toEqual(ORDINARY);
    const kinds = unknown.newRequests().map(({ kind }) => kind);
    expect(kinds).toEqual([...kinds.slice(1).map(() => 'summary'), 'chat']);
    expect(kinds.length).toBeGreaterThan(1);
  });
});
