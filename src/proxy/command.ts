import type { Message } from '../core/message.js';
import { isTypedUserMessage } from '../core/message.js';
import type { CompactionReport } from './compactor.js';
import type { Sign } from './tenant.js';

const COMPACT = /^\/compact(?:\s+([\s\S]*))?$/;
const TAG = /\n\n`spillway:([A-Za-z0-9_-]{16})`$/;

/** What `/compact [what to keep in mind]` asks for, if it is a whole user message; null otherwise. */
export function readCompactCommand(message: Message): { readonly userWish: string | null } | null {
  if (!isTypedUserMessage(message) || message.media.length > 0) return null;
  const match = COMPACT.exec(message.text.trim());
  if (match === null) return null;
  const wish = match[1]?.trim() ?? '';
  return { userWish: wish === '' ? null : wish };
}

/** The end of an answer: proof that this server wrote it as the answer to that command node (SPEC 4.9). */
function tagFor(commandId: string, sign: Sign): string {
  return sign(JSON.stringify(['command', commandId])).slice(0, 16);
}

/** Indices of the commands and answers that a history proves by their tags, whether the ledger knows them or not. */
export function taggedCommands(chain: readonly string[], messages: readonly Message[], sign: Sign): readonly number[] {
  return messages.flatMap((message, index) => {
    const command = chain[index - 1];
    if (message.role !== 'llm' || command === undefined) return [];
    const tag = TAG.exec(message.text.trimEnd())?.[1];
    return tag !== undefined && tag === tagFor(command, sign) ? [index - 1, index] : [];
  });
}

/** The text that answers `/compact`. */
export function compactAnswer(report: CompactionReport, commandId: string, sign: Sign): string {
  return `${sentence(report)}\n\n\`spillway:${tagFor(commandId, sign)}\``;
}

const WHY_NOT: Readonly<Record<string, string>> = {
  below_target: 'what could be summarised is short enough to stay as it is',
  one_turn: 'there is only one turn, and the latest turn always stays whole',
  incomplete_unit: 'a tool call in it has no result yet',
  nothing_to_summarise: 'the older messages hold no text',
};

function sentence(report: CompactionReport): string {
  const count = (tokens: number | null): string => (tokens === null ? '?' : tokens.toLocaleString('en-US'));
  switch (report.outcome) {
    case 'compacted':
      return `Compacted ${report.coveredCount} messages into a summary: about ${count(report.tokensBefore)} tokens before, ${count(report.tokensAfter)} after. Nothing was deleted; the original messages stay in the ledger.`;
    case 'no_op':
      return `Nothing to compact: ${WHY_NOT[report.reason] ?? report.reason}. The conversation is unchanged.`;
    case 'fixed_overhead':
      return 'Compaction cannot help here: system messages, tools and the reply reserve take nearly the whole window. The conversation is unchanged.';
    case 'stale':
      return 'The conversation changed while it was being summarised, so nothing was written. Send /compact again.';
    case 'rejected':
      return `The summary was not good enough to replace the history (${report.reason}), so the conversation is unchanged. Send /compact to try again.`;
    case 'failed':
      return `The summary could not be made (${report.reason}), so the conversation is unchanged. Send /compact to try again.`;
  }
}
