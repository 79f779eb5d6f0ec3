import type { Answer, Delivery, Refusal } from './answer.js';
import { eventsAnswer, jsonAnswer, refusalAnswer } from './answer.js';
import type { Asked, Format, FormatTraits, Spoken } from './format.js';
import { generate } from './generate.js';
import type { GenerationLimits } from './generate.js';
import { callKind, createPlanner } from './planner.js';
import type { PlannerOptions } from './planner.js';
import type { PrefixHit } from './prefix-cache.js';
import { say } from './reply-plan.js';
import type { OverflowForm, PlannedOverflow, PlannedReply, ReplyPlan } from './reply-plan.js';
import { refused } from './routed.js';
import type { Routed } from './routed.js';
import { simulatedName } from './simulated-name.js';
import { windowOf } from './windows.js';
import type { Windows } from './windows.js';

export interface ModelOptions extends PlannerOptions {
  readonly windows: Windows;
  /** Null: the own one of each format. */
  readonly overflow: OverflowForm | null;
  /** For replies whose plan says nothing of it. */
  readonly delivery: Delivery;
}

/** Which request is served. */
export interface RequestStamp {
  /** Unlike any other request's. */
  readonly serial: string;
  readonly requestId: string;
  /** Since the epoch. */
  readonly seconds: number;
}

export type ConversationRoute = (body: unknown, stamp: RequestStamp) => Promise<Routed>;

/** What all formats share: windows, scripts, summaries, the prompt cache and the way replies are sent. */
export function createConversations(options: ModelOptions): <A extends Asked>(format: Format<A>) => ConversationRoute {
  const plan = createPlanner(options);
  return (format) => {
    const cache = format.createCache(options.counter);
    return async (body, stamp) => {
      const asked = format.read(body);
      if ('kind' in asked) return refused(format.kind, format.refusal(asked, stamp.requestId));
      const { request, tokens } = asked;
      const { promptTokens, reads } = request;
      const kind = callKind(asked);
      const windowTokens = windowOf(options.windows, request.model);
      const wanted = promptTokens + (format.refusesCap ? (request.outputCap ?? 0) : 0);
      const planned: ReplyPlan =
        windowTokens !== null && wanted > windowTokens
          ? { kind: 'overflow', limitTokens: windowTokens }
          : await plan(asked, format.errors);
      const usual = options.overflow ?? format.overflow;
      const spoken = planned.kind === 'overflow' ? overflowReply(planned, asked, format, usual) : planned;
      if (spoken.kind === 'refusal') {
        const answer = refusalAnswer(format.refusal(spoken, stamp.requestId));
        return { kind, promptTokens, reads, prefix: null, reply: null, answer };
      }
      const prefix = kind === 'summary' ? null : cache.meet(request.model, tokens.parts);
      const limits = generationLimits(asked, format, stamp, windowTokens, prefix);
      const reply = generate(spoken, limits, options.counter);
      const { serial, seconds: createdAt } = stamp;
      const head = { id: format.ids.reply + serial, serial, createdAt, model: simulatedName(request.model) };
      const answer = spokenAnswer(spoken, { head, asked, reply }, format, stamp.requestId);
      const delivery = { ...options.delivery, ...spoken.delivery };
      return { kind, promptTokens, reads, prefix, reply, answer: { ...answer, delivery } };
    };
  };
}

function generationLimits(
  { request }: Asked,
  format: FormatTraits,
  { serial }: RequestStamp,
  windowTokens: number | null,
  prefix: PrefixHit | null,
): GenerationLimits {
  const { choices, promptTokens } = request;
  const cap = request.outputCap ?? Infinity;
  const room = (windowTokens ?? Infinity) - promptTokens;
  return {
    choices,
    promptTokens,
    cachedTokens: prefix?.cachedTokens ?? 0,
    writtenTokens: prefix?.writtenTokens ?? 0,
    outputTokens: Math.min(cap, room),
    stopAtLimit: room < cap ? format.stopAtWindow : 'length',
    callIdPrefix: format.ids.call + serial,
  };
}

/** What an overflow comes to: in a stream it may be a reply that fails, or no failure at all; elsewhere a plain refusal. */
function overflowReply(
  plan: PlannedOverflow,
  { request, tokens }: Asked,
  { piecesBefore }: FormatTraits,
  usual: OverflowForm,
): PlannedReply | Refusal {
  const form = plan.form ?? usual;
  const overflow = {
    limitTokens: plan.limitTokens ?? request.promptTokens - 1,
    messageTokens: tokens.messages,
    functionTokens: tokens.functions,
    outputCap: request.outputCap,
  };
  if (form.where === 'reply') return form.reply(overflow);
  const refusal = form.refusal(overflow, request);
  if (form.where === 'http' || !request.stream) return refusal;
  return {
    ...say('This reply breaks off: the window of the model is full.'),
    ignoresCap: true,
    failure: { afterPieces: piecesBefore[form.where], refusal, events: form.events?.(overflow, request) },
  };
}

function spokenAnswer<A extends Asked>(
  { failure }: PlannedReply,
  spoken: Spoken<A>,
  format: Format<A>,
  requestId: string,
): Answer {
  const { stream } = spoken.asked.request;
  if (failure === undefined) {
    format.keep(spoken);
    return stream ? eventsAnswer(format.stream(spoken)) : jsonAnswer(200, format.whole(spoken));
  }
  const refusal = format.refusal(failure.refusal, requestId);
  if (!stream) return refusalAnswer(refusal);
  const said = format.stream(spoken).slice(0, failure.afterPieces);
  const { events = typeof refusal.body === 'string' ? refusal.body : format.failure(spoken, refusal, said.length) } =
    failure;
  return eventsAnswer([...said, events]);
}
