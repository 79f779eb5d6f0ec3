import { setImmediate as nextRound } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { MemoryLedger } from '../../src/ledger/memory.js';
import { createLearnedWindows } from '../../src/proxy/learned-windows.js';
import { openaiError } from '../../src/simulator/openai-errors.js';
import { say } from '../../src/simulator/reply-plan.js';
import { reportedCases } from '../core/overflow/evidence.js';
import { padding } from '../support/chat.js';
import { completion, startProvider } from '../support/provider.js';
import { sendChat } from '../support/raw-client.js';
import { startPair } from '../support/start.js';
import type { StartedPair } from '../support/start.js';
import { conversationsOf } from '../support/stored.js';

/** Ten turns, unless told otherwise, of a good 290 tokens each that open with a word of their own. */
function history(word: string, length = 10) {
  const turns = Array.from({ length }, (_, index) => [
    { role: 'user', content: padding(`${word} ${index}`, 250) },
    { role: 'assistant', content: `That was ${index}.` },
  ]);
  return [...turns.flat(), { role: 'user', content: 'And now?' }];
}

interface Seen {
  readonly status: number;
  readonly action: string | undefined;
  readonly overflow: string | undefined;
}

async function ask(
  pair: StartedPair,
  word: string,
  more: object = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Seen> {
  const request = { model: 'model-a', messages: history(word), ...more };
  const answer = await sendChat(pair.spillway.url, request, headers).answer;
  await answer.body();
  const { 'x-spillway-action': action, 'x-spillway-overflow': overflow } = answer.headers;
  return { status: answer.status, action: action?.toString(), overflow: overflow?.toString() };
}

interface ModelEntry {
  readonly id: string;
  readonly tenant: string;
  readonly model: string;
  readonly window: number | null;
  readonly source: string;
  readonly learned: { readonly tokens: number; readonly source: string; readonly rule: string } | null;
  readonly discovered: { readonly tokens: number } | null;
}

async function modelsOf(pair: StartedPair): Promise<readonly ModelEntry[]> {
  return (await pair.api('/models'))['data'] as ModelEntry[];
}

async function learnedBy(pair: StartedPair): Promise<readonly ModelEntry['learned'][]> {
  return (await modelsOf(pair)).map((entry) => entry.learned);
}

/** Refuses a prompt above 2,000 tokens with this sentence, whatever it says. */
function refusing(message: string, more: object = {}) {
  return {
    windows: { '*': 2_000 },
    overflow: { where: 'http', refusal: () => openaiError(400, message, more) } as const,
  };
}

describe('the window that a refusal states', () => {
  it('is learned, so that the next conversation is compacted before it is sent, SPEC 6.5', async () => {
    const pair = await startPair({}, { windows: { '*': 2_000 } });
    const first = await ask(pair, 'first');
    expect(first).toMatchObject({ status: 200, action: 'reactive' });
    expect(first.overflow).toContain('code');
    expect(await modelsOf(pair)).toMatchObject([
      { model: 'model-a', window: 2_000, source: 'learned', learned: { tokens: 2_000, source: 'stated' } },
    ]);

    const refused = () => pair.simulator.chatRequests().filter((request) => request.status === 400).length;
    expect(refused()).toBe(1);
    expect(await ask(pair, 'second')).toEqual({ status: 200, action: 'auto', overflow: undefined });
    expect(refused()).toBe(1);
    // Another model is another window.
    expect(await ask(pair, 'third', { model: 'model-b' })).toMatchObject({ status: 200, action: 'reactive' });
  });

  it('is enough to refuse what cannot be made to fit, before it is sent, SPEC 7.7', async () => {
    const pair = await startPair({}, { windows: { '*': 2_000 } });
    await ask(pair, 'first');
    const sent = pair.simulator.requests.length;
    const messages = [{ role: 'user', content: padding('alone', 3_000) }];
    const answer = await sendChat(pair.spillway.url, { model: 'model-a', messages }).answer;
    expect(answer.status).toBe(400);
    expect((await answer.body()).toString()).toContain("This model's maximum context length is 2000 tokens.");
    expect(pair.simulator.requests.length).toBe(sent);
    // The other model's window is unknown: its provider is asked.
    const other = await sendChat(pair.spillway.url, { model: 'model-b', messages }).answer;
    expect((await other.body()).toString()).not.toContain('What may not be shortened');
    expect(pair.simulator.requests.length).toBe(sent + 1);
  });

  it('is still known after a restart, until it is forgotten', async () => {
    const pair = await startPair({}, { windows: { '*': 2_000 } });
    await ask(pair, 'first');
    await pair.restart();
    expect(await ask(pair, 'second')).toMatchObject({ action: 'auto' });
    const [entry] = await modelsOf(pair);
    const path = `${pair.spillway.url}/spillway/v1/models/${entry?.id}`;
    expect((await fetch(path, { method: 'DELETE' })).status).toBe(204);
    expect(await modelsOf(pair)).toMatchObject([{ window: null, source: 'unknown', learned: null }]);
    expect(await ask(pair, 'third')).toMatchObject({ action: 'reactive' });
  });

  it("is one tenant's alone, SPEC 1.1", async () => {
    const settings = { SPILLWAY_HOST: '0.0.0.0', SPILLWAY_ADMIN_TOKEN: 'an-admin-token-of-a-test' };
    const pair = await startPair(settings, { windows: { '*': 2_000 } });
    const as = (key: string) => ({ authorization: `Bearer ${key}` });
    expect(await ask(pair, 'first', {}, as('sk-alice'))).toMatchObject({ action: 'reactive' });
    expect(await ask(pair, 'second', {}, as('sk-alice'))).toMatchObject({ action: 'auto' });
    expect(await ask(pair, 'third', {}, as('sk-bob'))).toMatchObject({ action: 'reactive' });
  });

  it('stands behind a configured one, SPEC 6.5', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=100000' }, { windows: { '*': 2_000 } });
    await ask(pair, 'first');
    expect(await modelsOf(pair)).toMatchObject([{ window: 100_000, source: 'configured', learned: { tokens: 2_000 } }]);
    expect(await ask(pair, 'second')).toMatchObject({ status: 200, action: 'reactive' });
  });

  it('without the use is believed only below the estimate of what was refused, SPEC 6.5', async () => {
    const below = await startPair({}, refusing("This model's maximum context length is 2000 tokens."));
    expect(await ask(below, 'first')).toMatchObject({ status: 200, action: 'reactive' });
    expect(await learnedBy(below)).toMatchObject([{ tokens: 2_000 }]);

    const above = await startPair({}, refusing("This model's maximum context length is 200000 tokens."));
    await ask(above, 'first');
    expect(await learnedBy(above)).toEqual([null]);
  });

  it.each([
    [
      'the input alone',
      'Input tokens exceed the configured limit of 2000 tokens. Your messages resulted in 2900 tokens.',
      {},
    ],
    ['a tier', 'Request body too large for model-a model. Max size: 2000 tokens.', { code: 'tokens_limit_reached' }],
    ['bytes', 'total message size 29000 exceeds limit 20000', {}],
    ['nothing', 'Your input exceeds the context window of this model.', { code: 'context_length_exceeded' }],
  ])('is not learned where it bounds %s, and the recovery works all the same, SPEC 6.5', async (_, message, more) => {
    const pair = await startPair({}, refusing(message, more));
    expect(await ask(pair, 'first')).toMatchObject({ status: 200, action: 'reactive' });
    expect(await learnedBy(pair)).toEqual([null]);
  });

  it('is raised by a larger success, SPEC 6.5', async () => {
    let refuses = true;
    const plan = { ...say('A reply.'), promptTokens: 2_600 };
    const pair = await startPair({}, { script: () => (refuses ? { kind: 'overflow', limitTokens: 2_000 } : plan) });
    // Refused twice: the provider's own error, and the window is learned.
    expect(await ask(pair, 'first')).toMatchObject({ status: 400 });
    expect(await learnedBy(pair)).toMatchObject([{ tokens: 2_000 }]);
    refuses = false;
    const short = { messages: [{ role: 'user', content: 'Short.' }] };
    expect(await ask(pair, 'second', short)).toEqual({ status: 200, action: 'none', overflow: undefined });
    const [learned] = await learnedBy(pair);
    expect(learned?.source).toBe('success');
    expect(learned?.tokens).toBeGreaterThan(2_600);
  });

  it('is not learned where the setting says so', async () => {
    const pair = await startPair({ SPILLWAY_LEARNED_DAYS: '0' }, { windows: { '*': 2_000 } });
    expect(await ask(pair, 'first')).toMatchObject({ action: 'reactive' });
    expect(await learnedBy(pair)).toEqual([null]);
    expect(await ask(pair, 'second')).toMatchObject({ action: 'reactive' });
  });
});

