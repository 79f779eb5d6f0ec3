import { describe, expect, it } from 'vitest';
import { overflowFromStop } from '../../../src/core/overflow/stops.js';
import { overflowFromUsage, type UsageEvidence, type UsageVerdict } from '../../../src/core/overflow/usage.js';

interface Known extends Partial<Omit<UsageEvidence, 'usage'>> {
  readonly input?: number | null;
  readonly output?: number | null;
}

/** An ordinary finished reply of 50 tokens to a prompt of 10,000 in a window of 100,000, changed where the test says. */
function judge({ input = 10_000, output = 50, ...known }: Known): UsageVerdict {
  return overflowFromUsage({
    estimatedTokens: 10_000,
    windowTokens: 100_000,
    usage: { inputTokens: input, outputTokens: output, cachedTokens: null, reasoningTokens: null },
    stopReason: 'stop',
    hasContent: true,
    requestedOutputTokens: null,
    upstreamHost: null,
    ...known,
  });
}

describe('usage that shows an overflow nobody reported (SPEC 6.2)', () => {
  it('an ordinary reply shows none', () => {
    expect(judge({})).toEqual({ kind: 'none' });
  });

  it('a stop reason that names the window is one; with content the next turn compacts', () => {
    expect(judge({ stopReason: 'model_context_window_exceeded', hasContent: false })).toMatchObject({
      kind: 'context',
      reason: 'stop-reason',
      when: 'now',
      used: 10_000,
    });
    expect(judge({ stopReason: 'model_context_window_exceeded' })).toMatchObject({ when: 'next-turn' });
  });

  it.each(['length', 'max_tokens', 'max_output_tokens', 'MAX_TOKENS'])(
    'a reply cut by %s far below its cap at a full window is one',
    (stopReason) => {
      const full = { stopReason, input: 98_000, output: 400, estimatedTokens: 98_000, requestedOutputTokens: 8_192 };
      expect(judge(full)).toMatchObject({
        kind: 'context',
        reason: 'full-window',
        when: 'next-turn',
        used: 98_000,
        limit: null,
      });
      expect(judge({ ...full, hasContent: false, output: 0 })).toMatchObject({ reason: 'full-window', when: 'now' });
      expect(judge({ ...full, requestedOutputTokens: null })).toMatchObject({ reason: 'full-window' });
    },
  );

  it('a reply cut at its own cap is none, and so is one in a window with room', () => {
    expect(
      judge({ stopReason: 'length', input: 98_000, estimatedTokens: 98_000, output: 400, requestedOutputTokens: 400 }),
    ).toEqual({ kind: 'none' });
    expect(
      judge({
        stopReason: 'length',
        input: 97_000,
        estimatedTokens: 97_000,
        output: 400,
        requestedOutputTokens: 8_192,
      }),
    ).toEqual({ kind: 'none' });
    expect(
      judge({ stopReason: 'length', input: 98_000, estimatedTokens: 98_000, output: 0, windowTokens: null }),
    ).toEqual({ kind: 'none' });
    expect(
      judge({ stopReason: 'stop', input: 98_000, estimatedTokens: 98_000, output: 400, requestedOutputTokens: 8_192 }),
    ).toEqual({ kind: 'none' });
  });

  it('an empty reply to a prompt above the window is one, whatever its usage says', () => {
    const empty = { hasContent: false, estimatedTokens: 100_001, output: 0 };
    expect(judge({ ...empty, input: null })).toMatchObject({
      kind: 'context',
      reason: 'empty-reply',
      when: 'now',
      used: null,
    });
    expect(judge({ ...empty, stopReason: null, input: 100_001 })).toMatchObject({ reason: 'empty-reply' });
    expect(judge({ ...empty, input: null, estimatedTokens: 100_000 })).toEqual({ kind: 'none' });
    expect(judge({ ...empty, input: null, hasContent: true })).toEqual({ kind: 'none' });
  });

  it('a reported prompt above the window leaves its reply and compacts the next turn', () => {
    expect(judge({ input: 100_001, estimatedTokens: 100_001 })).toMatchObject({
      reason: 'above-window',
      when: 'next-turn',
      used: 100_001,
      limit: null,
    });
    expect(judge({ input: 100_000, estimatedTokens: 100_000 })).toEqual({ kind: 'none' });
  });

  it('a prompt reported far below its estimate was cut in silence', () => {
    expect(judge({ input: 5_999 })).toMatchObject({
      kind: 'context',
      reason: 'cut-prompt',
      when: 'next-turn',
      used: null,
      limit: null,
    });
    expect(judge({ input: 6_000 })).toEqual({ kind: 'none' });
    expect(judge({ input: 100, estimatedTokens: 2_000 })).toEqual({ kind: 'none' });
  });

  it('absent and zero usage are unknown, not zero (SPEC 9.4)', () => {
    expect(judge({ input: 0 })).toEqual({ kind: 'none' });
    expect(judge({ input: null, output: null })).toEqual({ kind: 'none' });
    expect(
      overflowFromUsage({
        estimatedTokens: 90_000,
        windowTokens: 100_000,
        usage: null,
        stopReason: 'length',
        hasContent: true,
        requestedOutputTokens: null,
        upstreamHost: null,
      }),
    ).toEqual({ kind: 'none' });
  });

  it.each(['localhost:11434', 'ollama.internal', 'ollama:8080'])(
    'a prompt cut by Ollama at %s tells the window',
    (upstreamHost) => {
      expect(judge({ input: 4_098, estimatedTokens: 20_000, upstreamHost })).toMatchObject({
        reason: 'cut-prompt',
        limit: 8_192,
        limitTrust: 'window',
      });
    },
  );

  it('the window behind a cut is not trusted where it is not below the estimate (SPEC 6.5)', () => {
    expect(judge({ input: 4_098, estimatedTokens: 8_000, upstreamHost: 'localhost:11434' })).toMatchObject({
      limit: 8_192,
      limitTrust: 'other',
    });
    expect(judge({ input: 4_098, estimatedTokens: 20_000, upstreamHost: 'api.example.test' })).toMatchObject({
      limit: null,
      limitTrust: null,
    });
  });
});

describe('stop reasons (SPEC 6.2)', () => {
  it.each([
    'model_context_window_exceeded',
    'context_length_exceeded',
    'context_window_exceeded',
    'model_length',
    'ERROR_LIMIT',
    'contextLengthReached',
  ])('%s tells of an overflow', (reason) => {
    expect(overflowFromStop(reason)).toMatchObject({ kind: 'context', reason: 'stop-reason', limit: null });
  });

  it.each(['stop', 'length', 'max_tokens', 'tool_calls', 'end_turn', 'content_filter', 'error', ''])(
    '%s does not',
    (reason) => {
      expect(overflowFromStop(reason)).toBeNull();
    },
  );

  it('none given tells nothing', () => {
    expect(overflowFromStop(null)).toBeNull();
  });
});
