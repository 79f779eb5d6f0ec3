import { isContextCode } from './codes.js';
import { COUNT } from './limits.js';
import { namesNothing } from './signal-free.js';

type ClientWrote = (text: string) => boolean;

const LEAST_SPAN = 6;
/** Names of fields stand in quotes as well; only one that is a code could be evidence. */
const IDENTIFIER = /^[\w.[\]=-]+$/;
/** Spans between quotes of one kind; an apostrophe inside a word is none. */
const QUOTED: readonly RegExp[] = [
  /(?<![\p{L}\p{N}])'((?:[^'\n]|(?<=[\p{L}\p{N}])'(?=[\p{L}\p{N}])){6,8000})'(?![\p{L}\p{N}])/gu,
  /"([^"]{6,8000})"/g,
  /`([^`]{6,8000})`/g,
  /“([^”]{6,8000})”/g,
  /«([^»]{6,8000})»/g,
];
/** The key of an object printed as text: what follows is the provider's message, though it stands in quotes. */
const MESSAGE_KEY = /(?:message|error|detail|msg|reason|raw)\\?['"]?\s?[:=]\s?$/i;
const MOST_SPANS = 64;

/** Blanks what a text quotes of the client's own words; every other character keeps its place (SPEC 6.1). */
export function withoutQuotedEchoes(text: string, clientWrote: ClientWrote): string {
  let spans = 0;
  return QUOTED.reduce(
    (current, quoted) =>
      current.replace(quoted, (whole: string, span: string, at: number) => {
        if (IDENTIFIER.test(span) && !isContextCode(span)) return whole;
        spans += 1;
        if (spans > MOST_SPANS) return blank(whole);
        if (MESSAGE_KEY.test(current.slice(Math.max(0, at - 24), at))) return whole;
        return isEcho(span, clientWrote) ? blank(whole) : whole;
      }),
    text,
  );
}

/** Quotes are escaped and shortened on the way: the client's are those whose every longer piece is the client's. */
function isEcho(span: string, clientWrote: ClientWrote): boolean {
  if (clientWrote(span)) return true;
  const pieces = span.split(/\\[nrt"'\\]|\.\.\.|…/).filter((piece) => piece.trim().length >= LEAST_SPAN);
  return pieces.length > 0 && pieces.length <= 8 && pieces.every((piece) => clientWrote(piece.trim()));
}

/** A smaller number is a position or the cap of a name. */
const LEAST_COUNT = 256;
const NEXT_COUNT = new RegExp(`^[^.!?\\n]{0,60}?${COUNT}`, 'i');
const LARGE_NUMBER = /\d[\d,._]{1,15}\d/g;
/** Characters that tell where a number stood. */
const BESIDE = 12;

interface Span {
  readonly from: number;
  readonly to: number;
}

/** What follows where the sentence was a name or a value of the client's and not the error itself. */
const TALKED_ABOUT =
  /^(?:\.[a-z]{1,4}\b|[/\\_-]\w|['"`]?\s(?:is|was|does|did|has|must|should|cannot|could|not|already)\b)/i;

/**
 * Whether the sentence at `from`..`to` of an error text is the client's own, played back without quotes. The same words
 * may stand in the client's messages by chance, since people talk about overflows. They are the provider's if the
 * client wrote the whole text some time, if nothing is named before them, or if a count follows that the client did
 * not write.
 */
export function isPlayedBack(text: string, from: number, to: number, clientWrote: ClientWrote): boolean {
  const own = clientWrote(text.slice(from, to).trim()) ? { from, to } : ownCounts(text, from, to, clientWrote);
  if (own === null || clientWrote(text.trim())) return false;
  const rest = text.slice(own.to);
  const number = /\d/.test(text.slice(own.from, own.to)) ? null : NEXT_COUNT.exec(rest);
  if (number !== null && Number((number[1] ?? '').replace(/\D/g, '')) >= LEAST_COUNT) {
    if (!clientWrote(text.slice(own.from, own.to + number[0].length).trim())) return false;
  }
  return !namesNothing(text.slice(0, own.from)) || TALKED_ABOUT.test(rest);
}

/**
 * Where the counts of a match stand if the client wrote each of them with what is beside it: a match may begin before what
 * was played back. Null if it has none or one is the provider's.
 */
function ownCounts(text: string, from: number, to: number, clientWrote: ClientWrote): Span | null {
  const counts = [...text.slice(from, to).matchAll(LARGE_NUMBER)].map(({ index, 0: digits }) => ({
    from: from + index,
    to: from + index + digits.length,
  }));
  const [first, last] = [counts[0], counts.at(-1)];
  if (first === undefined || last === undefined) return null;
  const isOwn = (count: Span): boolean =>
    clientWrote(text.slice(Math.max(0, count.from - BESIDE), count.to).trim()) ||
    clientWrote(text.slice(count.from, count.to + BESIDE).trim());
  return counts.every(isOwn) ? { from: Math.max(0, first.from - BESIDE), to: last.to } : null;
}

function blank(text: string): string {
  return ' '.repeat(text.length);
}
