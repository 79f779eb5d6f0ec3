import { splitEmbedded, stripMarkup } from './decode-text.js';

/**
 * Bounds on what a hostile body can cost: characters parsed, nesting within one JSON value, values visited, characters
 * handed to the rules. JSON in a string begins anew: escaping doubles with every level, so there are few of those.
 */
const MAX_BODY_CHARACTERS = 1_048_576;
export const MAX_DEPTH = 8;
export const MAX_NODES = 4_096;
export const MAX_TEXT_CHARACTERS = 32_768;
const MAX_CODES = 64;
const MAX_CODE_CHARACTERS = 120;

/** What an error body says, whatever it is wrapped in. */
export interface DecodedError {
  /** Error texts in the order found, without repeats; together at most MAX_TEXT_CHARACTERS. */
  readonly texts: readonly string[];
  /** Values of `code`, `type`, `status`, `reason` and the like, as sent. */
  readonly codes: readonly string[];
  /** Numbers among the codes that read as HTTP statuses. */
  readonly statuses: readonly number[];
  /** Counts that came as fields of their own. */
  readonly limit: number | null;
  readonly used: number | null;
  /** Values visited: at most MAX_NODES. */
  readonly nodes: number;
}

// Keys are compared in lower case and without separators.
const CODE_KEYS = keys(
  'code type errortype errorcode errcode status statuscode reason kind errorname providererrorcode',
);
/** An error in words; a value elsewhere may be the client's own, played back. */
const MESSAGE_KEYS = keys(
  'error errors message msg detail details description title raw errormessage errormsg errordescription statusmsg ' +
    'statusmessage errorstring cause body data text reason innererror response',
);
/** What the client or the model wrote, what names things, and errors of earlier or later attempts: never evidence. */
const SILENT_KEYS = keys(
  'content delta output outputtext input inputs messages prompt value values loc ctx request requestbody ' +
    'arguments toolcalls tools functions candidates instructions model models id requestid trace traceid url ' +
    'moreinfo user userid usage headers stack traceback previouserrors previouserror fallbacks fallbackerrors ' +
    'attempts instance object domain name',
);
/** Of those, one under which the client's own words are played back as often: the text of a content part. */
const PART_KEY = 'text';
const LIMIT_KEYS = keys('nctx contextlength contextwindow contextsize maxcontextlength maxcontexttokens maxmodellen');
const USED_KEYS = keys('nprompttokens prompttokens inputtokens requestedtokens tokencount');

/**
 * Reads an error body generously (SPEC 6.1): objects, arrays, strings, event streams, JSON with prose around it, JSON
 * held in strings, HTML, nothing. Takes time linear in the body's length and never throws. `clientWrote` tells whether
 * a text stands in the client's own messages: what was only played back is left out.
 */
export function decodeError(body: string, clientWrote: (text: string) => boolean): DecodedError {
  const texts = new Set<string>();
  const codes: string[] = [];
  const statuses: number[] = [];
  let limit: number | null = null;
  let used: number | null = null;
  let nodes = 0;
  let room = MAX_TEXT_CHARACTERS;

  const addText = (text: string): void => {
    const kept = headAndTail(text.trim(), room);
    if (kept === '' || texts.has(kept)) return;
    texts.add(kept);
    room -= kept.length;
  };

  const addCode = (code: string): void => {
    if (codes.length < MAX_CODES && code !== '') codes.push(code);
    if (/^[1-5]\d\d$/.test(code)) statuses.push(Number(code));
  };

  const walkText = (text: string, key: string): void => {
    if (CODE_KEYS.has(key) && text.length <= MAX_CODE_CHARACTERS) addCode(text);
    // A code in words is a text too, a bare one is not.
    if (CODE_KEYS.has(key) && !MESSAGE_KEYS.has(key) && !/\s/.test(text)) return;
    if (key === 'error' && /^[\w.-]{1,120}$/.test(text)) addCode(text);
    if ((!MESSAGE_KEYS.has(key) || key === PART_KEY) && clientWrote(text)) return;
    const { prose, values } = splitEmbedded(text, clientWrote);
    for (const value of values) walk(value, 'data', 0);
    addText(stripMarkup(prose));
  };

  const walkObject = (object: object, depth: number): void => {
    const reply = isReply(object);
    for (const [name, value] of Object.entries(object)) {
      const key = normalise(name);
      if (key === 'choices' && Array.isArray(value)) {
        // Of a reply's choices only their errors speak; the rest is what the model wrote.
        for (const choice of value) walk(isRecord(choice) ? choice['error'] : null, 'error', depth + 1);
      } else if (reply ? key === 'error' : !SILENT_KEYS.has(key)) {
        walk(value, key, depth + 1);
      }
    }
  };

  const walk = (value: unknown, key: string, depth: number): void => {
    if (value == null || depth > MAX_DEPTH || nodes >= MAX_NODES) return;
    nodes += 1;
    if (LIMIT_KEYS.has(key)) limit ??= asCount(value);
    if (USED_KEYS.has(key)) used ??= asCount(value);
    if (typeof value === 'string') walkText(value, key);
    else if (typeof value === 'number' && CODE_KEYS.has(key)) addCode(String(value));
    else if (Array.isArray(value)) {
      for (const item of value) {
        if (nodes >= MAX_NODES) break;
        walk(item, key, depth + 1);
      }
    } else if (isRecord(value)) walkObject(value, depth);
  };

  walk(body.slice(0, MAX_BODY_CHARACTERS), 'body', 0);
  return { texts: [...texts], codes, statuses, limit, used, nodes };
}

/** Long texts keep both ends: the sentence that matters stands before or after what was played back. */
function headAndTail(text: string, room: number): string {
  if (text.length <= room) return text;
  const tail = Math.floor(room / 4);
  return tail === 0 ? '' : `${text.slice(0, room - tail - 1)}\n${text.slice(-tail)}`;
}

/** A reply or a chunk of one: everything in it but its error is the model's or the client's. */
function isReply(object: object): boolean {
  const kind = 'object' in object ? object.object : null;
  if (kind === 'response' || kind === 'text_completion') return true;
  if (typeof kind === 'string' && kind.startsWith('chat.completion')) return true;
  return 'type' in object && object.type === 'message';
}

function asCount(value: unknown): number | null {
  const count = typeof value === 'string' && /^\d{1,12}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count > 0 ? count : null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function normalise(key: string): string {
  return key
    .slice(0, 64)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');
}

function keys(names: string): ReadonlySet<string> {
  return new Set(names.split(' '));
}
