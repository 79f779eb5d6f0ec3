import { transcribe } from '../compaction/prompt.js';
import type { Purse } from '../compaction/purse.js';
import { materialTokens, summarise } from '../compaction/summarise.js';
import type { Passage, SummariseDeps, SummaryTask } from '../compaction/summarise.js';
import { entryTokens, estimateView } from '../estimate.js';
import type { Ruler } from '../estimate.js';
import { isTypedUserMessage } from '../message.js';
import type { Segment, Summary } from '../ports.js';
import { entryMessage, render } from '../render.js';
import type { SpineNode, SubstituteForms } from '../render.js';
import { unitsOf } from '../spine.js';
import { executionRuns } from './execution-runs.js';
import type { ExecutionRun } from './execution-runs.js';
import { maskLine } from './mask.js';
import { checkpointTask, resultTask } from './prompts.js';
import type { Checkpoint, ReducedResult, Reduction } from './reduction.js';
import { resultCandidates } from './tool-results.js';
import type { ResultCandidate } from './tool-results.js';

/** Summary calls under way at once (SPEC 7.3). */
const CALLS_AT_ONCE = 4;

/** A run below this is no larger than its checkpoint would be. */
const SMALLEST_RUN_TOKENS = 128;

/** What a request that passed the limit has to come down to, as a share of it (SPEC 7.1). */
const NEEDED_SHARE = 0.75;

/** So many more calls of the loop should fit before the next reduction: each moves the prompt cache. */
const CALLS_AHEAD = 10;

/** Share of the purse's calls that shortening results leaves: many small ones save less than one checkpoint. */
const KEPT_BACK_SHARE = 0.25;

/** What a shortened result usually is of the original; only decides how many calls are begun at once. */
const USUAL_SHARE = 0.25;

/** How results are shortened: by a model, or to one line without asking any. */
export type ResultStrategy = 'summarise' | 'mask';

export interface FitInput {
  readonly spine: readonly SpineNode[];
  readonly active: Summary | null;
  /** What this invocation substitutes already: it stays, so that the prefix sent before stays (SPEC 7.6). */
  readonly reduction: Reduction;
  readonly ruler: Ruler;
  readonly forms: SubstituteForms;
  /** By the local estimate: what must not be passed, and what to shorten results to once it was. */
  readonly limitTokens: number;
  readonly targetTokens: number;
  readonly strategy: ResultStrategy;
  readonly windowTokens: number;
  readonly summariserWindowTokens: number;
  readonly calibration: number;
}

export interface FitDeps extends SummariseDeps {
  /** What this invocation knows of a result's text: a shorter one, null if none could be made, undefined if never tried. */
  known(candidate: ResultCandidate): string | null | undefined;
  remember(candidate: ResultCandidate, text: string | null): void;
  /** Whether this run was given up before: a checkpoint of it came to nothing. */
  isGivenUp(run: Segment): boolean;
  giveUp(run: Segment): void;
}

export interface Fitted {
  readonly reduction: Reduction;
  /** Local estimate of the view under it. */
  readonly tokens: number;
  /** What was done beyond the reduction that came in. */
  readonly steps: readonly ('tool-results' | 'checkpoint')[];
}

/**
 * Makes a view fit for one request, and only for that (SPEC 7.3 to 7.5): results of completed tool groups first, oldest group first;
 * then, unless the next calls of the loop fit now, checkpoints over the older execution history; last, and only as far as the request
 * must, what no model has read yet. A text that is not strictly smaller, or could not be had, leaves what it was to stand for as it
 * is. May end above the limit; where what is protected alone lies above it, nothing is asked for.
 */
export async function fit(input: FitInput, deps: FitDeps): Promise<Fitted> {
  const before = stageOf(input, input.reduction);
  if (leastTokens(input, before, deps) > input.limitTokens) return { ...before, steps: [] };
  const needed = Math.max(input.targetTokens, Math.floor(input.limitTokens * NEEDED_SHARE));
  const roomy = Math.min(needed, input.limitTokens - CALLS_AHEAD * usualCallTokens(input));
  const aim = Math.min(input.targetTokens, roomy);
  const candidates = candidatesIn(input, before.reduction, deps);
  const older = candidates.filter((candidate) => !candidate.unread);
  const newest = candidates.filter((candidate) => candidate.unread);
  const read = await shortenTo(aim, older, before, input, { ...deps, purse: keepingBack(deps.purse) });
  const told = read.tokens > roomy ? await makeCheckpoints(aim, read, input, deps) : read;
  const unread = await shortenTo(needed, newest, told, input, deps);
  const last = unread.tokens > input.limitTokens && isSpent(deps.purse) ? maskTo(needed, unread, input, deps) : unread;
  return {
    reduction: last.reduction,
    tokens: last.tokens,
    steps: [
      ...(read.tokens < before.tokens || last.tokens < told.tokens ? (['tool-results'] as const) : []),
      ...(told.tokens < read.tokens ? (['checkpoint'] as const) : []),
    ],
  };
}

