import { NO_COUNTS, type LimitTrust, type StatedCounts } from './verdict.js';

const raw = String.raw;

/**
 * Source of one capturing group: a count, with thousands separators or a k or M, that no other unit follows. Tokens are
 * not named, since providers often do not.
 */
export const COUNT = [
  raw`((?:\d{1,3}(?: \d{3}){1,5}|\d(?:[\d,._]{0,20}\d)?)(?: ?[km](?![a-z]))?)`,
  raw`(?![\d,._]{0,20}\d)`,
  raw`(?!\s?(?:char|bytes?\b|[kmg]i?b\b|pages?\b|images?\b|messages?\b|seconds?\b|%))`,
].join('');

/** Below this no model's window lies: such a limit is a bug, a code or another quantity (SPEC 6.5). */
const LEAST_WINDOW = 1_024;

interface LimitReader {
  readonly trust: LimitTrust;
  readonly pattern: RegExp;
}

const limitReader = (trust: LimitTrust, ...parts: readonly string[]): LimitReader => ({
  trust,
  pattern: new RegExp(parts.join(''), 'di'),
});
const reader = (...parts: readonly string[]): RegExp => new RegExp(parts.join(''), 'dgi');

const MAX = raw`max(?:imum)?`;
const IS = raw`(?:,? (?:is|of|only|to|at|was|for this model)){0,3}[\s:=(]{0,3}`;
const WINDOW = [
  raw`(?:context|model|sequence|seq|session)(?:'s)?[ _-]?(?:token )?(?:${MAX} )?`,
  raw`(?:length|window|size|limit|len|capacity)(?: limit| length)?`,
].join('');

/** In the order tried: the first that reads a number decides what it bounds. */
const LIMITS: readonly LimitReader[] = [
  // "A + B > N" and "M > N", but not "M > N - A", where N stands before as the window.
  limitReader('window', raw`\d(?: tokens)? ?> ?${COUNT}(?! ?-)`),
  limitReader('window', raw`(?:n_ctx|max_position_embeddings)[^\d\n]{0,6}${COUNT}`),
  limitReader('window', raw`${MAX}[ _]${WINDOW}${IS}${COUNT}`),
  limitReader('window', raw`${WINDOW}${IS}${COUNT}`),
  limitReader('window', raw`(?:上下文|コンテキスト|컨텍스트|最大|上限)[^\d\n]{0,6}${COUNT}`),
  limitReader('window', raw`${COUNT}(?: tokens?)? ${MAX} context`),
  limitReader(
    'window',
    raw`(?:max length: ?|must be <= ?|cannot exceed |total tokens limit |limit for this model is )${COUNT}`,
  ),
  limitReader('tier', raw`(?:${MAX} size: ?|while limit is |maximum allowed length \(?)${COUNT}`),
  limitReader(
    'input',
    raw`(?:${MAX}|allowed)(?: (?:allowed|supported|number of)){0,2}[ _](?:input|prompt|model input)`,
    raw`(?:[ _]tokens?)?(?: (?:length|limit|size|count))?(?: limit)?${IS}${COUNT}`,
  ),
  limitReader(
    'input',
    raw`(?:tokens allowed|(?:supports?|accepts?|allows?)(?: only)?(?: up to| at most)|configured limit of|`,
    raw`input length limit|no more than|must have less than|length should be \[\d{1,9},) ?\(?${COUNT}`,
  ),
  limitReader('other', raw`(?:must be less than|(?:over|above|exceeds?) (?:the|its)|the model allows) ${COUNT}`),
  limitReader('other', raw`(?:limit|${MAX}|ceiling)(?: (?:length|tokens?|size|allowed))?${IS}${COUNT}`),
];

const ABOUT = raw`(?: (?:a total of|at least|about|over|around|approximately|more than)){0,2}`;

/** Each match adds to the input: messages, functions, tools, media. */
const INPUT_PARTS = reader(
  raw`${COUNT}(?: tokens?)? (?:in|of|from)(?: the| your)? `,
  raw`(?:messages?|prompt|functions?|tools?|(?:text|tool|image|audio|video|file) input|input(?: messages)?)\b`,
);
const INPUTS: readonly RegExp[] = [
  reader(raw`${COUNT} \+ \d`),
  reader(raw`(?:contains?|passed|has|have)${ABOUT} ${COUNT} (?:input|prompt) tokens`),
  reader(raw`${COUNT} \`?inputs\`? tokens`),
  reader(raw`(?:input|prompt)(?:[ _]tokens?| length)? \(?${COUNT}(?=\)?(?: tokens)? (?:\+|and) )`),
];
const OUTPUTS: readonly RegExp[] = [
  reader(raw`\d \+ ${COUNT} > `),
  reader(raw`${COUNT}(?: tokens?)? (?:in|for|of)(?: the| your)? (?:completion|output|response|generation)\b`),
  reader(raw`${COUNT} (?:output |completion |\`?max_new_)tokens`),
  reader(raw`max_(?:new_|completion_|output_)?tokens'?\`?[ =:(]{1,2}${COUNT}`),
  reader(raw`is too large: ${COUNT}`),
];
const TOTALS: readonly RegExp[] = [
  reader(
    raw`(?:resulted in|requested:?|used?|uses|sent|total of|contains?|has|received|got|passed|given:?|count:)${ABOUT}`,
    raw` ?\(?${COUNT}(?! (?:output|completion) tokens)`,
  ),
  reader(raw`当前[^\d\n]{0,4}${COUNT}`),
  reader(raw`(?:n_keep[^\d\n]{0,4}|keep the first )${COUNT}`),
  reader(
    raw`(?:prompt|inputs?|request|messages|conversation|sequence|tokens?|length|count)`,
    raw`(?: (?:tokens?|token count|length|size|count|of|is|are|too (?:long|large)|in the prompt|now)){0,4}`,
    raw`[\s:=(]{1,3}(?:length )?${COUNT}`,
  ),
  reader(raw`${COUNT} (?=> ?\d)`),
  reader(raw`${COUNT} (?:input |prompt )?tokens`),
];
const EXCESS = reader(
  raw`(?:exceed(?:s|ed)?(?: (?:the )?${MAX} context length)? by |got:? -)${COUNT}`,
  raw`|${COUNT} tokens too (?:long|many|large)`,
);
const FLOOR = /at least|\bover\b|more than|n_keep|keep the first/i;

