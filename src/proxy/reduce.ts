import { marginTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { SpillwayError } from '../core/errors.js';
import { estimateView } from '../core/estimate.js';
import type { Media } from '../core/message.js';
import type { Summary } from '../core/ports.js';
import { fit } from '../core/request/fit.js';
import type { Fitted, ResultStrategy } from '../core/request/fit.js';
import { partsOf } from '../core/request/parts.js';
import type { RequestParts } from '../core/request/parts.js';
import { policyResults } from '../core/request/policies.js';
import type { ViewPolicies } from '../core/request/policies.js';
import { NO_REDUCTION } from '../core/request/reduction.js';
import type { Reduction } from '../core/request/reduction.js';
import { byteBound } from '../tokens/byte-bound.js';
import { withinTime } from '../upstream/within-time.js';
import { spineOfTurn } from './compact-spine.js';
import type { CompactSpine } from './compact-spine.js';
import { dispatchOf } from './dispatch.js';
import type { Dispatch } from './dispatch.js';
import type { Invocations } from './invocations.js';
import { startsTurn } from './turn.js';
import type { Turn } from './turn.js';

/**
 * What the results of a request that passed the limit are shortened to, as a share of it. Well below the 0.75 that SPEC 7.1 asks for:
 * in a tool loop each new reduction breaks the prefix that the provider has cached, so one that is rare and large costs less than
 * many small ones.
 */
const TARGET_SHARE = 0.3;

export interface Reducer {
  /**
   * What the view policies and this tool loop substitute already, before anything more is done (SPEC 4.6, 7.6): here, or in another
   * process on the store.
   */
  current(turn: Turn): Promise<Reduction>;
  /**
   * Brings a view of so many tokens (the local estimate) under the limit as far as it can be, for this request only (SPEC 7.3, 7.4).
   * Does no more where another request of its loop did so meanwhile.
   */
  reduce(turn: Turn, active: Summary | null, limits: Limits, tokens: number): Promise<Reduced>;
  /** The tool loop of a turn is over: nothing made for it is kept. Never rejects. */
  end(turn: Turn): Promise<void>;
}

export interface Reduced {
  readonly dispatch: Dispatch;
  /** Local estimate of what is dispatched. */
  readonly tokens: number;
  readonly steps: Fitted['steps'];
}

export interface ReducerDeps {
  readonly invocations: Invocations;
  readonly compactSpine: CompactSpine;
  readonly strategy: ResultStrategy;
  readonly policies: ViewPolicies;
  readonly uniqueId: () => string;
}

/** Most input tokens by the local estimate (SPEC 7.1). */
export function limitTokens(limits: Limits): number {
  const { windowTokens, reserveTokens, calibration } = limits;
  return Math.floor((windowTokens - reserveTokens - marginTokens(windowTokens)) / calibration);
}

export function createReducer(deps: ReducerDeps): Reducer {
  const { policies, invocations } = deps;
  const local = async (turn: Turn): Promise<Reduction> => {
    const made = invocations.find(turn)?.reductionOn(turn.spine) ?? NO_REDUCTION;
    if (policies.agingTurns === null && policies.spillTokens === null) return made;
    const counter = await turn.measure.counter();
    const own = new Set(made.results.map(({ node, callId }) => `${node} ${callId}`));
    const byPolicy = policyResults(turn.spine, policies, (text) => counter.count(text));
    return {
      ...made,
      results: [...byPolicy.filter(({ node, callId }) => !own.has(`${node} ${callId}`)), ...made.results],
    };
  };
  return {
    async current(turn) {
      // Nothing was made for a request that begins its loop.
      if (!startsTurn(turn)) await invocations.load(turn);
      return local(turn);
    },
    end: (turn) => invocations.end(turn),
    async reduce(turn, active, limits, tokens) {
      const invocation = invocations.of(turn);
      if (invocation === null) return asItIs(turn, active, await local(turn));
      return invocation.alone(async () => {
        await invocations.load(turn);
        const limit = limitTokens(limits);
        const reduction = await local(turn);
        const known = await asItIs(turn, active, reduction);
        if (known.tokens < tokens && known.tokens <= limit) return known;
        const [ruler, counter, summarizer] = await Promise.all([
          turn.measure.ruler(),
          turn.measure.counter(),
          deps.compactSpine.summarizer(spineOfTurn(turn), limits),
        ]);
        const fitted = await fit(
          {
            spine: turn.spine,
            active,
            reduction,
            ruler,
            forms: turn.dialect,
            limitTokens: limit,
            targetTokens: Math.floor(limit * TARGET_SHARE),
            strategy: deps.strategy,
            windowTokens: limits.windowTokens,
            summariserWindowTokens: summarizer.windowTokens,
            calibration: limits.calibration,
          },
          {
            // Local work ends with the client that wanted it (SPEC 7.8); nothing half done is remembered.
            ask: (request) =>
              withinTime(turn.purse.remainingMs(), turn.closed, (signal) => summarizer.ask(request, signal)),
            purse: turn.purse,
            uniqueId: deps.uniqueId,
            count: (text) => counter.count(text),
            known: (candidate) => invocation.known(candidate),
            remember: (candidate, text) => invocation.remember(candidate, text),
            isGivenUp: (run) => invocation.isGivenUp(run),
            giveUp: (run) => invocation.giveUp(run),
          },
        );
        turn.closed.throwIfAborted();
        invocation.keep(fitted.reduction, turn.spine);
        await invocations.save(turn);
        return { dispatch: dispatchOf(turn, active, fitted.reduction), tokens: fitted.tokens, steps: fitted.steps };
      });
    },
  };
}

async function asItIs(turn: Turn, active: Summary | null, reduction: Reduction): Promise<Reduced> {
  const dispatch = dispatchOf(turn, active, reduction);
  return { dispatch, tokens: estimateView(dispatch.view, await turn.measure.ruler()), steps: [] };
}

/**
 * Whether what is over the limit is so by a guess: media whose price nobody but the provider knows, such as a file's id (SPEC 7.9).
 * Then the provider is asked.
 */
export async function mayFit(turn: Turn, { dispatch, tokens }: Reduced, limits: Limits): Promise<boolean> {
  // Of an image, however it is named, the most it can cost is known.
  const isGuessed = (media: Media): boolean => media.kind !== 'image' && byteBound(0, [media]) === null;
  const guessed = dispatch.view.tail
    .flatMap((entry) => (entry.kind === 'checkpoint' ? [] : (turn.spine[entry.index]?.message.media ?? [])))
    .filter(isGuessed);
  if (guessed.length === 0) return false;
  const counter = await turn.measure.counter();
  return tokens - guessed.reduce((sum, media) => sum + counter.countMedia(media), 0) <= limitTokens(limits);
}

/**
 * SPEC 7.7: what is still over the limit of a window that was configured or learned is not sent. The error says which part takes how
 * much; the parts add up to the whole.
 */
export async function refusalOf(turn: Turn, { dispatch }: Reduced, limits: Limits): Promise<SpillwayError> {
  const parts = partsOf(turn.spine, dispatch.view, await turn.measure.ruler(), turn.dialect);
  const measured = (tokens: number): number => Math.ceil(tokens * limits.calibration);
  const named = PART_NAMES.map(([part, name]) => `${name} ${measured(parts[part])}`);
  const inputTokens = PART_NAMES.reduce((sum, [part]) => sum + measured(parts[part]), 0);
  const { windowTokens, reserveTokens } = limits;
  const fitting = Math.floor(limitTokens(limits) * limits.calibration);
  return new SpillwayError(
    'context_length_exceeded',
    `This model's maximum context length is ${windowTokens} tokens. However, your messages resulted in about ${inputTokens} tokens ` +
      `after everything that may be shortened was, and at most ${fitting} fit beside ${reserveTokens} reserved for the reply. ` +
      `They are: ${named.join(', ')}.`,
    'messages',
    undefined,
    { usedTokens: inputTokens, limitTokens: fitting },
  );
}

const PART_NAMES: readonly (readonly [keyof RequestParts, string])[] = [
  ['fixed', 'fixed part (instructions, tools)'],
  ['userText', 'user text'],
  ['openGroup', 'open group (latest assistant message and its results)'],
  ['media', 'media'],
  ['summaries', 'summaries'],
  ['history', 'history that could not be shortened'],
];
