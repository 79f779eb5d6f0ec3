/** Codes that mean an overflow and nothing else, in lower case and without separators. */
const CONTEXT_CODES: ReadonlySet<string> = new Set([
  'contextlengthexceeded',
  'modelcontextwindowexceeded',
  'exceedcontextsizeerror',
  'contextexceeded',
  'tokenslimitreached',
  'modelmaxprompttokensexceeded',
  'tokenquantityexceeded',
]);

/** Their kin: the context with what is exceeded, or the prompt with what is wrong with it. */
const CONTEXT_CODE = new RegExp(
  [
    '^(?:model|max|maximum|input)?(?:',
    'context(?:length|window|size|tokens?)?(?:limit)?(?:is|was)?',
    '(?:exceeded|exceeds|overflow|overflowed|toolong|toolarge)',
    '|exceeds?(?:max|maximum|model|available)?context(?:length|window|size|limit)?',
    '|(?:prompt|input)(?:is)?toolong',
    ')(?:error|exception)?$',
  ].join(''),
);

const BYTES_CODES: ReadonlySet<string> = new Set([
  'requesttoolarge',
  'requestentitytoolarge',
  'payloadtoolarge',
  'entitytoolarge',
  'requestbodytoolarge',
  'bodytoolarge',
]);

/** "1261" is an overflow at Zhipu and may be anything elsewhere. */
const ZHIPU_CODE = '1261';
const ZHIPU_HOST = /(?:^|\.)(?:bigmodel\.cn|z\.ai|zhipuai\.cn)(?::\d+)?$/i;

/** What one of the provider's codes says of the request's size by itself (SPEC 6.1); null if none of them does. */
export function sizeCode(codes: readonly string[], upstreamHost: string | null): 'context' | 'bytes' | null {
  if (codes.some(isContextCode)) return 'context';
  if (upstreamHost !== null && ZHIPU_HOST.test(upstreamHost) && codes.includes(ZHIPU_CODE)) return 'context';
  return codes.some((code) => BYTES_CODES.has(normaliseCode(code))) ? 'bytes' : null;
}

/** Whether a code or a stop reason, however it is spelled or qualified, is the name of a context overflow. */
export function isContextCode(code: string): boolean {
  const unqualified = code.slice(code.search(/[^/#.:]*$/));
  return [code, unqualified].map(normaliseCode).some((name) => CONTEXT_CODES.has(name) || CONTEXT_CODE.test(name));
}

/** Lower case and without separators. */
export function normaliseCode(code: string): string {
  return code.toLowerCase().replace(/[^a-z0-9]/g, '');
}