describe('an output cap that leaves no room', () => {
  it("is the provider's to refuse: no summary is asked for and its error is passed on, SPEC 6.4", async () => {
    const pair = await startPair({}, { windows: { '*': 4_000 } });
    const request = { model: 'model-a', messages: history('first'), max_tokens: 4_000 };
    const answer = await sendChat(pair.spillway.url, request).answer;
    expect(answer.status).toBe(400);
    expect((await answer.body()).toString()).toContain('4000 in the completion');
    expect(pair.simulator.requests.length).toBe(1);
    // Without the cap the same history fits the window that was learned.
    expect(await ask(pair, 'first')).toMatchObject({ status: 200 });
  });

  it.each([
    [
      'that the provider chose itself',
      {},
      "This model's maximum context length is 4000 tokens. However, you requested 6800 tokens (2900 in the messages, " +
        '3900 in the completion).',
    ],
    [
      'above what the model can give',
      { model: 'gpt-4o', max_tokens: 200_000 },
      'input length and `max_tokens` exceed context limit',
    ],
  ])('%s is treated alike, SPEC 6.4', async (_, more, message) => {
    const pair = await startPair({}, refusing(message));
    expect(await ask(pair, 'first', more)).toMatchObject({ status: 400, action: 'none' });
    expect(pair.simulator.requests.length).toBe(1);
  });
});