function isSpent(purse: Purse): boolean {
  return purse.callsLeft <= 0 || purse.remainingMs() === 0;
}

/**
 * Brings a stage down to `tokens`, as far as lines without a model's help can: what one purse did not reach must not end a loop that
 * another request of it could go on with. Oldest first, what no model has read yet last.
 */
function maskTo(tokens: number, from: Stage, input: FitInput, deps: FitDeps): Stage {
  const candidates = candidatesIn(input, from.reduction, deps);
  const inOrder = [...candidates.filter(({ unread }) => !unread), ...candidates.filter(({ unread }) => unread)];
  const made: ReducedResult[] = [];
  let left = from.tokens;
  for (const candidate of inOrder) {
    if (left <= tokens) break;
    const text = maskLine(candidate.call, candidate.node, candidate.text);
    const savedTokens = candidate.tokens - deps.count(text);
    if (savedTokens <= 0) continue;
    made.push({ node: candidate.node, callId: candidate.call.id, text, savedTokens });
    left -= savedTokens;
  }
  return made.length === 0
    ? from
    : stageOf(input, { ...from.reduction, results: [...from.reduction.results, ...made] });
}

function keepingBack(purse: Purse): Purse {
  const kept = Math.ceil(purse.callsLeft * KEPT_BACK_SHARE);
  return {
    take: () => purse.callsLeft > kept && purse.take(),
    get callsMade() {
      return purse.callsMade;
    },
    get callsLeft() {
      return Math.max(0, purse.callsLeft - kept);
    },
    remainingMs: () => purse.remainingMs(),
  };
}

interface Stage {
  readonly reduction: Reduction;
  readonly tokens: number;
}

function stageOf(input: FitInput, reduction: Reduction): Stage {
  const view = render(input.spine, input.active, reduction);
  return { reduction: view.reduction, tokens: estimateView(view, input.ruler) };
}

/** What a call of the loop adds to the prompt with all that came back, going by those under the latest typed user message. */
function usualCallTokens({ spine, ruler }: FitInput): number {
  const start = 1 + spine.findLastIndex((node) => !node.command && isTypedUserMessage(node.message));
  const loop = spine.slice(start).map((node) => node.message);
  const calls = unitsOf(loop).filter(({ from, to }) =>
    loop.slice(from, to).some((message) => message.calls.length > 0),
  );
  const tokens = loop.reduce((sum, _, index) => sum + ruler.tokensAt(start + index), 0);
  return calls.length === 0 ? 0 : tokens / calls.length;
}

/** What a stage would come to if everything that may be shortened in it were gone. */
function leastTokens(input: FitInput, stage: Stage, deps: FitDeps): number {
  const runs = runsIn(input, stage.reduction, deps);
  const inRuns = new Set(runs.flatMap(({ from, to }) => input.spine.slice(from, to).map(({ id }) => id)));
  const alone = candidatesIn(input, stage.reduction, deps).filter(({ node }) => !inRuns.has(node));
  const mostSaved =
    runs.reduce((sum, run) => sum + runTokens(run, input), 0) + alone.reduce((sum, { tokens }) => sum + tokens, 0);
  return stage.tokens - mostSaved;
}

function candidatesIn(input: FitInput, reduction: Reduction, deps: FitDeps): readonly ResultCandidate[] {
  const view = render(input.spine, input.active, reduction);
  return resultCandidates(input.spine, view, deps.count).filter((candidate) => deps.known(candidate) !== null);
}

function runsIn(input: FitInput, reduction: Reduction, deps: FitDeps): readonly ExecutionRun[] {
  const view = render(input.spine, input.active, reduction);
  return executionRuns(input.spine, view, input.forms).filter(
    (run) => runTokens(run, input) >= SMALLEST_RUN_TOKENS && !deps.isGivenUp(segmentOf(run, input)),
  );
}

function segmentOf({ from, to }: ExecutionRun, { spine }: FitInput): Segment {
  return { first: spine[from]?.id ?? '', last: spine[to - 1]?.id ?? '', count: to - from };
}

function runTokens(run: ExecutionRun, { ruler }: FitInput): number {
  return run.entries.reduce((sum, entry) => sum + entryTokens(entry, ruler), 0);
}

async function shortenTo(
  tokens: number,
  candidates: readonly ResultCandidate[],
  from: Stage,
  input: FitInput,
  deps: FitDeps,
): Promise<Stage> {
  let stage = from;
  const queue = [...candidates];
  while (queue.length > 0 && stage.tokens > tokens) {
    const batch = takeBatch(queue, stage.tokens - tokens, resultCapTokens(input));
    const shortened = await Promise.all(batch.map((candidate) => shorten(candidate, input, deps)));
    // A summariser that answers nothing now would not answer the rest either.
    if (shortened.every((result) => result === undefined)) break;
    const made = shortened.flatMap((result) => result ?? []);
    if (made.length > 0) {
      stage = stageOf(input, { ...stage.reduction, results: [...stage.reduction.results, ...made] });
    }
  }
  return stage;
}

