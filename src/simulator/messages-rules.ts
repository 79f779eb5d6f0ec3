import type { Refusal } from './answer.js';
import { anthropicError } from './anthropic-errors.js';
import { isRecord } from './json-value.js';
import type { Block, MessagesMessage, MessagesRequest } from './messages-request.js';
import type { Seal } from './seal.js';
import { brokenThinking } from './thinking-rules.js';

const MOST_CACHE_MARKS = 4;

/** What the API refuses of a request that is well typed; null if it is sound. */
export function brokenMessagesRule(request: MessagesRequest, seal: Seal): Refusal | null {
  const { messages, system } = request;
  return (
    (messages[0]?.role === 'user' ? null : anthropicError(400, 'messages: first message must use the "user" role')) ??
    brokenText(system, 'system') ??
    brokenContent(messages) ??
    brokenCacheMarks(request) ??
    brokenPairing(messages) ??
    brokenThinking(request, seal)
  );
}

function brokenContent(messages: readonly MessagesMessage[]): Refusal | null {
  for (const [index, { role, content }] of messages.entries()) {
    const isPrefill = role === 'assistant' && index === messages.length - 1;
    if (content.length === 0 && !isPrefill) {
      return anthropicError(
        400,
        role === 'user'
          ? `messages.${index}: user messages must have non-empty content`
          : `messages.${index}: all messages must have non-empty content except for the optional final assistant message`,
      );
    }
    const broken = brokenText(content, 'messages');
    if (broken !== null) return broken;
  }
  const last = messages.at(-1);
  const end = last?.role === 'assistant' ? last.content.at(-1) : undefined;
  return end !== undefined && typeof end['text'] === 'string' && /\s$/.test(end['text'])
    ? anthropicError(400, 'messages: final assistant content cannot end with trailing whitespace')
    : null;
}

function brokenText(blocks: readonly Block[], where: string): Refusal | null {
  for (const { type, text } of blocks) {
    if (type !== 'text') continue;
    if (text === '') return anthropicError(400, `${where}: text content blocks must be non-empty`);
    if (typeof text === 'string' && text.trim() === '') {
      return anthropicError(400, `${where}: text content blocks must contain non-whitespace text`);
    }
  }
  return null;
}

function brokenCacheMarks({ tools, system, messages }: MessagesRequest): Refusal | null {
  const inMessages = messages.flatMap(({ content }) => content.flatMap((block) => [block, ...innerBlocks(block)]));
  const marked = [...tools, ...system, ...inMessages].filter(isMarked);
  if (marked.length <= MOST_CACHE_MARKS) return null;
  return anthropicError(
    400,
    `A maximum of ${MOST_CACHE_MARKS} blocks with cache_control may be provided. Found ${marked.length}.`,
  );
}

export function isMarked(block: Block): boolean {
  return block['cache_control'] != null;
}

function innerBlocks({ content }: Block): readonly Block[] {
  return Array.isArray(content) ? content.filter(isRecord) : [];
}

/** Calls are answered by the blocks that begin the next message, each once, and nothing else is answered. */
function brokenPairing(messages: readonly MessagesMessage[]): Refusal | null {
  const seen = new Set<unknown>();
  let open: readonly string[] = [];
  for (const [index, { role, content }] of messages.entries()) {
    if (role === 'system') continue;
    const results = content.filter(({ type }) => type === 'tool_result').map(({ tool_use_id: id }) => String(id));
    const leading = content.findIndex(({ type }) => type !== 'tool_result');
    const first = new Set(results.slice(0, leading < 0 ? undefined : leading));
    const missing = open.filter((id) => !first.has(id));
    if (missing.length > 0) return unanswered(index - 1, missing);
    const stray = results.find((id) => !open.includes(id));
    if (stray !== undefined) return unexpected(index, content, stray);
    const twice = results.find((id, place) => results.indexOf(id) !== place);
    if (twice !== undefined) {
      return anthropicError(
        400,
        `messages.${index}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${twice}`,
      );
    }
    open = content.filter(({ type }) => type === 'tool_use').map(({ id }) => String(id));
    const known = open.find((id, place) => seen.has(id) || open.indexOf(id) !== place);
    if (known !== undefined) return anthropicError(400, `messages.${index}: \`tool_use\` ids must be unique`);
    for (const id of open) seen.add(id);
  }
  return open.length > 0 ? unanswered(messages.length - 1, open) : null;
}

function unanswered(index: number, ids: readonly string[]): Refusal {
  return anthropicError(
    400,
    `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}. ` +
      'Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
  );
}

function unexpected(index: number, content: readonly Block[], id: string): Refusal {
  const place = content.findIndex((block) => block['tool_use_id'] === id);
  return anthropicError(
    400,
    `messages.${index}.content.${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each ` +
      '`tool_result` block must have a corresponding `tool_use` block in the previous message.',
  );
}