describe('an excess without a limit', () => {
  it('gives the window of this recovery: what was refused less the excess, SPEC 6.4', async () => {
    const sent = async (message: string): Promise<number> => {
      const pair = await startPair({}, { ...refusing(message), windows: { '*': 4_000 } });
      const seen = await ask(pair, 'first', { messages: history('first', 20) });
      expect(seen).toMatchObject({ status: 200, action: 'reactive' });
      expect(await learnedBy(pair)).toEqual([null]);
      return pair.simulator.chatRequests().at(-1)?.promptTokens ?? 0;
    };
    // Without it four fifths of what was refused are taken, which leaves more of the newest turns.
    const guessed = await sent('prompt too long; exceeded max context length');
    const known = await sent('prompt too long; exceeded max context length by 1900 tokens');
    expect(known).toBeLessThan(guessed - 200);
  });
});

describe('20 look-alikes, 100 times each', () => {
  it('cause no compaction, no learned window and no request beside those of the client, SPEC 6.1', async () => {
    const bodies = reportedCases.filter(
      (line) => !line.is_overflow && line.where === 'http' && line.class !== 'bytes' && line.status >= 400,
    );
    const chosen = bodies.filter((_, index) => index % 2 === 0 || bodies.length < 40).slice(0, 20);
    expect(chosen.length).toBe(20);
    const pair = await startPair(
      { SPILLWAY_DISCOVER_WINDOWS: 'on', SPILLWAY_WINDOWS: 'known=100000' },
      {
        script(request) {
          const { status = 500, body = '' } = chosen[Number(request.body['seed'])] ?? {};
          return { kind: 'refusal', status, body };
        },
      },
    );
    for (const [seed, { status, body }] of chosen.entries()) {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      for (let round = 0; round < 10; round += 1) {
        const answers = await Promise.all(
          Array.from({ length: 10 }, async (_, index) => {
            const model = index % 2 === 0 ? 'known' : 'model-a';
            const request = { model, seed, messages: history('first') };
            const answer = await sendChat(pair.spillway.url, request).answer;
            return [answer.status, (await answer.body()).toString()];
          }),
        );
        expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
          new Set([JSON.stringify([status, text])]),
        );
      }
    }
    expect(pair.simulator.requests.length).toBe(2_000);
    expect(await learnedBy(pair)).toEqual([null, null]);
    const [conversation, ...more] = await conversationsOf(pair);
    expect(conversation).toMatchObject({ summaries: 0, calls: 2_000 });
    expect(more).toEqual([]);
  }, 120_000);
});

describe("the upstream's list of models", () => {
  /** A provider that lists its model with this window, and replies to everything else. */
  const startListing = (tokens: number) =>
    startProvider((received, response) => {
      const list = JSON.stringify({ data: [{ id: 'model-a', max_model_len: tokens }] });
      response.end(received.method === 'GET' ? list : completion('A reply.'));
    });
  const settings = (url: string) => ({ SPILLWAY_UPSTREAM_URL: url, SPILLWAY_DISCOVER_WINDOWS: 'on' });
  const short = { messages: [{ role: 'user', content: 'Short.' }] };

  async function discovered(pair: StartedPair): Promise<ModelEntry> {
    for (;;) {
      const [entry] = await modelsOf(pair);
      if (entry?.discovered) return entry;
      await nextRound();
    }
  }

  it('is asked for once, after a first success and with its credential, and then believed, SPEC 6.5', async () => {
    const provider = await startListing(9_000);
    const pair = await startPair(settings(provider.url));
    await ask(pair, 'first', short);
    expect(await discovered(pair)).toMatchObject({
      window: 9_000,
      source: 'discovered',
      discovered: { tokens: 9_000 },
    });
    const lists = () => provider.received.filter((received) => received.method === 'GET');
    expect(lists()).toMatchObject([{ target: '/v1/models', headers: { authorization: 'Bearer sk-test' } }]);
    const answer = await sendChat(pair.spillway.url, { model: 'model-a', ...short }).answer;
    await answer.body();
    expect(answer.headers['x-spillway-limit']).toBe(String(9_000 - 2_250 - 450));
    await ask(pair, 'second', short);
    expect(lists().length).toBe(1);
  });

  it('does not hold a request up', async () => {
    const provider = await startProvider((received, response) => {
      // The list never comes.
      if (received.method !== 'GET') response.end(completion('A reply.'));
    });
    const pair = await startPair(settings(provider.url));
    for (let turn = 0; turn < 3; turn += 1) expect(await ask(pair, 'first', short)).toMatchObject({ status: 200 });
    expect(provider.received.filter((received) => received.method === 'GET').length).toBeLessThanOrEqual(1);
  });

  it.each([
    ['where the window is configured', { SPILLWAY_WINDOWS: '*=9000' }],
    ['where nothing is ever acted on', { SPILLWAY_MODE: 'observe' }],
    ['where the setting says so', { SPILLWAY_DISCOVER_WINDOWS: 'off' }],
  ])('is not asked for %s', async (_, more) => {
    const provider = await startListing(9_000);
    const pair = await startPair({ ...settings(provider.url), ...more });
    await ask(pair, 'first', short);
    await ask(pair, 'second', short);
    await pair.restart();
    expect(provider.received.map((received) => received.method)).toEqual(['POST', 'POST']);
  });
});

