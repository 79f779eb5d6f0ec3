import { SYSTEM_FINGERPRINT, chatUsage, choiceLogprobs, finishReason } from './chat-completion.js';
import type { ChatRequest } from './chat-request.js';
import type { ReplyHead } from './format.js';
import type { GeneratedChoice, GeneratedReply } from './generate.js';
import { piecesOf, sseData } from './server-events.js';

/** Members of one choice in one chunk. */
interface ChoiceDelta {
  readonly delta: object;
  readonly logprobs?: unknown;
  readonly finish_reason?: string;
}

/**
 * A reply as server-sent events. With `include_usage` every chunk carries `usage: null` and one more, without choices,
 * the usage; else none carries a `usage` member.
 */
export function chatStream(head: ReplyHead, request: ChatRequest, reply: GeneratedReply): readonly string[] {
  const chunk = (choices: readonly object[], usage: unknown) =>
    sseData({
      id: head.id,
      object: 'chat.completion.chunk',
      created: head.createdAt,
      model: head.model,
      service_tier: 'default',
      system_fingerprint: SYSTEM_FINGERPRINT,
      choices,
      ...(request.includeUsage ? { usage } : {}),
    });
  const chunks = interleaved(reply.choices.map((choice) => choiceDeltas(choice, request))).map(([index, delta]) =>
    chunk([{ index, logprobs: null, finish_reason: null, ...delta }], null),
  );
  return [...chunks, ...(request.includeUsage ? [chunk([], chatUsage(reply.usage))] : []), 'data: [DONE]\n\n'];
}

function choiceDeltas(choice: GeneratedChoice, request: ChatRequest): readonly ChoiceDelta[] {
  const { text, refusal, reasoning, calls } = choice;
  const logprobs = (piece: string, refused: string) => choiceLogprobs(piece, refused, request.topLogprobs);
  const saysText = text !== '' || (calls.length === 0 && refusal === '');
  return [
    { delta: { role: 'assistant', content: saysText ? '' : null, refusal: null } },
    ...piecesOf(reasoning).map((piece) => ({ delta: { reasoning_content: piece } })),
    ...piecesOf(text).map((piece) => ({ delta: { content: piece }, logprobs: logprobs(piece, '') })),
    ...piecesOf(refusal).map((piece) => ({ delta: { refusal: piece }, logprobs: logprobs('', piece) })),
    ...callDeltas(calls, request.legacyFunctions),
    { delta: {}, finish_reason: finishReason(choice, request.legacyFunctions) },
  ];
}

function callDeltas(calls: GeneratedChoice['calls'], legacyFunctions: boolean): readonly ChoiceDelta[] {
  if (legacyFunctions) {
    return calls
      .slice(0, 1)
      .flatMap((call) => [
        { delta: { function_call: { name: call.name, arguments: '' } } },
        ...piecesOf(call.arguments).map((piece) => ({ delta: { function_call: { arguments: piece } } })),
      ]);
  }
  return calls.flatMap((call, index) => [
    { delta: { tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }] } },
    ...piecesOf(call.arguments).map((piece) => ({
      delta: { tool_calls: [{ index, function: { arguments: piece } }] },
    })),
  ]);
}

/** One of each list in turn, with the list's number, until all are used up. */
function interleaved<T>(lists: readonly (readonly T[])[]): readonly (readonly [number, T])[] {
  const rounds = Array.from({ length: Math.max(0, ...lists.map((list) => list.length)) }, (_, round) => round);
  return rounds.flatMap((round) =>
    lists.flatMap((list, index) => list.slice(round, round + 1).map((entry) => [index, entry] as const)),
  );
}
