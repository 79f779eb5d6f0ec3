import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { exchange } from '../../src/proxy/exchange.js';
import type { Answer } from '../../src/proxy/exchange.js';
import { relay } from '../../src/proxy/relay.js';
import type { Relayed } from '../../src/proxy/relay.js';
import type { Sink } from '../../src/proxy/sink.js';
import { BodyQueue } from '../../src/upstream/body-queue.js';
import { DONE, chunkEvent, completion } from '../support/provider.js';

const NOTHING = { reply: null, isStored: true };

const END = `${chunkEvent({ content: 'Aye.' })}${chunkEvent({}, { finish_reason: 'stop' })}${DONE}`;
const OVERFLOW = JSON.stringify({ error: { message: 'too long', code: 'context_length_exceeded' } });

/** An answer whose body a test feeds, and what a client sees of it. */
function begin(status = 200) {
  const body = new BodyQueue({ pause: () => undefined, resume: () => undefined, stop: () => undefined });
  const request = { method: 'POST', url: 'http://a/', headers: {}, body: null, signal: new AbortController().signal };
  const answer = exchange(
    () => Promise.resolve({ status, headers: [['content-type', 'application/json']], body }),
    request,
    chatCompletions,
    1,
  );
  const events: string[] = [];
  const leave = new AbortController();
  const sink: Sink = {
    closed: leave.signal,
    start: () => undefined,
    write: (chunk) => Promise.resolve(void events.push(new TextDecoder().decode(chunk))),
    end: () => Promise.resolve(void events.push('END')),
    abort: () => void events.push('ABORT'),
  };
  return {
    events,
    answer,
    say: (text: string) => body.push(new TextEncoder().encode(text)),
    end: () => body.end(),
    fail: () => body.fail(new Error('gone')),
    pass: (passed: Answer): Promise<Relayed> =>
      relay(passed, sink, {
        hidesUsage: false,
        record: (relayed) => Promise.resolve(void events.push(`RECORD ${relayed.outcome}`)).then(() => NOTHING),
        start: () => void events.push('START'),
      }),
  };
}

describe('white space that keeps a connection alive before the answer', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is held for 5 s, so that an overflow behind it can still be retried, SPEC 6.3', async () => {
    const { answer, say, end } = begin();
    say(' \n');
    await vi.advanceTimersByTimeAsync(4_999);
    say('\n');
    say(OVERFLOW);
    end();
    expect(await answer).toMatchObject({ kind: 'whole', text: ` \n\n${OVERFLOW}`, reply: { error: OVERFLOW } });
  });

  it('goes through as it comes from then on, byte for byte, and the answer behind it is recorded, SPEC 6.3', async () => {
    const { answer, events, say, end, pass } = begin();
    say(' \n');
    await vi.advanceTimersByTimeAsync(5_000);
    const relayed = pass(await answer);
    await vi.advanceTimersByTimeAsync(0);
    expect(events).toEqual(['START', ' \n']);
    say('\r\n');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(events).toEqual(['START', ' \n', '\r\n']);
    say(` ${completion('Aye.')}`);
    end();
    expect(await relayed).toMatchObject({ outcome: 'complete', lateError: null, reply: { stopReason: 'stop' } });
    expect(events.slice(3)).toEqual(['RECORD complete', ` ${completion('Aye.')}`, 'END']);
  });

  it('that first comes after 5 s goes through at once', async () => {
    const { answer, say } = begin();
    await vi.advanceTimersByTimeAsync(30_000);
    say('\n');
    expect((await answer).kind).toBe('late');
  });

  it('goes through once it is 256 kB, however fast it came', async () => {
    const { answer, say } = begin();
    for (let count = 0; count < 256; count++) say(' '.repeat(1024));
    expect((await answer).kind).toBe('late');
  });

  it('may be followed by an event stream', async () => {
    const { answer, events, say, end, pass } = begin();
    say('\n');
    await vi.advanceTimersByTimeAsync(5_000);
    const relayed = pass(await answer);
    say('da');
    say(END.slice(2));
    end();
    expect(await relayed).toMatchObject({ outcome: 'complete', reply: { messages: [{ text: 'Aye.' }] } });
    expect(events.filter((event) => !/^[A-Z]/.test(event)).join('')).toBe(`\n${END}`);
  });

  it('before an error is an error that came too late to be retried, SPEC 6.3', async () => {
    const { answer, events, say, end, pass } = begin();
    say('\n');
    await vi.advanceTimersByTimeAsync(5_000);
    const relayed = pass(await answer);
    say(OVERFLOW);
    end();
    expect(await relayed).toMatchObject({ outcome: 'failed' });
    expect(events).toEqual(['START', '\n', 'RECORD failed', OVERFLOW, 'END']);
  });

  it('and then nothing is an answer that broke off, SPEC 2.3', async () => {
    const { answer, events, say, fail, pass } = begin();
    say('\n');
    await vi.advanceTimersByTimeAsync(5_000);
    const relayed = pass(await answer);
    fail();
    expect(await relayed).toMatchObject({ outcome: 'failed', reply: null });
    expect(events).toEqual(['START', '\n', 'RECORD failed', 'ABORT']);
  });

  it('before the body of an error status is held to its end: the status may still change', async () => {
    const { answer, say, end } = begin(400);
    say('\n');
    await vi.advanceTimersByTimeAsync(60_000);
    say(OVERFLOW);
    end();
    expect(await answer).toMatchObject({ kind: 'whole', text: `\n${OVERFLOW}` });
  });
});

describe('a body that is no event stream', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is held to its end, however long it takes', async () => {
    const { answer, say, end } = begin();
    say(completion('Aye.').slice(0, 9));
    await vi.advanceTimersByTimeAsync(600_000);
    say(completion('Aye.').slice(9));
    end();
    expect(await answer).toMatchObject({ kind: 'whole', text: completion('Aye.') });
  });
});
