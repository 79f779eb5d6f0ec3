import { normaliseCode } from './codes.js';

/**
 * Statuses that never come with an overflow. All others do: overflows arrive as 200, 400, 413, 422, 424, 500 and 503.
 */
const VETO_STATUSES: ReadonlySet<number> = new Set([401, 402, 403, 404, 408, 429, 504, 529]);

/** Tested against codes in lower case and without separators. */
const VETO_CODES: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['rate', /ratelimit|throttl|toomanyrequests|resourceexhausted|tokensperminute/],
  ['quota', /quota|insufficient|billing|payment|credit|usagelimit/],
  ['access', /authentication|authorization|unauthorized|permission|forbidden|accessdenied|apikey|notfound/],
  ['load', /overloaded|capacity|timeout|deadlineexceeded/],
  ['content', /contentfilter|contentpolicy|invalidprompt|moderation|safety|responsibleai/],
];

const anyOf = (...alternatives: readonly string[]): RegExp => new RegExp(alternatives.join('|'), 'i');
const raw = String.raw;

const VETO_TEXTS: readonly (readonly [name: string, pattern: RegExp])[] = [
  [
    'rate',
    anyOf(
      raw`\bper[ -](?:min(?:ute)?|day|second|sec|hour|week|month)\b`,
      raw`\bthis (?:minute|hour|day|month)\b`,
      raw`\b(?:TPM|TPD|RPM|RPD|ITPM|OTPM)\b`,
      raw`\brate[ _-]?limit|\brequest rate\b|\bthrottl|too many requests|too many tokens processed`,
    ),
  ],
  [
    'wait',
    anyOf(
      raw`\bwait (?:before|for|a|until)|please wait`,
      raw`try again in (?:about )?(?:\d|an? (?:few|moment|minute|hour|while|second)|few)`,
      raw`retry (?:after|in) \d`,
    ),
  ],
  [
    'quota',
    anyOf(
      raw`\bquotas?\b|\bcredits?\b|can only afford|\bbilling\b|\bbalance\b`,
      raw`\b(?:daily|weekly|monthly|hourly|usage) (?:\w{1,20} )?limit`,
    ),
  ],
  ['time', anyOf(raw`\bdeadline\b|\btime[ds]?[ -]?out\b`, raw`\b\d{1,9} ?(?:secs?|seconds?|minutes?)\b`)],
  ['load', anyOf(raw`\boverloaded\b|\b(?:at|over) capacity\b`)],
  ['memory', anyOf(raw`\bmemory\b|\bVRAM\b|\bOOM\b|\d ?Gi?B\b`, raw`\b(?:physical )?batch size\b|\bn_u?batch\b`)],
  ['media', anyOf(raw`\bpixels?\b|\bimage (?:size|dimensions?)\b|\bPDF pages?\b|\baudio (?:is|was|file|input)\b`)],
  ['content', anyOf(raw`content (?:filter|policy|management)|\bmoderation\b|safety (?:system|policy)`)],
  ['translated', anyOf('每分钟|每秒|每天|速率|限流|频率|配额|余额|欠费|レート制限|분당|할당량')],
];

const URL = /https?:\/\/[^\s"'<>]{0,512}/gi;

/** The name of the first veto that holds (SPEC 6.1), or null. `statuses` are the HTTP status and those in the body. */
export function findVeto(
  statuses: readonly number[],
  codes: readonly string[],
  texts: readonly string[],
): string | null {
  if (statuses.some((status) => VETO_STATUSES.has(status))) return 'status';
  const names = codes.map(normaliseCode);
  const byCode = VETO_CODES.find(([, pattern]) => names.some((name) => pattern.test(name)));
  if (byCode !== undefined) return `${byCode[0]}-code`;
  // A link to the page on rate limits stands under many errors.
  const plain = texts.map((text) => text.replace(URL, ' '));
  const byText = VETO_TEXTS.find(([, pattern]) => plain.some((text) => pattern.test(text)));
  return byText === undefined ? null : `${byText[0]}-text`;
}
