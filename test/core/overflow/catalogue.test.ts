import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { overflowFromUsage, type UsageEvidence } from '../../../src/core/overflow/usage.js';
import { inventedCases, recognise, reportedCases, type ReportedCase } from './evidence.js';

/**
 * Lines whose verdict cannot be the reported one, and why. A body says only what it says: the numbers of this one make it
 * a prompt below the window that does not fit with the output asked for.
 */
const READ_AS: ReadonlyMap<string, 'fit'> = new Map([
  ['vllm 32769 of 32768: 32257 in the messages, 512 in the completion', 'fit'],
]);

/** What has to be known beside the reply to see the overflow in its usage; none of it is in the reply. */
const KNOWN_BESIDE: Readonly<Record<string, Partial<UsageEvidence>>> = {
  dashscope: { windowTokens: 128_000, requestedOutputTokens: 8_192 },
  openai: { windowTokens: 272_000, requestedOutputTokens: 32_000 },
  'xiaomi-mimo': { windowTokens: 262_144 },
  zhipu: { windowTokens: 200_000, hasContent: true },
  ollama: { estimatedTokens: 160_689, hasContent: true, upstreamHost: 'localhost:11434' },
};

function keyOf(line: ReportedCase): string {
  const text = JSON.stringify(line.body);
  return text.includes('(32257 in the messages, 512')
    ? 'vllm 32769 of 32768: 32257 in the messages, 512 in the completion'
    : '';
}

function expectedKind(line: ReportedCase): string {
  if (!line.is_overflow) return line.class === 'bytes' ? 'bytes' : 'none';
  return READ_AS.get(keyOf(line)) ?? line.class;
}

const fromBody = reportedCases.filter((line) => line.where !== 'finish' && line.where !== 'silent');
const fromUsage = reportedCases.filter((line) => line.where === 'finish' || line.where === 'silent');

describe('every reported body gets its verdict and its numbers (SPEC 6.1)', () => {
  it('none of the 147 is left out', () => {
    expect(fromBody.length + fromUsage.length).toBe(147);
    expect(fromUsage).toHaveLength(6);
  });

  it.each(fromBody.map((line, index) => [`${index} ${line.provider} ${line.status} ${line.class}`, line] as const))(
    '%s',
    (_, line) => {
      // An empty 400 is an overflow only beside an estimate that nearly fills the window.
      const known = line.body === '' ? { estimatedTokens: 119_000, windowTokens: 131_072 } : {};
      const verdict = recognise(line.body, { status: line.status, ...known });
      expect(verdict.kind).toBe(expectedKind(line));
      if (verdict.kind === 'none') return;
      expect({ limit: verdict.limit, used: verdict.used }).toEqual({ limit: line.limit, used: line.used });
      if (line.used_input !== undefined) expect(verdict.usedInput).toBe(line.used_input);
      if (line.used_output !== undefined) expect(verdict.usedOutput).toBe(line.used_output);
      if (line.used_is_floor !== undefined) expect(verdict.usedIsFloor).toBe(line.used_is_floor);
      if (line.excess !== undefined) expect(verdict.excess).toBe(line.excess);
      if (line.limit_trusted === false) expect(verdict.limitTrust).toBe('other');
    },
  );

  it('the empty 400 is none without an estimate near the window', () => {
    expect(recognise('').kind).toBe('none');
    expect(recognise('', { estimatedTokens: 100_000, windowTokens: 131_072 }).kind).toBe('none');
  });
});

const reply = z.object({
  prompt_eval_count: z.number().optional(),
  done_reason: z.string().optional(),
  choices: z.tuple([z.object({ finish_reason: z.string(), message: z.unknown().optional() })]).optional(),
  usage: z.object({ prompt_tokens: z.number(), completion_tokens: z.number() }).optional(),
  response: z
    .union([
      z.string(),
      z.object({
        incomplete_details: z.object({ reason: z.string() }),
        usage: z.object({ input_tokens: z.number(), output_tokens: z.number() }),
      }),
    ])
    .optional(),
});

/** What a dialect would fold of the reported reply. */
function usageEvidence(line: ReportedCase): UsageEvidence {
  const body = reply.parse(line.body);
  const failed = typeof body.response === 'object' ? body.response : null;
  return {
    estimatedTokens: null,
    windowTokens: null,
    usage: {
      inputTokens: body.usage?.prompt_tokens ?? failed?.usage.input_tokens ?? body.prompt_eval_count ?? null,
      outputTokens: body.usage?.completion_tokens ?? failed?.usage.output_tokens ?? null,
      cachedTokens: null,
      reasoningTokens: null,
    },
    stopReason: body.choices?.[0].finish_reason ?? failed?.incomplete_details.reason ?? body.done_reason ?? null,
    hasContent: body.choices?.[0].message !== undefined,
    requestedOutputTokens: null,
    upstreamHost: null,
  };
}

describe('an overflow that only the usage shows is seen there (SPEC 6.2)', () => {
  it.each(fromUsage.filter((line) => line.is_overflow).map((line) => [line.provider, line] as const))(
    '%s',
    (provider, line) => {
      const beside = KNOWN_BESIDE[provider];
      expect(beside).toBeDefined();
      const verdict = overflowFromUsage({ ...usageEvidence(line), ...beside });
      expect(verdict).toMatchObject({ kind: line.class, limit: line.limit, used: line.used });
    },
  );

  it.each(fromUsage.map((line) => [`${line.provider} ${line.where}`, line] as const))(
    '%s shows nothing where neither window nor estimate is known',
    (_, line) => {
      expect(overflowFromUsage(usageEvidence(line))).toEqual({ kind: 'none' });
    },
  );

  it('a reply cut at its own cap, far below the window, is none', () => {
    const cut = fromUsage.filter((line) => !line.is_overflow);
    expect(cut).toHaveLength(1);
    for (const line of cut) {
      expect(
        overflowFromUsage({
          ...usageEvidence(line),
          windowTokens: 128_000,
          estimatedTokens: 1_300,
          requestedOutputTokens: 4_096,
        }),
      ).toEqual({ kind: 'none' });
    }
  });
});

describe('bodies the rules were not made from get the right verdict too (SPEC 6.1)', () => {
  it.each(inventedCases.map((line) => [line.name, line] as const))('%s', (_, line) => {
    const verdict = recognise(line.body, { status: line.status, upstreamHost: line.host });
    expect(verdict.kind).toBe(line.kind);
    if (verdict.kind !== 'none')
      expect({ limit: verdict.limit, used: verdict.used }).toEqual({ limit: line.limit, used: line.used });
  });
});
