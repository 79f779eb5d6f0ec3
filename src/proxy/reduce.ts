import { marginTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { SpillwayError } from '../core/errors.js';
import { estimateView } from '../core/estimate.js';
import type { Summary } from '../core/ports.js';
import { render } from '../core/render.js';
import { fit } from '../core/request/fit.js';
import type { Fitted, ResultStrategy } from '../core/request/fit.js';
import { protectedParts } from '../core/request/parts.js';
import { policyResults } from '../core/request/policies.js';
import type { ViewPolicies } from '../core/request/policies.js';
import { NO_REDUCTION } from '../core/request/reduction.js';
import type { Reduction } from '../core/request/reduction.js';
import { spineOfTurn } from './compact-spine.js';
import type { CompactSpine } from './compact-spine.js';
import { dispatchOf } from './dispatch.js';
import type { Dispatch } from './dispatch.js';
import type { Invocations } from './invocations.js';
import type { Turn } from './turn.js';

/**
 * What a request that passed the limit is brought down to, as a share of it. Well below the 0.75 that SPEC 7.1 asks for: in a tool
 * loop each new reduction breaks the prefix that the provider has cached, so one that is rare and large costs less than many
 * small ones.
 */
const TARGET_SHARE = 0.3;

export interface Reducer {
  /** What the view policies and this tool loop substitute already, before anything more is done (SPEC 4.6, 7.6). */
  current(turn: Turn): Promise<Reduction>;
  /** Brings a view under the limit as far as it can be, for this request only (SPEC 7.3, 7.4). */
  reduce(turn: Turn, active: Summary | null, limits: Limits): Promise<Reduced>;
  /** The tool loop of a turn is over: nothing made for it is kept. */
  end(turn: Turn): void;
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
  const { policies } = deps;
  const current = async (turn: Turn): Promise<Reduction> => {
    const made = deps.invocations.of(turn)?.reduction ?? NO_REDUCTION;
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
    current,
    end: (turn) => deps.invocations.end(turn),
    async reduce(turn, active, limits) {
      const invocation = deps.invocations.of(turn);
      if (invocation === null) return asItIs(turn, active, await current(turn));
      return invocation.alone(async () => {
        const limit = limitTokens(limits);
        const [ruler, counter, summarizer] = await Promise.all([
          turn.measure.ruler(),
          turn.measure.counter(),
          deps.compactSpine.summarizer(spineOfTurn(turn), limits),
        ]);
        const fitted = await fit(
          {
            spine: turn.spine,
            active,
            reduction: await current(turn),
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
              summarizer.ask(
                request,
                AbortSignal.any([turn.closed, AbortSignal.timeout(Math.max(1, turn.purse.remainingMs()))]),
              ),
            purse: turn.purse,
            uniqueId: deps.uniqueId,
            count: (text) => counter.count(text),
            known: (candidate) => invocation.known(candidate),
            remember: (candidate, text) => invocation.remember(candidate, text),
          },
        );
        turn.closed.throwIfAborted();
        invocation.keep(fitted.reduction);
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
 * SPEC 7.7: what is still over the limit of a window that was configured or learned is not sent. The error says which protected part
 * takes how much.
 */
export async function refusalOf(
  turn: Turn,
  active: Summary | null,
  reduced: Reduced,
  limits: Limits,
): Promise<SpillwayError> {
  const ruler = await turn.measure.ruler();
  const view = render(turn.spine, active, reduced.dispatch.view.reduction);
  const { fixed, userText, openGroup, media } = protectedParts(turn.spine, view, ruler);
  const part = (name: string, tokens: number): string => `${name} ${Math.ceil(tokens * limits.calibration)}`;
  const { windowTokens, reserveTokens } = limits;
  return new SpillwayError(
    'context_length_exceeded',
    `This model's maximum context length is ${windowTokens} tokens. However, your messages resulted in about ${Math.ceil(reduced.tokens * limits.calibration)} tokens ` +
      `after everything that may be shortened was, and at most ${Math.floor(limitTokens(limits) * limits.calibration)} fit beside ${reserveTokens} reserved for the reply. ` +
      `What may not be shortened: ${[part('fixed part (instructions, tools)', fixed), part('user text', userText), part('open group', openGroup), part('media', media)].join(', ')} tokens.`,
    'messages',
  );
}
