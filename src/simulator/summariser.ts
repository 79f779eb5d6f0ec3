import { SUMMARY_HEADINGS } from '../core/compaction/headings.js';
import type { TokenCounter } from '../core/ports.js';
import { sentence } from './default-script.js';
import type { ProviderErrors } from './format.js';
import { lastUserText } from './model-request.js';
import type { ModelRequest } from './model-request.js';
import { callTools, noAnswer, say } from './reply-plan.js';
import type { PlannedReply, ReplyPlan } from './reply-plan.js';
import { hash32 } from './seeded.js';
import { summaryText } from './summary-text.js';

/** How the summariser acts on one call. Those that are not `faithful`, `slow` or `lossy` go wrong in a way of their own. */
export type SummaryBehaviour =
  | 'faithful'
  | 'empty'
  | 'whitespace'
  /** Stops by length in the middle of a faithful summary. */
  | 'cut'
  | 'tool-call'
  /** Text that begins like a tool call. */
  | 'tool-call-text'
  | 'reasoning-only'
  /** Says its whole input again, whatever the limit. */
  | 'echo'
  /** Goes on with the conversation: no headings. */
  | 'continues-chat'
  /** A faithful summary without its last heading. */
  | 'missing-heading'
  /** Has every heading and is longer than its input, whatever the limit. */
  | 'larger'
  /** The socket breaks before the status line. */
  | 'no-answer'
  /** The socket breaks in the middle of the body or stream. */
  | 'dies'
  /** Never answers. */
  | 'hangs'
  | 'overflow'
  | 'unauthorized'
  | 'rate-limited'
  | 'server-error'
  | 'malformed-json'
  /** Faithful, after a while. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** Faithful but for some facts: each is dropped with this probability, the same ones for the same seed. */
  | { readonly kind: 'lossy'; readonly seed: number; readonly dropProbability: number }
  | { readonly kind: 'plan'; readonly plan: ReplyPlan };

/**
 * The behaviours of successive summary calls: a list used up one a call and faithful after that, or a function of the
 * request and its number among the summary calls, from 0. A promise holds the call until it is settled.
 */
export type Summariser =
  | readonly SummaryBehaviour[]
  | ((request: ModelRequest, call: number) => SummaryBehaviour | Promise<SummaryBehaviour>);

export async function behaviourOf(
  summariser: Summariser,
  request: ModelRequest,
  call: number,
): Promise<SummaryBehaviour> {
  return typeof summariser === 'function' ? summariser(request, call) : (summariser[call] ?? 'faithful');
}

/** What a summary call is answered under a behaviour; errors in the form of the provider's `errors`. */
export function summaryPlan(
  behaviour: SummaryBehaviour,
  request: ModelRequest,
  counter: TokenCounter,
  errors: ProviderErrors,
): ReplyPlan {
  if (typeof behaviour === 'object') return parameterisedPlan(behaviour, request, counter);
  switch (behaviour) {
    case 'faithful':
      return say(summaryText(request, counter));
    case 'empty':
      return say('');
    case 'whitespace':
      return say(' \n\t\n ');
    case 'cut':
      return cutShort(summaryText(request, counter));
    case 'tool-call':
      return callTools({ name: 'read_file', arguments: '{"path":"notes.md"}' });
    case 'tool-call-text':
      return say('<tool_call>\n{"name": "read_file", "arguments": {"path": "notes.md"}}\n</tool_call>');
    case 'reasoning-only':
      return { kind: 'reply', choices: [{ reasoning: summaryText(request, counter) }] };
    case 'echo':
      return { ...say(lastUserText(request.messages)), ignoresCap: true };
    case 'continues-chat':
      return say('Sure, let us go on with the next step. Shall I start with the tests?');
    case 'missing-heading':
      return say(summaryText(request, counter).replace(SUMMARY_HEADINGS.at(-1) ?? '', ''));
    case 'larger':
      return {
        ...say(`${summaryText(request, counter)}\n${sentence('larger', request.promptTokens * 2)}`),
        ignoresCap: true,
      };
    case 'no-answer':
      return noAnswer('close');
    case 'dies':
      return say(summaryText(request, counter), { cut: { after: request.stream ? 3 : 1, how: 'close' } });
    case 'hangs':
      return noAnswer('stall');
    case 'overflow':
      return { kind: 'overflow' };
    case 'unauthorized':
      return errors.wrongKey('…');
    case 'rate-limited':
      return errors.rateLimited(7);
    case 'server-error':
      return errors.serverError();
    case 'malformed-json':
      return {
        kind: 'refusal',
        status: 200,
        body: '{"id": "chatcmpl-simulated", "choices": [{"index": 0, "message": {',
      };
    default:
      return behaviour satisfies never;
  }
}

function parameterisedPlan(
  behaviour: Extract<SummaryBehaviour, { kind: string }>,
  request: ModelRequest,
  counter: TokenCounter,
): ReplyPlan {
  switch (behaviour.kind) {
    case 'slow':
      return say(summaryText(request, counter), { headerDelayMs: behaviour.delayMs });
    case 'lossy': {
      const keeps = (fact: string) => hash32(`${behaviour.seed} ${fact}`) / 2 ** 32 >= behaviour.dropProbability;
      return say(summaryText(request, counter, keeps));
    }
    case 'plan':
      return behaviour.plan;
    default:
      return behaviour satisfies never;
  }
}

function cutShort(text: string): PlannedReply {
  return { kind: 'reply', choices: [{ text: text.slice(0, Math.ceil(text.length / 2)), stop: 'length' }] };
}
