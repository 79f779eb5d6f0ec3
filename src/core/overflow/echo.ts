import { isContextCode } from './codes.js';
import { COUNT } from './limits.js';
import { namesNothing } from './signal-free.js';

type ClientWrote = (text: string) => boolean;

const LEAST_SPAN = 6;
/** Names of fields stand in quotes as well; only one that is a code could be evidence. */
const IDENTIFIER = /^[\w.[\]=-]+$/;
/** Spans between quotes of one kind, not counting apostrophes inside words. */
const QUOTED: readonly RegExp[] = [
  /(?<![\p{L}\p{N}])'([^'\n]{6,8000})'(?![\p{L}\p{N}])/gu,
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
  const match = text.slice(from, to).trim();
  if (!clientWrote(match) || clientWrote(text.trim())) return false;
  const rest = text.slice(to);
  const number = /\d/.test(match) ? null : NEXT_COUNT.exec(rest);
  if (number !== null && Number((number[1] ?? '').replace(/\D/g, '')) >= LEAST_COUNT) {
    if (!clientWrote(text.slice(from, to + number[0].length).trim())) return false;
  }
  return !namesNothing(text.slice(0, from)) || TALKED_ABOUT.test(rest);
}

function blank(text: string): string {
  return ' '.repeat(text.length);
}