/** A number of a text, and where it stands. */
interface Found {
  readonly count: number;
  readonly at: number;
  readonly phrase: string;
}

/**
 * The counts stated in a sentence that is already known to tell of an overflow. Numbers in bytes, characters or pages
 * are passed over; a number is read once. `estimatedTokens` is the caller's own estimate of the request, or null.
 */
export function readCounts(text: string, estimatedTokens: number | null): StatedCounts {
  const excess = all(EXCESS, text)[0] ?? null;
  const taken = new Set(excess === null ? [] : [excess.at]);
  const { found: limit, trust } = findLimit(text, taken);
  if (limit !== null) taken.add(limit.at);

  const parts = all(INPUT_PARTS, text).filter((part) => !taken.has(part.at));
  const input = parts.length > 0 ? null : first(INPUTS, text, taken);
  const output = first(OUTPUTS, text, taken);
  if (output !== null) taken.add(output.at);
  // A prompt counted in characters has no count in tokens: what is printed beside it are bounds.
  const total = /\d characters\b/i.test(text) ? null : first(TOTALS, text, taken);

  const usedInput = parts.length > 0 ? parts.reduce((sum, part) => sum + part.count, 0) : (input?.count ?? null);
  const usedOutput = output?.count ?? null;
  const sum = usedInput !== null && usedOutput !== null ? usedInput + usedOutput : null;
  const byExcess = limit !== null && excess !== null ? limit.count + excess.count : null;
  return judgeLimit(
    {
      limit: limit?.count ?? null,
      limitTrust: trust,
      used: byExcess ?? sum ?? total?.count ?? usedInput,
      usedInput,
      usedOutput,
      usedIsFloor: FLOOR.test(`${input?.phrase ?? ''} ${total?.phrase ?? ''}`),
      excess: excess?.count ?? null,
    },
    estimatedTokens,
  );
}

/**
 * Takes back the trust in a limit that cannot be one: too small for a window, or neither below the stated use nor below
 * the estimate of what was rejected (SPEC 6.5).
 */
export function judgeLimit(counts: StatedCounts, estimatedTokens: number | null): StatedCounts {
  const { limit, used } = counts;
  if (limit === null) return { ...counts, limitTrust: null };
  const passed =
    (used !== null && used > limit) || (used === null && estimatedTokens !== null && estimatedTokens > limit);
  return passed && limit >= LEAST_WINDOW ? counts : { ...counts, limitTrust: 'other' };
}

function findLimit(
  text: string,
  taken: ReadonlySet<number>,
): { readonly found: Found | null; readonly trust: LimitTrust | null } {
  for (const { trust, pattern } of LIMITS) {
    const match = pattern.exec(text);
    const found = match === null ? null : asFound(match);
    if (found === null || taken.has(found.at)) continue;
    // "The limit" of a sentence about the prompt bounds the prompt.
    return { found, trust: trust === 'other' && /\b(?:input|prompt)\b/i.test(text) ? 'input' : trust };
  }
  return { found: null, trust: null };
}

function first(patterns: readonly RegExp[], text: string, taken: ReadonlySet<number>): Found | null {
  for (const pattern of patterns) {
    const found = all(pattern, text).find((candidate) => !taken.has(candidate.at));
    if (found !== undefined) return found;
  }
  return null;
}

function all(pattern: RegExp, text: string): readonly Found[] {
  return [...text.matchAll(pattern)].flatMap((match) => asFound(match) ?? []);
}

function asFound(match: RegExpExecArray): Found | null {
  const group = match[1] === undefined ? 2 : 1;
  const source = match[group];
  const at = match.indices?.[group]?.[0];
  const count = source === undefined ? null : parseCount(source);
  return count === null || at === undefined ? null : { count, at, phrase: match[0] };
}

/** `128,000`, `128 000`, `128_000`, `128000` and `128k` are one number. Null for what is no whole number of tokens. */
function parseCount(source: string): number | null {
  const scale = /k$/i.test(source) ? 1_000 : /m$/i.test(source) ? 1_000_000 : 1;
  const digits = source.replace(/ ?[km]$/i, '');
  const grouped = /^\d{1,3}(?:[,._ ]\d{3})+$/.test(digits) && scale === 1;
  const count = Math.round(Number(grouped ? digits.replace(/[,._ ]/g, '') : digits) * scale);
  return Number.isSafeInteger(count) && count >= 0 ? count : null;
}

/** Counts that came as fields, where the text states none. */
export function withFields(
  counts: StatedCounts,
  limit: number | null,
  used: number | null,
  estimatedTokens: number | null,
): StatedCounts {
  if (counts.limit !== null || (limit === null && used === null)) return counts;
  return judgeLimit(
    { ...NO_COUNTS, ...counts, limit, limitTrust: 'window', used: counts.used ?? used },
    estimatedTokens,
  );
}
