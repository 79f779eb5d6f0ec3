const MAX_EMBEDDED = 32;
/** Unbalanced openings that are tried before the rest is taken for prose: each try may read to the end. */
const MAX_FAILURES = 8;
/** Deeper values are not parsed: a parser takes seconds for a megabyte of brackets. */
const MAX_NESTING = 128;

/**
 * Parts a text into the JSON values it holds and the prose around them: a whole JSON value, the frames of an event
 * stream, or objects inside prose, without what a router appended. An object inside prose that the client wrote stays
 * prose (SPEC 6.1).
 */
export function splitEmbedded(
  text: string,
  clientWrote: (text: string) => boolean,
): { readonly prose: string; readonly values: readonly unknown[] } {
  const trimmed = text.trim();
  if (trimmed === '') return { prose: '', values: [] };
  if (/^["[{\dn]/.test(trimmed)) {
    const whole = parse(trimmed);
    if (whole !== undefined) return { prose: '', values: [whole] };
  }
  const frames = framePayloads(trimmed);
  if (frames !== null) return { prose: '', values: frames };

  const values: unknown[] = [];
  let prose = '';
  let from = 0;
  let failures = 0;
  while (values.length < MAX_EMBEDDED && failures < MAX_FAILURES) {
    const start = trimmed.indexOf('{', from);
    // Inside a value the marks of a router are those of an inner one, and its values are cut on their own.
    if (start === -1 || NEXT_ATTEMPT.test(trimmed.slice(from, start))) break;
    const end = closingBrace(trimmed, start);
    const source = end === -1 ? null : trimmed.slice(start, end + 1);
    // Escaped once more where it was put into a string that nobody parsed.
    const value = source === null || clientWrote(source) ? undefined : (parse(source) ?? parse(parse(`"${source}"`)));
    if (value === undefined) failures += 1;
    else values.push(value);
    const next = value === undefined ? start + 1 : end + 1;
    prose += value === undefined ? trimmed.slice(from, next) : `${trimmed.slice(from, start)} `;
    from = next;
  }
  return { prose: primaryText(prose + trimmed.slice(from)), values };
}

/** Data of the frames of an event stream, or null if the text is none. */
function framePayloads(text: string): readonly string[] | null {
  if (!/^(?:data|event|id|retry)?:/.test(text)) return null;
  const payloads: string[] = [];
  let lines: string[] = [];
  let framed = false;
  const close = (): void => {
    const payload = lines.join('\n').trim();
    if (payload !== '' && payload !== '[DONE]') payloads.push(payload);
    lines = [];
  };
  for (const raw of text.split('\n')) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (line === '') close();
    else if (line.startsWith('data:')) {
      framed = true;
      lines.push(line.slice(line.startsWith('data: ') ? 6 : 5));
    }
  }
  close();
  return framed ? payloads : null;
}

/** Index of the brace that closes the one at `start`, -1 if none does; brackets in strings are text. */
function closingBrace(text: string, start: number): number {
  let depth = 0;
  let inString = false;
  for (let index = start; index < text.length; index += 1) {
    const character = text[index];
    if (character === '\\') index += 1;
    else if (character === '"') inString = !inString;
    else if (inString) continue;
    else if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth === 0) return index;
    if (depth > MAX_NESTING) return -1;
  }
  return -1;
}

function parse(text: unknown): unknown {
  if (typeof text !== 'string') return undefined;
  if (/^[[{]/.test(text) && closingBrace(text, 0) !== text.length - 1) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text of an HTML page, or the text itself if it is none. Tags become spaces. */
export function stripMarkup(text: string): string {
  if (!/<(?:!doctype|html|head|body|title|h1|p)\b/i.test(text.slice(0, 2_048))) return text;
  return text
    .replace(/<(?:!|\/?[a-z])[^<>]{0,512}>/gi, ' ')
    .replace(/&#0?39;|&#x27;|&apos;/gi, "'")
    .replace(/&quot;/gi, '"')
    .replace(/&nbsp;/gi, ' ')
    .replace(/&gt;/gi, '>')
    .replace(/&lt;/gi, '<')
    .replace(/&amp;/gi, '&')
    .replace(/\s+/g, ' ');
}

/** Where a router starts to tell of other attempts and of its own configuration, the first error has ended. */
const NEXT_ATTEMPT = new RegExp(
  [
    String.raw`Received\s{1,20}Model\s{1,20}Group=`,
    'Available Model Group Fallbacks',
    'Error doing the fallback',
    String.raw`\bcontext_window_fallbacks?\b`,
    String.raw`\bfallbacks=`,
    'LiteLLM Retried',
    'No fallback model group',
  ].join('|'),
);

/** The error that came first, without those a router appended. */
function primaryText(text: string): string {
  const end = text.search(NEXT_ATTEMPT);
  return end === -1 ? text : text.slice(0, end);
}
