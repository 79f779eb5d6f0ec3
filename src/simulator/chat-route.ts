import { isSummaryPrompt } from '../core/compaction/headings.js';
import type { TokenCounter } from '../core/ports.js';
import type { Answer, Delivery, Refusal } from './answer.js';
import { eventsAnswer, jsonAnswer, refusalAnswer } from './answer.js';
import { chatCompletion, simulatedName } from './chat-completion.js';
import type { CompletionHead } from './chat-completion.js';
import { readChatRequest } from './chat-request.js';
import type { ChatRequest } from './chat-request.js';
import { brokenChatRule } from './chat-rules.js';
import { chatStream, sseData } from './chat-stream.js';
import { defaultReply } from './default-script.js';
import { generate } from './generate.js';
import type { GeneratedReply } from './generate.js';
import type { ModelRequest } from './model-request.js';
import { contextLengthExceeded } from './openai-errors.js';
import { createPrefixCache } from './prefix-cache.js';
import type { PrefixHit } from './prefix-cache.js';
import { chatPromptTokens } from './prompt-tokens.js';
import type { PromptTokens } from './prompt-tokens.js';
import { say } from './reply-plan.js';
import type {
  Failure,
  OverflowForm,
  PlannedOverflow,
  PlannedReply,
  RefusalForm,
  ReplyPlan,
  Script,
} from './reply-plan.js';
import { behaviourOf, summaryPlan } from './summariser.js';
import type { Summariser } from './summariser.js';
import { windowOf } from './windows.js';
import type { Windows } from './windows.js';

export const OPENAI_OVERFLOW: RefusalForm = { where: 'http', refusal: contextLengthExceeded };

export interface ModelOptions {
  readonly counter: TokenCounter;
  readonly windows: Windows;
  readonly overflow: OverflowForm;
  readonly script: Script;
  readonly summariser: Summariser;
  readonly rolesMustAlternate: boolean;
  /** Words of a default reply. */
  readonly replyWords: number;
  /** For replies whose plan says nothing of it. */
  readonly delivery: Delivery;
}

/** What a route made of a request. */
export interface Routed {
  readonly kind: 'chat' | 'summary' | 'models' | 'embeddings' | 'other';
  readonly promptTokens: number | null;
  readonly prefix: PrefixHit | null;
  readonly reply: GeneratedReply | null;
  readonly answer: Answer;
}

/** Serves `POST /chat/completions`. `serial` numbers the request; `seconds` since the epoch stamp the reply. */
export function createChatRoute(
  options: ModelOptions,
): (body: unknown, serial: number, seconds: number) => Promise<Routed> {
  const cache = createPrefixCache(options.counter);
  let summaryCalls = 0;

  const planFor = async (request: ModelRequest, isSummary: boolean): Promise<ReplyPlan> => {
    if (!isSummary) return (await options.script(request)) ?? defaultReply(request, options.replyWords);
    const call = summaryCalls;
    summaryCalls += 1;
    return summaryPlan(await behaviourOf(options.summariser, request, call), request, options.counter);
  };

  return async (body, serial, seconds) => {
    const chat = readChatRequest(body);
    if ('kind' in chat) return refused('chat', null, chat);
    const broken = brokenChatRule(chat, options);
    if (broken !== null) return refused('chat', null, broken);

    const tokens = chatPromptTokens(chat, options.counter);
    const promptTokens = tokens.messages + tokens.functions;
    const request = modelRequest(chat, promptTokens);
    const isSummary = isSummaryPrompt(request.systemText);
    const kind = isSummary ? 'summary' : 'chat';
    const windowTokens = windowOf(options.windows, chat.model);
    const exceeds = windowTokens !== null && promptTokens + (chat.outputCap ?? 0) > windowTokens;
    const plan: ReplyPlan = exceeds
      ? { kind: 'overflow', limitTokens: windowTokens }
      : await planFor(request, isSummary);

    const head: CompletionHead = {
      id: `chatcmpl-simulated-${serial}`,
      createdAt: seconds,
      model: simulatedName(chat.model),
    };
    const spoken = plan.kind === 'overflow' ? overflowReply(plan, tokens, request, options.overflow) : plan;
    if (spoken.kind === 'refusal') return refused(kind, promptTokens, spoken);
    const prefix = isSummary ? null : cache.meet(chat.model, tokens.parts);
    const reply = generate(
      spoken,
      {
        choices: chat.choices,
        promptTokens,
        cachedTokens: prefix?.cachedTokens ?? 0,
        outputTokens: Math.min(chat.outputCap ?? Infinity, (windowTokens ?? Infinity) - promptTokens),
        callIdPrefix: `call_simulated_${serial}`,
      },
      options.counter,
    );
    const delivery = { ...options.delivery, ...spoken.delivery };
    return { kind, promptTokens, prefix, reply, answer: { ...spokenAnswer(spoken, head, chat, reply), delivery } };
  };
}

function refused(kind: Routed['kind'], promptTokens: number | null, refusal: Refusal): Routed {
  return { kind, promptTokens, prefix: null, reply: null, answer: refusalAnswer(refusal) };
}

/** What an overflow comes to: in a stream it may be a reply that fails, or no failure at all; elsewhere a plain refusal. */
function overflowReply(
  plan: PlannedOverflow,
  tokens: PromptTokens,
  request: ModelRequest,
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
    failure: { afterPieces: PIECES_BEFORE[form.where], refusal, events: form.events?.(overflow, request) },
  };
}

const PIECES_BEFORE = { first: 0, stream: 1, 'after-content': 3 } as const;

function spokenAnswer(plan: PlannedReply, head: CompletionHead, chat: ChatRequest, reply: GeneratedReply): Answer {
  if (!chat.stream) {
    return plan.failure === undefined
      ? jsonAnswer(200, chatCompletion(head, chat, reply))
      : refusalAnswer(plan.failure.refusal);
  }
  const events = chatStream(head, chat, reply);
  if (plan.failure === undefined) return eventsAnswer(events);
  return eventsAnswer([...events.slice(0, plan.failure.afterPieces), failureEvents(plan.failure)]);
}

function failureEvents({ events, refusal: { body } }: Failure): string {
  return events ?? (typeof body === 'string' ? body : sseData(body));
}

function modelRequest(chat: ChatRequest, promptTokens: number): ModelRequest {
  const { model, stream, messages, toolNames, choices, outputCap, body } = chat;
  const system = messages.filter(({ role }) => role === 'system' || role === 'developer').map(({ text }) => text);
  return {
    model,
    stream,
    messages,
    systemText: system.join('\n\n'),
    toolNames,
    choices,
    outputCap,
    promptTokens,
    body,
  };
}