describe('learned windows in the way of a turn', () => {
  const key = { tenant: 't', upstream: 'u', model: 'm' };
  const window = { ...key, tokens: 8_192, source: 'stated', rule: 'rule', learnedAt: 0, expiresAt: 1e9 } as const;

  it('cost one look into the store for a tenant, and further ones beside its requests, SPEC 2.7', async () => {
    let now = 0;
    let reads = 0;
    const ledger = new MemoryLedger(() => now);
    const counted = {
      learnedWindows(tenant: string | null, limit: number) {
        reads += 1;
        return ledger.learnedWindows(tenant, limit);
      },
      learnWindow: (given: Parameters<MemoryLedger['learnWindow']>[0]) => ledger.learnWindow(given),
      widenWindow: (of: typeof key, tokens: number) => ledger.widenWindow(of, tokens),
      forgetWindow: (of: typeof key) => ledger.forgetWindow(of),
      forgetWindows: (tenant: string) => ledger.forgetWindows(tenant),
    };
    const learned = createLearnedWindows(counted, () => now);
    for (let turn = 0; turn < 50; turn += 1) expect(await learned.of(key)).toBeNull();
    expect(reads).toBe(1);
    // Another instance learns one: heard of after a while, and not waited for.
    await ledger.learnWindow(window);
    now += 30_000;
    expect(await learned.of(key)).toBeNull();
    await learned.drain();
    expect(await learned.of(key)).toEqual(window);
    expect(reads).toBe(2);
    now = 1e9;
    expect(await learned.of(key)).toBeNull();
  });

  it('hold at once where they were learned, whatever an older reading says', async () => {
    let release = (): void => undefined;
    const ledger = new MemoryLedger(() => 0);
    const learned = createLearnedWindows(
      {
        learnedWindows: () => new Promise((resolve) => (release = () => resolve([]))),
        learnWindow: (given) => ledger.learnWindow(given),
        widenWindow: (of, tokens) => ledger.widenWindow(of, tokens),
        forgetWindow: (of) => ledger.forgetWindow(of),
        forgetWindows: (tenant) => ledger.forgetWindows(tenant),
      },
      () => 0,
    );
    const first = learned.of(key);
    learned.learn(window);
    release();
    expect(await first).toEqual(window);
    expect(await ledger.learnedWindows('t', 10)).toEqual([window]);
    learned.learn({ ...window, tokens: 16_384 });
    learned.widen(key, 4_096);
    expect(await learned.of(key)).toEqual(window);
    learned.widen(key, 10_000);
    expect(await learned.of(key)).toMatchObject({ tokens: 10_000, source: 'success' });
    expect(await learned.forget(key)).toBe(true);
    expect(await learned.of(key)).toBeNull();
    const others = { ...window, tenant: 'other' };
    for (const lesson of [window, { ...window, model: 'n' }, others]) learned.learn(lesson);
    await learned.forgetTenant('t');
    for (const model of ['m', 'n']) expect(await learned.of({ ...key, model })).toBeNull();
    expect(await ledger.learnedWindows(null, 10)).toEqual([others]);
  });

  it('are none while the store fails, and no request fails for it', async () => {
    const fail = () => Promise.reject(new Error('store down'));
    const broken = {
      learnedWindows: fail,
      learnWindow: fail,
      widenWindow: fail,
      forgetWindow: fail,
      forgetWindows: fail,
    };
    const learned = createLearnedWindows(broken, () => 0);
    expect(await learned.of(key)).toBeNull();
    learned.learn(window);
    expect(await learned.of(key)).toEqual(window);
    await learned.drain();
  });
});
