import type { TokenCounter } from '../core/ports.js';
import type { PlannedChoice, PlannedReply, Stop } from './reply-plan.js';

export interface GeneratedCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** One choice, already cut to the tokens it had; in no wire format. */
export interface GeneratedChoice {
  readonly reasoning: string;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly GeneratedCall[];
  readonly stop: Stop;
}

export interface ReplyUsage {
  readonly promptTokens: number;
  /** Of `promptTokens`. */
  readonly cachedTokens: number;
  /** Of `promptTokens`, beside those: newly put into the cache, where the provider says so. */
  readonly writtenTokens: number;
  /** Over all choices, reasoning included. */
  readonly completionTokens: number;
  readonly reasoningTokens: number;
}

export interface GeneratedReply {
  readonly choices: readonly GeneratedChoice[];
  readonly usage: ReplyUsage;
}

export interface GenerationLimits {
  readonly choices: number;
  readonly promptTokens: number;
  /** Of the prompt, as the provider's cache had it. */
  readonly cachedTokens: number;
  readonly writtenTokens: number;
  /** Most tokens of each choice; Infinity without a limit. */
  readonly outputTokens: number;
  /** How a choice stops that would have had more. */
  readonly stopAtLimit: Stop;
  /** Begins the ids of calls that the plan gives none; unlike any other request's. */
  readonly callIdPrefix: string;
}

/** Says what a plan says within the limits: what comes last is cut first, as by a model that stops at its limit. */
export function generate(plan: PlannedReply, limits: GenerationLimits, counter: TokenCounter): GeneratedReply {
  const spoken = Array.from({ length: limits.choices }, (_, index) => {
    const planned = plan.choices[index] ?? plan.choices.at(-1) ?? {};
    const outputTokens = plan.ignoresCap === true ? Infinity : limits.outputTokens;
    return speak(planned, { outputTokens, stop: limits.stopAtLimit }, `${limits.callIdPrefix}_${index}`, counter);
  });
  const promptTokens = plan.promptTokens ?? limits.promptTokens;
  const cachedTokens = Math.min(plan.cachedTokens ?? limits.cachedTokens, promptTokens);
  return {
    choices: spoken.map(({ choice }) => choice),
    usage: {
      promptTokens,
      cachedTokens,
      writtenTokens: Math.min(limits.writtenTokens, promptTokens - cachedTokens),
      completionTokens: spoken.reduce((sum, { tokens }) => sum + tokens, 0),
      reasoningTokens: spoken.reduce((sum, { reasoningTokens }) => sum + reasoningTokens, 0),
    },
  };
}

interface OutputLimit {
  readonly outputTokens: number;
  readonly stop: Stop;
}

function speak(planned: PlannedChoice, limit: OutputLimit, idPrefix: string, counter: TokenCounter) {
  let left = limit.outputTokens;
  let cut = false;
  const take = (text: string): string => {
    const taken = cut ? '' : textWithin(text, left, counter);
    cut ||= taken.length < text.length;
    left -= counter.count(taken);
    return taken;
  };
  const reasoning = take(planned.reasoning ?? '');
  const reasoningTokens = counter.count(reasoning);
  const text = take(planned.text ?? '');
  const refusal = take(planned.refusal ?? '');
  const calls: GeneratedCall[] = [];
  let callTokens = 0;
  for (const [index, call] of (planned.calls ?? []).entries()) {
    const nameTokens = counter.count(call.name);
    if (cut || nameTokens > left) {
      cut = true;
      break;
    }
    left -= nameTokens;
    const taken = take(call.arguments);
    calls.push({ id: call.id ?? `${idPrefix}_${index}`, name: call.name, arguments: taken });
    callTokens += nameTokens + counter.count(taken);
  }
  const choice: GeneratedChoice = {
    reasoning,
    text,
    refusal,
    calls,
    stop: planned.stop ?? (cut ? limit.stop : calls.length > 0 ? 'tool_calls' : 'stop'),
  };
  return {
    choice,
    reasoningTokens,
    tokens: reasoningTokens + counter.count(text) + counter.count(refusal) + callTokens,
  };
}

/** The longest start of `text` that counts at most `most` tokens and splits no surrogate pair. */
function textWithin(text: string, most: number, counter: TokenCounter): string {
  if (most >= text.length * 3 || counter.count(text) <= most) return text;
  let fits = 0;
  let tooLong = text.length;
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (counter.count(text.slice(0, middle)) <= most) fits = middle;
    else tooLong = middle;
  }
  const splitsPair = /[\uD800-\uDBFF]/.test(text.charAt(fits - 1));
  return text.slice(0, splitsPair ? fits - 1 : fits);
}