/** From the queue's front: as many as should save enough together, but no more than may run at once. */
function takeBatch(queue: ResultCandidate[], excessTokens: number, capTokens: number): readonly ResultCandidate[] {
  let saved = 0;
  let taken = 0;
  while (taken < Math.min(CALLS_AT_ONCE, queue.length) && saved < excessTokens) {
    const tokens = queue[taken]?.tokens ?? 0;
    saved += tokens - Math.min(capTokens, tokens * USUAL_SHARE);
    taken++;
  }
  return queue.splice(0, taken);
}

/** Null: the result stays as it is. Undefined: for now, since no summary could be had. */
async function shorten(
  candidate: ResultCandidate,
  input: FitInput,
  deps: FitDeps,
): Promise<ReducedResult | null | undefined> {
  let text = deps.known(candidate);
  if (text === undefined) {
    text = await shorterText(candidate, input, deps);
    if (text === undefined) return undefined;
    deps.remember(candidate, text);
  }
  if (text === null) return null;
  return { node: candidate.node, callId: candidate.call.id, text, savedTokens: candidate.tokens - deps.count(text) };
}

/** A strictly smaller text; null if there is none; undefined if no summary could be had. */
async function shorterText(
  candidate: ResultCandidate,
  input: FitInput,
  deps: FitDeps,
): Promise<string | null | undefined> {
  const { call, node, text, tokens } = candidate;
  const write = async (): Promise<string | null | undefined> => {
    if (input.strategy === 'mask') return maskLine(call, node, text);
    const passages = [{ text, tokens, covered: 1 }];
    return record(resultTask(call, tokens), null, passages, resultCapTokens(input), input, deps);
  };
  const shorter = await write();
  return typeof shorter === 'string' && deps.count(shorter) >= tokens ? null : shorter;
}

async function makeCheckpoints(tokens: number, from: Stage, input: FitInput, deps: FitDeps): Promise<Stage> {
  let stage = from;
  for (const run of runsIn(input, from.reduction, deps)) {
    if (stage.tokens <= tokens) break;
    const checkpoint = await checkpointOf(run, input, deps);
    if (checkpoint !== null) stage = stageOf(input, withCheckpoint(stage.reduction, checkpoint, run));
  }
  return stage;
}

/** The reduction with a run's checkpoint in the place of all that it stands for, an earlier checkpoint included. */
function withCheckpoint(reduction: Reduction, checkpoint: Checkpoint, run: ExecutionRun): Reduction {
  const replaced = new Set(run.entries.flatMap((entry) => (entry.kind === 'checkpoint' ? [entry.checkpoint] : [])));
  return { ...reduction, checkpoints: [...reduction.checkpoints.filter((old) => !replaced.has(old)), checkpoint] };
}

/** Null: the run stays as it is. */
async function checkpointOf(run: ExecutionRun, input: FitInput, deps: FitDeps): Promise<Checkpoint | null> {
  const [first, ...rest] = run.entries;
  const earlier = first?.kind === 'checkpoint' ? first.checkpoint.content : null;
  const told = earlier === null ? run.entries : rest;
  const passages = told.map((entry, index): Passage => {
    const message = entryMessage(input.spine, entry, input.forms);
    const text = message === null ? '' : transcribe(message);
    return { text, tokens: deps.count(text), covered: index === told.length - 1 ? told.length : null };
  });
  const content = await record(checkpointTask, earlier, passages, checkpointCapTokens(input), input, deps);
  if (content === undefined) return null;
  const segment = segmentOf(run, input);
  if (content === null || input.ruler.summaryTokens(content) >= runTokens(run, input)) {
    deps.giveUp(segment);
    return null;
  }
  return { ...segment, content, tokens: input.ruler.summaryTokens(content) };
}

/** A whole record of the passages; null if it was refused, undefined if none could be had: worth another try later. */
async function record(
  task: SummaryTask,
  previous: string | null,
  passages: readonly Passage[],
  capTokens: number,
  input: FitInput,
  deps: FitDeps,
): Promise<string | null | undefined> {
  const inputTokens = materialTokens(task, input.summariserWindowTokens, capTokens, input.calibration, deps);
  const { record: made, stop } = await summarise({ task, previous, passages, capTokens, inputTokens }, deps);
  if (stop === null) return made?.content ?? null;
  return stop.outcome === 'failed' ? undefined : null;
}

function resultCapTokens(input: FitInput): number {
  return Math.max(1, Math.min(1_024, Math.floor(input.windowTokens / 8)));
}

function checkpointCapTokens(input: FitInput): number {
  return Math.max(1, Math.min(2_048, Math.floor(input.windowTokens / 8)));
}
