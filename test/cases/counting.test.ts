import { describe, expect, it } from 'vitest';
import { estimateView } from '../../src/core/estimate.js';
import type { Call, Manifest } from '../../src/core/ports.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { Chat, padding } from '../support/chat.js';
import { startPair } from '../support/start.js';
import { assistant, filler, isRecord, scriptedWorld, talks, user } from './scripted-world.js';
import type { Wire } from './scripted-world.js';

const options = { windowTokens: 8_000, keepTokens: 800 };
const tools = Array.from({ length: 40 }, (_, index) => ({
  type: 'function',
  function: { name: `tool_${index}`, description: filler('does', 60), parameters: { type: 'object', properties: {} } },
}));

describe('what a request costs, SPEC 5.1, 7.1', () => {
  it('is all of it: forty tools make a history compact that fits without them, and go on unchanged', async () => {
    const history = [...talks(3, 800), user('now')];
    expect((await scriptedWorld(options).request(history)).prepared.action).toBe('none');
    const sent = await scriptedWorld(options).request(history, { tools, tool_choice: 'auto' });
    expect(sent.prepared.action).toBe('auto');
    expect(JSON.parse(sent.text)).toMatchObject({ tools, tool_choice: 'auto' });
    expect(Object.keys(JSON.parse(sent.text) as object)).toEqual(['model', 'messages', 'tools', 'tool_choice']);
  });

  it('holds tools and instructions once, after a compaction too', async () => {
    const world = scriptedWorld(options);
    const system = { role: 'system', content: filler('rules', 500) };
    const { turn, prepared } = await world.request([system, ...talks(3, 800), user('now')], { tools: tools.slice(20) });
    const ruler = await turn.measure.ruler();
    const { before, after } = prepared;
    expect(before?.tokens).toBeGreaterThan(ruler.fixedTokens + 2_400);
    expect(after?.tokens).toBeLessThan(ruler.fixedTokens + 400);
    expect(after?.tokens).toBe(estimateView(prepared.dispatch.view, ruler));
  });

  it('holds the response schema', async () => {
    const schema = { type: 'json_schema', json_schema: { name: 'x', schema: { description: filler('shape', 2_600) } } };
    const world = scriptedWorld(options);
    const { prepared } = await world.request([...talks(3, 800), user('now')], { response_format: schema });
    expect(prepared.action).toBe('auto');
  });

  it('holds reasoning that the client echoes, which goes with its turn when that is covered', async () => {
    const thought = (message: Wire): Wire =>
      message['role'] === 'assistant' ? { ...message, reasoning_content: filler('hm', 900) } : message;
    const history = [...talks(3, 800).map(thought), user('now')];
    const { prepared, text } = await scriptedWorld(options).request(history);
    expect(prepared.action).toBe('auto');
    expect(text).not.toContain('hm plain');
  });

  it('holds an image by its size and never as base64, and a summary call gets a notice of it, SPEC 5.5', async () => {
    const bytes = 'A'.repeat(2_000_000);
    const picture = user([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,iVBORw0KGgo${bytes}`, detail: 'low' } },
    ]);
    const few = await scriptedWorld(options).request([picture, assistant('A cat.'), user('Sure?')]);
    expect(few.prepared).toMatchObject({ action: 'none', report: null });
    const world = scriptedWorld(options);
    const many = await world.request([picture, assistant('A cat.'), ...talks(6, 900), user('Sure?')]);
    expect(many.prepared.action).toBe('auto');
    expect(world.asked.map((call) => call.input).join('')).toContain('(image attached: inline image/png)');
    expect(world.asked.every((call) => call.text.length < 50_000)).toBe(true);
    expect(many.text).not.toContain('iVBORw0KGgo');
  });

  it('is counted once: a turn counts only what is new', async () => {
    const world = scriptedWorld({ windowTokens: 40_000 });
    const history = [...talks(10, 2_000), user('now')];
    const first = await world.request(history);
    estimateView(first.prepared.dispatch.view, await first.turn.measure.ruler());
    expect(first.turn.measure.freshCounts().size).toBe(history.length);
    await first.turn.writer.close({
      call: null,
      reduction: null,
      replies: [],
      counts: first.turn.measure.freshCounts(),
      tokenizer: first.turn.measure.tokenizer(),
      marks: [],
    });
    const next = await world.request([...history, assistant('well'), user('and?')]);
    estimateView(next.prepared.dispatch.view, await next.turn.measure.ruler());
    expect(next.turn.opened.known).toBe(history.length);
    expect(next.turn.measure.freshCounts().size).toBe(2);
  });
});

describe('usage as providers report it', () => {
  const usageOf = (usage: unknown) =>
    chatCompletions.readReply({
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage,
    })?.usage ?? null;

  it('has cached tokens inside the input, not beside it, SPEC 9.4', () => {
    const usage = { prompt_tokens: 184_704, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 183_936 } };
    expect(usageOf(usage)).toMatchObject({ inputTokens: 184_704, cachedTokens: 183_936 });
    const other = { prompt_tokens: 39_000, completion_tokens: 10, prompt_cache_hit_tokens: 31_000 };
    expect(usageOf(other)).toMatchObject({ inputTokens: 39_000, cachedTokens: 31_000 });
  });

  it('counts nothing that a server tells of its own cache beside it', () => {
    const reply = chatCompletions.readReply({
      choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 39_000, completion_tokens: 10 },
      timings: { cache_n: 31_000, prompt_n: 8_000 },
    });
    expect(reply?.usage?.inputTokens).toBe(39_000);
  });

  it.each([
    ['absent', undefined],
    ['null', null],
    ['zero', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }],
    ['empty', {}],
  ])('is unknown and not zero when %s, SPEC 9.4', (_name, usage) => {
    expect(usageOf(usage)?.inputTokens ?? null).toBeNull();
  });

  it('of one dialogue says nothing of another’s, though they share a session, SPEC 5.1', async () => {
    const pair = await startPair({ SPILLWAY_WINDOWS: '*=6000' });
    const session = { 'x-session-id': 'agent-7' };
    const big = new Chat(pair, session);
    for (const word of ['one', 'two', 'three']) await big.say(padding(word, 900));
    const helper = new Chat(pair, session);
    const seen = await helper.say('A short question of a helper.');
    expect(seen.spillway['action']).toBe('none');
    expect(seen.spillway['conversation']).not.toBe((await big.send()).spillway['conversation']);
    expect(Number(seen.spillway['tokens-before'])).toBeLessThan(200);
  });

  it('where it is larger than the estimate brings the trigger forward, SPEC 5.1', async () => {
    const world = scriptedWorld({ windowTokens: 8_000, keepTokens: 800 });
    const history = [...talks(4, 800), user('now')];
    const first = await world.request(history);
    expect(first.prepared.action).toBe('none');
    const estimate = first.prepared.before?.tokens ?? 0;
    const ratio = 1.5;
    await first.turn.writer.close({
      call: callOf(first.turn.conversation.id, first.prepared.dispatch.manifest, estimate, estimate * ratio),
      reduction: null,
      replies: [],
      counts: new Map(),
      tokenizer: null,
      marks: [],
    });
    const next = await world.request([...history, assistant('well'), user('and?')]);
    expect(next.turn.limits?.calibration).toBe(ratio);
    expect(next.prepared.action).toBe('auto');
    expect(isRecord(next.messages[0])).toBe(true);
  });
});

function callOf(conversation: string, manifest: Manifest, estimatedTokens: number, inputTokens: number): Call {
  return {
    id: 'call_1',
    conversation,
    model: 'any',
    upstream: 'http://upstream.invalid/v1',
    action: 'none',
    manifest,
    replies: [],
    outcome: 'complete',
    status: 200,
    stopReason: 'stop',
    overflow: null,
    estimatedTokens,
    usage: { inputTokens, outputTokens: 5, cachedTokens: null, reasoningTokens: null },
    bodyDigest: 'digest',
    startedAt: 0,
    overheadMs: 0,
    durationMs: 0,
  };
}
