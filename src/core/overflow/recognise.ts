import { sizeCode } from './codes.js';
import { decodeError } from './decode.js';
import { isPlayedBack, withoutQuotedEchoes } from './echo.js';
import { TEXT_FAMILIES, type TextFamily } from './families.js';
import { readCounts, withFields } from './limits.js';
import { saysNothing } from './signal-free.js';
import { NO_COUNTS, type StatedCounts, type Verdict } from './verdict.js';
import { findVeto } from './vetoes.js';

export interface OverflowEvidence {
  /** The HTTP status; 200 or null for an error that came inside a stream. */
  readonly status: number | null;
  /** The error as it came: a body, or the data of an event. Empty if there was none. */
  readonly body: string;
  readonly upstreamHost: string | null;
  /**
   * Whether this very text stands somewhere in the client's own messages, calls, results or file names. Asked at most
   * MAX_CLIENT_LOOKUPS times.
   */
  readonly clientWrote: (text: string) => boolean;
  /** Calibrated estimate of the rejected request, in tokens; null if it was not counted. */
  readonly estimatedTokens: number | null;
  /** The model's window as believed, in tokens; null if unknown. */
  readonly windowTokens: number | null;
}

export const MAX_CLIENT_LOOKUPS = 256;
/** How near the window an estimate must be for an error without a reason to be taken for an overflow. */
const NEARLY_FULL = 0.9;
/** Characters around the sentence in which its numbers are looked for. */
const BEFORE = 320;
const AFTER = 640;
/** Where words say little, a smaller number is a position or the length of a list. */
const LEAST_LIMIT = 256;
/** A text counted in characters up to this many is a name or a label, not a prompt. */
const SHORT_TEXT_CHARACTERS = 10_000;

/**
 * Tells an overflow from its look-alikes (SPEC 6.1): codes first, then vetoes, then text, then the bare status. Takes
 * time linear in the body's length, and what the client wrote is no evidence. `limitTrust` says whether a stated limit
 * may be remembered.
 */
export function recogniseOverflow(evidence: OverflowEvidence): Verdict {
  const clientWrote = bounded(evidence.clientWrote);
  const error = decodeError(evidence.body, clientWrote);
  const statuses = evidence.status === null ? error.statuses : [evidence.status, ...error.statuses];
  const texts = error.texts.map((text) => onOneLine(withoutQuotedEchoes(text, clientWrote)));

  const code = sizeCode(error.codes, evidence.upstreamHost);
  if (code !== 'context') {
    const veto = findVeto(statuses, error.codes, texts);
    if (veto !== null) return { kind: 'none', reason: `veto-${veto}` };
  }

  const sentence = findSentence(texts, clientWrote, evidence.estimatedTokens);
  const counts = withFields(sentence?.counts ?? NO_COUNTS, error.limit, error.used, evidence.estimatedTokens);
  if (code === 'context') {
    const kind = sentence === null || sentence.kind === 'bytes' ? 'context' : sentence.kind;
    return {
      ...counts,
      kind: kindByCounts(counts) ?? kind,
      reason: sentence === null ? 'code' : `code+${sentence.name}`,
    };
  }
  if (sentence !== null) {
    if (sentence.kind === 'bytes') return { ...NO_COUNTS, kind: 'bytes', reason: sentence.name };
    return { ...counts, kind: kindByCounts(counts) ?? sentence.kind, reason: sentence.name };
  }
  if (code === 'bytes') return { ...NO_COUNTS, kind: 'bytes', reason: 'bytes-code' };
  return fromStatus(evidence, [...error.codes, ...texts].every(saysNothing));
}

interface Sentence {
  readonly name: string;
  readonly kind: TextFamily['kind'];
  readonly counts: StatedCounts;
}

/** The first sentence of a family that the provider itself said; one that states a limit goes before others. */
function findSentence(
  texts: readonly string[],
  clientWrote: (text: string) => boolean,
  estimate: number | null,
): Sentence | null {
  const sentences = texts.flatMap((text) => readSentence(text, clientWrote, estimate) ?? []);
  return sentences.find(({ counts }) => counts.limit !== null) ?? sentences[0] ?? null;
}

