import { isFixedOverhead, keepTokens, roomForHistory, summaryCapTokens } from '../budget.js';
import type { Limits } from '../budget.js';
import { newFaults } from '../check.js';
import { entryTokens, estimateView } from '../estimate.js';
import type { Ruler } from '../estimate.js';
import type { Message } from '../message.js';
import type { Summary } from '../ports.js';
import { render, tailIndices, viewMessages } from '../render.js';
import type { SpineNode, SubstituteForms, View } from '../render.js';
import type { Reduction } from '../request/reduction.js';
import { turnsOf } from '../spine.js';
import { segmentOn } from '../summary.js';
import { conversationTask, summaryContent, transcribe } from './prompt.js';
import { selectCut } from './select.js';
import { materialTokens, summarise } from './summarise.js';
import type { Passage, SummariseDeps } from './summarise.js';
import { savesEnough } from './validate.js';

export interface CompactionInput {
  readonly spine: readonly SpineNode[];
  readonly active: Summary | null;
  /** Substitutions of the frozen view: they count in it and are never what is summarised (SPEC 5.2, 5.5). */
  readonly reduction: Reduction;
  readonly ruler: Ruler;
  readonly limits: Limits;
  /** What the result should fit: below the automatic trigger, or anything the window holds (SPEC 5.4). */
  readonly aim: { readonly trigger: number } | 'window';
  /** The operator's kept-token setting, or null (SPEC 5.3). */
  readonly keepTokensSetting: number | null;
  readonly minimumGain: number;
  readonly userWish: string | null;
  /** Window of the model that summarises; its own budget (SPEC 5.6). */
  readonly summariserWindowTokens: number;
  /** How the dialect sends a summary, for the final check. */
  readonly forms: SubstituteForms;
}

/** A summary that may be committed, or why there is none (SPEC 5.10). Token counts are local estimates of the view. */
export type CompactionResult =
  | {
      readonly kind: 'candidate';
      readonly content: string;
      readonly coversIds: readonly string[];
      readonly tokensBefore: number;
      readonly tokensAfter: number;
    }
  | {
      readonly kind: 'no_op' | 'rejected' | 'failed' | 'fixed_overhead';
      readonly reason: string;
      readonly tokensBefore: number;
    };

/** Steps 5.3 to 5.7: select, summarise, validate. Writes nothing; the caller commits. */
export async function compact(input: CompactionInput, deps: SummariseDeps): Promise<CompactionResult> {
  const { spine, active, ruler, limits } = input;
  const view = render(spine, active, input.reduction);
  const tokensBefore = estimateView(view, ruler);
  const end = (kind: 'no_op' | 'rejected' | 'failed' | 'fixed_overhead', reason: string): CompactionResult => ({
    kind,
    reason,
    tokensBefore,
  });

  const room = roomForHistory(limits, fixedTokens(spine, view, ruler), input.aim);
  if (isFixedOverhead(room, limits)) return end('fixed_overhead', 'fixed_overhead');

  // A checkpoint stands for messages that have to be read here; a shortened result only counts for less.
  const whole = render(spine, active, { ...input.reduction, checkpoints: [] });
  const history = historyOf(spine, whole, ruler);
  const selection = selectCut(history, keepTokens(limits.windowTokens, room, input.keepTokensSetting));
  if (selection.kind === 'no_op') return end('no_op', selection.reason);

  const passages = passagesOf(history.slice(0, selection.cut), deps.count);
  if (passages.every((passage) => passage.text.trim() === '')) return end('no_op', 'nothing_to_summarise');

  const capTokens = summaryCapTokens(limits.windowTokens, room);
  const task = conversationTask(input.userWish);
  const { record, stop } = await summarise(
    {
      task,
      previous: view.summary?.content ?? null,
      passages,
      capTokens,
      inputTokens: materialTokens(task, input.summariserWindowTokens, capTokens, limits.calibration, deps),
    },
    deps,
  );
  if (record === null) return stop === null ? end('failed', 'no_record') : end(stop.outcome, stop.reason);

  const firstKept = history[record.covered]?.index ?? spine.length;
  const from =
    active === null
      ? 0
      : (segmentOn(
          spine.map((node) => node.id),
          active,
        )?.from ?? 0);
  const coversIds = spine.slice(from, firstKept).map((node) => node.id);
  const candidate = candidateSummary(record.content, coversIds);
  const candidateView = render(spine, candidate, input.reduction);
  const tokensAfter = estimateView(candidateView, ruler);
  const summaryTokens = ruler.summaryTokens(record.content);
  if (!savesEnough(tokensBefore - tokensAfter + summaryTokens, summaryTokens, input.minimumGain))
    return end('rejected', 'not_smaller');

  const faults = newFaults(viewMessages(spine, view, input.forms), viewMessages(spine, candidateView, input.forms));
  if (faults.length > 0) return end('rejected', 'invalid_view');
  return { kind: 'candidate', content: record.content, coversIds, tokensBefore, tokensAfter };
}

/**
 * What no compaction removes: the request's fixed part, the instructions on the spine, which stay when they are covered
 * (SPEC 4.8), and the frame of a summary.
 */
function fixedTokens(spine: readonly SpineNode[], view: View, ruler: Ruler): number {
  const instructions = [...view.pinned, ...tailIndices(view)].filter(
    (index) => spine[index]?.message.role === 'system',
  );
  const frame = ruler.summaryTokens(summaryContent(''));
  return instructions.reduce((sum, index) => sum + ruler.tokensAt(index), ruler.fixedTokens + frame);
}

/** What could be covered: the view's verbatim part, with each message's place on the spine. Instructions are fixed. */
function historyOf(spine: readonly SpineNode[], view: View, ruler: Ruler) {
  return view.tail.flatMap((entry) => {
    const message = entry.kind === 'checkpoint' ? undefined : spine[entry.index]?.message;
    if (entry.kind === 'checkpoint' || message === undefined) return [];
    return [{ index: entry.index, message, tokens: message.role === 'system' ? 0 : entryTokens(entry, ruler) }];
  });
}

/** One passage a message; the last of each turn says how much is covered with it. Pinned messages are not retold. */
function passagesOf(
  history: readonly { readonly message: Message }[],
  count: (text: string) => number,
): readonly Passage[] {
  const messages = history.map((item) => item.message);
  const turnEnds = new Set(turnsOf(messages).map((turn) => turn.to));
  return messages.map((message, index) => {
    const text = message.role === 'system' ? '' : transcribe(message);
    return { text, tokens: count(text), covered: turnEnds.has(index + 1) ? index + 1 : null };
  });
}

function candidateSummary(content: string, coversIds: readonly string[]): Summary {
  return {
    id: 'candidate',
    first: coversIds[0] ?? '',
    last: coversIds.at(-1) ?? '',
    count: coversIds.length,
    content,
    tokens: null,
    tokenizer: null,
  };
}
