import { isSummaryPrompt } from '../core/compaction/prompt.js';
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
import type { Overflow } from './openai-errors.js';
import { chatPromptTokens } from './prompt-tokens.js';
import type { PromptTokens } from './prompt-tokens.js';
import { say } from './reply-plan.js';
import type { PlannedReply, ReplyPlan, Script } from './reply-plan.js';
import { behaviourOf, summaryPlan } from './summariser.js';
import type { Summariser } from './summariser.js';
import { windowOf } from './windows.js';
import type { Windows } from './windows.js';

/** How a prompt that does not fit is refused. */
export interface OverflowForm {
  /**
   * `http`: an error status. In a stream instead, after a 200: `stream`, as an event before any content; `after-content`, as
   * one in the middle of a reply. A request that is not streamed gets the status.
   */
  readonly where: 'http' | 'stream' | 'after-content';
  readonly refusal: (overflow: Overflow) => Refusal;
}

export const OPENAI_OVERFLOW: OverflowForm = { where: 'http', refusal: contextLengthExceeded };

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
  readonly reply: GeneratedReply | null;
  readonly answer: Answer;
}

/** Serves `POST /chat/completions`. `serial` numbers the request; `seconds` since the epoch stamp the reply. */
export function createChatRoute(
  options: ModelOptions,
): (body: unknown, serial: number, seconds: number) => Promise<Routed> {
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
    const spoken = plan.kind === 'overflow' ? overflowPlan(plan.limitTokens, tokens, chat, options.overflow) : plan;
    if (spoken.kind === 'refusal') return refused(kind, promptTokens, spoken);
    const reply = generate(
      spoken,
      {
        choices: chat.choices,
        promptTokens,
        outputTokens: Math.min(chat.outputCap ?? Infinity, (windowTokens ?? Infinity) - promptTokens),
        callIdPrefix: `call_simulated_${serial}`,
      },
      options.counter,
    );
    const delivery = { ...options.delivery, ...spoken.delivery };
    return { kind, promptTokens, reply, answer: { ...spokenAnswer(spoken, head, chat, reply), delivery } };
  };
}

function refused(kind: Routed['kind'], promptTokens: number | null, refusal: Refusal): Routed {
  return { kind, promptTokens, reply: null, answer: refusalAnswer(refusal) };
}

/** In a stream an overflow may be a reply that fails; elsewhere it is a plain refusal. */
function overflowPlan(
  limitTokens: number | undefined,
  tokens: PromptTokens,
  chat: ChatRequest,
  form: OverflowForm,
): PlannedReply | Refusal {
  const refusal = form.refusal({
    limitTokens: limitTokens ?? tokens.messages + tokens.functions - 1,
    messageTokens: tokens.messages,
    functionTokens: tokens.functions,
    outputCap: chat.outputCap,
  });
  if (form.where === 'http' || !chat.stream) return refusal;
  const afterPieces = form.where === 'stream' ? 1 : 3;
  return {
    ...say('This reply breaks off: the window of the model is full.'),
    ignoresCap: true,
    failure: { afterPieces, refusal },
  };
}

function spokenAnswer(plan: PlannedReply, head: CompletionHead, chat: ChatRequest, reply: GeneratedReply): Answer {
  if (!chat.stream) {
    return plan.failure === undefined
      ? jsonAnswer(200, chatCompletion(head, chat, reply))
      : refusalAnswer(plan.failure.refusal);
  }
  const events = chatStream(head, chat, reply);
  if (plan.failure === undefined) return eventsAnswer(events);
  return eventsAnswer([...events.slice(0, plan.failure.afterPieces), failureEvent(plan.failure.refusal)]);
}

function failureEvent({ body }: Refusal): string {
  return typeof body === 'string' ? body : sseData(body);
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