function readSentence(text: string, clientWrote: (text: string) => boolean, estimate: number | null): Sentence | null {
  const plain = withoutOutputLimits(text);
  for (const family of TEXT_FAMILIES) {
    const match = family.pattern.exec(plain);
    if (match === null || family.besides?.test(plain) === false) continue;
    const end = match.index + match[0].length;
    if (isPlayedBack(text, match.index, end, clientWrote)) continue;
    const around = text.slice(Math.max(0, match.index - BEFORE), end + AFTER);
    const characters = countedInCharacters(around);
    if (characters !== null && family.kind !== 'bytes') {
      if (characters < SHORT_TEXT_CHARACTERS) continue;
      return { name: `${family.name}-in-characters`, kind: 'bytes', counts: NO_COUNTS };
    }
    const counts = family.withoutCounts ? NO_COUNTS : readCounts(around, estimate);
    if (family.onlyIfOver && !isOver(counts)) continue;
    return { name: family.name, kind: family.kind, counts };
  }
  return null;
}

function isOver({ limit, used }: StatedCounts): boolean {
  return limit !== null && used !== null && limit >= LEAST_LIMIT && used > limit;
}

/** The stated parts decide: an input that fits without the requested output is a matter of the output. */
function kindByCounts({ limit, usedInput, usedOutput }: StatedCounts): 'context' | 'fit' | null {
  if (limit === null || usedInput === null || usedOutput === null) return null;
  return usedInput < limit && usedOutput > 0 ? 'fit' : 'context';
}

/** What is left to go by when the body says nothing (SPEC 6.1): the status, and how full the window must be. */
function fromStatus(evidence: OverflowEvidence, signalFree: boolean): Verdict {
  const { status, estimatedTokens, windowTokens } = evidence;
  const full = estimatedTokens !== null && windowTokens !== null && estimatedTokens >= NEARLY_FULL * windowTokens;
  if ((status === 400 || status === 413) && signalFree && full)
    return { ...NO_COUNTS, kind: 'context', reason: 'unexplained' };
  if (status === 413) return { ...NO_COUNTS, kind: 'bytes', reason: 'status-413' };
  return { kind: 'none', reason: 'no-signal' };
}

/**
 * A sentence whose subject is the requested output, and in which no prompt occurs, is about the output: taken out
 * before the families look. A negative number is what the prompt left over, and stays.
 */
const OUTPUT_LIMIT = new RegExp(
  [
    String.raw`(?:^|[.!?:;])\s{0,3}['"\`(]{0,2}`,
    String.raw`(?:(?:the|your|requested|specified|provided|value|for|of|parameter) ){0,4}`,
    String.raw`['"\`]?max[ _](?:completion[ _]|output[ _]|new[ _])?tokens?\b`,
    String.raw`(?:[^.!?]|[.!?](?!\s)){0,300}`,
  ].join(''),
  'gi',
);

function withoutOutputLimits(text: string): string {
  return text.replace(OUTPUT_LIMIT, (sentence) =>
    /\b(?:prompt|inputs?|messages)\b|got:? -\d/i.test(sentence) ? sentence : ' '.repeat(sentence.length),
  );
}

/** The largest number of a text that counts characters or bytes and no tokens; null if it does not. */
function countedInCharacters(text: string): number | null {
  if (/\btok(?:en)?s?\b|token/i.test(text) || !/\d ?(?:characters?|chars|bytes?|[KMG]i?B)\b/i.test(text)) return null;
  return Math.max(...[...text.matchAll(/\d[\d,_]{0,15}/g)].map(([number]) => Number(number.replace(/[,_]/g, ''))));
}

/** Errors are printed wrapped and with typographic marks; the families know neither. */
function onOneLine(text: string): string {
  return text.replace(/[‘’]/g, "'").replace(/\s+/g, ' ');
}

/** Past the bound everything counts as the client's: a body with so many quotes is no plain statement of anything. */
function bounded(clientWrote: (text: string) => boolean): (text: string) => boolean {
  let lookups = 0;
  return (text) => {
    lookups += 1;
    return lookups > MAX_CLIENT_LOOKUPS || clientWrote(text);
  };
}
