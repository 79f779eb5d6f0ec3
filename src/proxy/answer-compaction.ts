import { reserveTokens, roomForHistory, summaryCapTokens } from '../core/budget.js';
import type { Limits } from '../core/budget.js';
import { conversationTask, transcribe } from '../core/compaction/prompt.js';
import { materialTokens, summarise } from '../core/compaction/summarise.js';
import { SpillwayError } from '../core/errors.js';
import { estimateView } from '../core/estimate.js';
import type { Clock, Summary, SummaryRequest, UniqueId } from '../core/ports.js';
import { render, tailIndices } from '../core/render.js';
import { NO_REDUCTION } from '../core/request/reduction.js';
import type { CompactionForm } from '../dialects/dialect.js';
import { withinTime } from '../upstream/within-time.js';
import { spineOfTurn } from './compact-spine.js';
import type { CompactSpine } from './compact-spine.js';
import { sealEnvelope } from './compaction-envelope.js';
import type { CompactionReport } from './compactor.js';
import { signsOfLife } from './keep-alive.js';
import type { PatientSink } from './keep-alive.js';
import type { RequestLog } from './request-log.js';
import { infoHeaders } from './response-info.js';
import type { Sign } from './tenant.js';
import type { Turn } from './turn.js';

/** What is taken for a window that nobody knows: the whole history goes into one summary call, and an overflow halves it (SPEC 5.6). */
const ASSUMED_WINDOW = 32_768;

export interface AnswerCompactionDeps {
  readonly compactSpine: CompactSpine;
  readonly sign: Sign;
  readonly uniqueId: UniqueId;
  readonly clock: Clock;
  now(): number;
}

/**
 * Compacts because the client asked the provider for that, and answers in the provider's stead: one item whose content is an envelope
 * around a summary of everything in the request. `alone`: asked for by a path of its own, and not at the end of a request. Rejects with
 * `compaction_failed`.
 */
export async function answerCompaction(
  turn: Turn,
  form: CompactionForm,
  alone: boolean,
  sink: PatientSink,
  log: RequestLog,
  deps: AnswerCompactionDeps,
): Promise<void> {
  const made = await sink.waitFor(summaryOfAll(turn, deps), alone ? null : signsOfLife(turn, deps));
  const { tenant, id: conversation } = turn.conversation;
  const envelope = { conversation, pinned: pinnedIn(turn, alone), content: made.content };
  const stream = turn.read.stream && !alone;
  const own = { model: turn.read.model, id: deps.uniqueId(), createdAt: deps.clock() };
  const body = form.answer(sealEnvelope(envelope, tenant, deps.sign), { ...own, stream, alone });

  const head = turn.spine.at(-1)?.id ?? null;
  const figure = (tokens: number) => ({ tokens, kind: 'estimate' }) as const;
  sink.start(200, [
    ['content-type', stream ? 'text/event-stream; charset=utf-8' : 'application/json'],
    ...infoHeaders({
      conversation,
      head,
      call: null,
      action: 'manual',
      prepared: { before: figure(made.tokensBefore), after: figure(made.tokensAfter), replaced: 0 },
      overflow: null,
      limitTokens: null,
      overheadMs: deps.now() - turn.request.arrivedAt,
      storeUnavailable: false,
    }),
  ]);
  await sink.write(new TextEncoder().encode(body));
  await sink.end();
  const { outcome, reason } = made.report;
  log.add({ status: 200, head, action: 'manual', compaction: outcome, compactionReason: reason, outcome: 'complete' });
}

interface SummaryOfAll {
  readonly content: string;
  /** The durable compaction of the finished turns. */
  readonly report: CompactionReport;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/**
 * A compaction by hand first, so that the ledger has a summary of the finished turns (SPEC 5). What that keeps verbatim the client is
 * about to drop, the latest turn and its tool loop too: a second record carries the first on over all of it. That one covers no segment
 * of its own, and only the client's envelope holds it.
 */
async function summaryOfAll(turn: Turn, deps: AnswerCompactionDeps): Promise<SummaryOfAll> {
  const ruler = await turn.measure.ruler();
  const { active } = turn.opened;
  const tokensBefore = estimateView(render(turn.spine, active), ruler);
  const limits = turn.limits ?? roomyLimits(turn, tokensBefore);
  const report = await deps.compactSpine.run(spineOfTurn(turn), {
    active,
    reduction: NO_REDUCTION,
    trigger: 'manual',
    waits: true,
    aim: 'window',
    limits,
    userWish: null,
  });
  const content = await carriedOn(turn, report.summary ?? active, limits, deps);
  return { content, report, tokensBefore, tokensAfter: ruler.fixedTokens + ruler.summaryTokens(content) };
}

/** The record `before` with everything that it leaves verbatim. */
async function carriedOn(
  turn: Turn,
  before: Summary | null,
  limits: Limits,
  deps: AnswerCompactionDeps,
): Promise<string> {
  const { purse } = turn;
  const [ruler, counter] = await Promise.all([turn.measure.ruler(), turn.measure.counter()]);
  const { ask, windowTokens } = await deps.compactSpine.summarizer(spineOfTurn(turn), limits);
  const texts = tailIndices(render(turn.spine, before))
    .flatMap((index) => turn.spine[index]?.message ?? [])
    .flatMap((message) => (message.role === 'system' ? [] : [transcribe(message)]));
  const count = (text: string): number => counter.count(text);
  const room = Math.max(limits.windowTokens / 4, roomForHistory(limits, ruler.fixedTokens, 'window'));
  const capTokens = summaryCapTokens(limits.windowTokens, room);
  const task = conversationTask(null);
  const tools = {
    ask: (request: SummaryRequest) => withinTime(purse.remainingMs(), turn.closed, (signal) => ask(request, signal)),
    purse,
    uniqueId: deps.uniqueId,
    count,
  };
  const { record, stop } = await summarise(
    {
      task,
      previous: before?.content ?? null,
      passages: texts.map((text, index) => ({
        text,
        tokens: count(text),
        covered: index === texts.length - 1 ? texts.length : null,
      })),
      capTokens,
      inputTokens: materialTokens(task, windowTokens, capTokens, limits.calibration, tools),
    },
    tools,
  );
  const content = record?.content ?? (texts.length === 0 ? before?.content : undefined);
  if (content !== undefined) return content;
  const reason = `the history could not be summarised (${stop?.reason ?? 'nothing_to_summarise'}); it is unchanged, and the request may be sent again`;
  throw new SpillwayError('compaction_failed', reason);
}

function roomyLimits(turn: Turn, tokens: number): Limits {
  const windowTokens = Math.max(ASSUMED_WINDOW, 2 * tokens);
  return {
    windowTokens,
    reserveTokens: reserveTokens(windowTokens, turn.read.outputCap, turn.belief.capability),
    calibration: 1,
  };
}

/**
 * Instructions that nobody else keeps, each once (SPEC 4.8): those in the history, and those before it where the answer is all that the
 * client goes on with.
 */
function pinnedIn(turn: Turn, alone: boolean): readonly unknown[] {
  const inHistory = turn.spine.flatMap(({ command, message }) => (command ? [] : [message]));
  const messages = [...(alone ? turn.read.instructions : []), ...inHistory];
  const pinned = messages.filter((message) => message.role === 'system');
  const first = new Map(pinned.toReversed().map((message) => [message.text, message]));
  return pinned.filter((message) => first.get(message.text) === message).map((message) => message.source);
}
