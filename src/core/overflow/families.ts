import { COUNT } from './limits.js';

/** One way of saying in words that a request was too large. */
export interface TextFamily {
  readonly name: string;
  readonly pattern: RegExp;
  /** What has to stand somewhere in the same text too. */
  readonly besides?: RegExp;
  /** The verdict, unless the stated input and output say better. */
  readonly kind: 'context' | 'fit' | 'bytes';
  /** Numbers near the sentence are codes, pages or bytes, but no tokens. */
  readonly withoutCounts?: true;
  /** Evidence only if the stated use is above the stated limit: the words alone say too little. */
  readonly onlyIfOver?: true;
}

const raw = String.raw;
const words = (...parts: readonly string[]): RegExp => new RegExp(parts.join(''), 'i');
const one = (...alternatives: readonly string[]): string => `(?:${alternatives.join('|')})`;
/** Up to so many characters of the same sentence; a point inside a word or a number ends none. */
const gap = (most: number): string => raw`(?:[^.!?\n]|\.(?=\S)){0,${most}}`;

const MAX = raw`max(?:imum)?`;
const EXCEEDS = one(
  raw`exceed(?:s|ed|ing)?`,
  raw`overflow(?:s|ed|ing)?`,
  raw`overruns?`,
  raw`surpass(?:es|ed|ing)?`,
  raw`(?:larger|longer|greater|bigger|more) than`,
  raw`beyond`,
  raw`(?:over|above) the`,
  raw`(?:do(?:es)?|did|will|can) ?(?:not|n't) fit`,
  raw`(?:can't|won't|no longer) fits?`,
  raw`too (?:long|large|big|many tokens) for`,
  raw`ran out of (?:room|space)`,
);
const CONTEXT = one(
  raw`context[ _-]?(?:window|length|size|limit|budget|capacity|space)`,
  raw`${MAX}[ _](?:model|seq|sequence|session|context)[ _]?len(?:gth)?`,
  raw`(?:${MAX}|model's|available|configured) context\b`,
  raw`session[ _]len(?:gth)?`,
  raw`token window`,
  raw`\bn(?:um)?_ctx\b`,
);
const PROMPT = one(
  'prompt',
  'inputs?',
  'context',
  'conversation',
  '(?:chat|message) history',
  'history',
  'messages',
  'sequence',
);
const INPUT = one('input', 'prompt', 'context');
const TOO_LONG = 'too (?:long|large|big)';

/**
 * The families, most telling first (SPEC 6.1). All of them need a noun for the prompt or the window beside the verb:
 * bare "too many tokens", "token limit exceeded", "exceeds the limit of N" and "max_tokens" say something else as
 * often. Every pattern takes linear time: gaps are bounded, and nothing that repeats is repeated.
 */
export const TEXT_FAMILIES: readonly TextFamily[] = [
  {
    // One release printed what the requested output leaves of the window, and called it the window.
    name: 'room-after-output',
    kind: 'fit',
    pattern: /maximum context length is \d{1,3} tokens\. however, your request has/i,
  },
  { name: 'vendor-code', kind: 'context', withoutCounts: true, pattern: /context window exceeds limit \(\d{4}\)/i },
  {
    name: 'maximum-context',
    kind: 'context',
    pattern: words(
      raw`\b(?:${MAX}|total)(?: allowed| supported)? `,
      raw`(?:context|prompt|sequence|model) (?:length|size|window|limit)${gap(30)}${COUNT}`,
    ),
    // Models are also praised for their window, or refused for something else in the same breath.
    besides: words(
      one(
        raw`\bhowever\b|resulted|requested|exceed|reduce|shorten|\bcontains?\b`,
        raw`${TOO_LONG}|too many|(?:longer|larger|greater|more) than`,
        raw`\b(?:given|received|got)\b|\d ?>`,
      ),
    ),
  },
  {
    name: 'maximum-context-alone',
    kind: 'context',
    pattern: words(
      raw`^\W{0,9}th(?:is|e) (?:model|endpoint)'?s? ${MAX} context length is ${COUNT}(?: tokens)?\W{0,9}$`,
    ),
  },
  {
    name: 'input-and-output',
    kind: 'fit',
    pattern: words(
      raw`\b(?:input|prompt)\b${gap(40)}(?:${MAX}[ _](?:new_|output[ _]|completion_)?tokens|requested output)\b`,
      raw`${gap(60)}${EXCEEDS}${gap(60)}${CONTEXT}`,
    ),
  },
  { name: 'total-tokens', kind: 'fit', pattern: /\bmax_total_tokens\b[^.\n]{0,60}\bmax_seq_len\b/i },
  {
    name: 'too-long',
    kind: 'context',
    pattern: words(
      raw`\b${PROMPT}`,
      raw`(?: (?:tokens?|token count|length|text|size|of|in total|is|are|was|were|has become|got|now|you provided|you sent)){0,4}`,
      raw`(?: \([^()\n]{0,60}\))?(?: (?:is|are|was|were))? ${TOO_LONG}\b`,
    ),
  },
  {
    name: 'text-too-long',
    kind: 'context',
    pattern: words(raw`\b(?:request|message|text|query|chat)(?: (?:is|was|has become|got))? ${TOO_LONG}\b`),
    // Without the unit it may as well be a size in bytes.
    besides: /\btokens?\b/i,
  },
  { name: 'exceeds-context', kind: 'context', pattern: words(raw`\b${EXCEEDS}${gap(60)}${CONTEXT}`) },
  {
    name: 'context-exceeded',
    kind: 'context',
    pattern: words(
      one(
        raw`${CONTEXT}${gap(40)}\b(?:exceed(?:s|ed)?|overflow(?:s|ed)?|(?:is )?full\b|exhausted)`,
        raw`${CONTEXT}${gap(40)}\btoo (?:small|short) (?:for|to (?:fit|hold))`,
        raw`\bcontext (?:is (?:full|exceeded)|overflow|exceeded|exhausted)`,
        raw`\breached (?:the )?(?:${MAX} )?${CONTEXT}|${CONTEXT} (?:(?:is|was|has been) )?reached\b`,
      ),
    ),
  },
  {
    name: 'input-tokens',
    kind: 'context',
    pattern: words(
      raw`\b(?:input|prompt|context|request|messages?)[ _]tokens?(?: (?:count|length|limit|total))?\b${gap(60)}`,
      one(
        EXCEEDS,
        'above the limit',
        'supports (?:only )?up to',
        '(?:can ?not|must not|may not) exceed',
        '(?:must|should) be (?:no more|less|fewer|at most)',
      ),
    ),
  },
  {
    name: 'input-limit',
    kind: 'context',
    pattern: words(
      raw`\b${EXCEEDS}${gap(40)}\b(?:${MAX}|allowed|configured) (?:number of )?`,
      raw`(?:input|prompt|context|message) (?:tokens?|length|size|limit)`,
    ),
  },
  {
    name: 'too-many-input-tokens',
    kind: 'context',
    pattern: words(
      raw`too many (?:${INPUT} tokens|tokens in (?:the |your )?(?:prompt|input|messages|conversation|context)\b)`,
    ),
  },
  {
    name: 'too-large-for-model',
    kind: 'context',
    pattern: words(raw`too large for ${gap(80)}(?:model\. ${MAX} size: ${COUNT} tokens|maximum context)`),
  },
  {
    name: 'size-limit',
    kind: 'context',
    pattern: /too many tokens:[^.\n]{0,40}(?:size limit|total number|minimal context)/i,
  },
  {
    name: 'reduce-length',
    kind: 'context',
    pattern: words(
      raw`(?:reduce|shorten|decrease) (?:the )?(?:length|size|number of tokens) (?:of|in) (?:the |your )?(?:input )?`,
      raw`(?:messages|prompt|inputs?|conversation|context|history)\b`,
    ),
  },
  {
    name: 'inputs-bound',
    kind: 'context',
    pattern: /`?inputs`?(?: tokens \+ `?max_new_tokens`?)? must (?:be <=|have less than) ?\d/i,
  },
  {
    name: 'token-limit',
    kind: 'context',
    pattern: words(
      one(
        raw`exceed(?:s|ed|ing)? (?:the )?model(?:'s)? token limit`,
        raw`\b(?:prompt|inputs?|conversation|messages?|context)\b${gap(20)}exceed(?:s|ed)? (?:the |its )?(?:${MAX} )?token limit`,
      ),
    ),
  },
  { name: 'max-length-exceeded', kind: 'fit', pattern: /model max(?:imum)? length exceeded/i },
  {
    name: 'length-exceeds',
    kind: 'context',
    pattern: words(
      raw`\b(?:prompt|inputs?|conversation|messages?|(?:total )?message token)(?: (?:tokens?|length|size|text))?`,
      raw`(?: \(?\d[^()\n]{0,20}\)?)? exceeds? (?:the )?`,
      raw`(?:${MAX}|model)(?: (?:allowed|supported|input|message))? (?:length|limit|tokens?)\b`,
    ),
  },
  { name: 'input-range', kind: 'context', pattern: /range of input length should be/i },
  {
    name: 'count-above-limit',
    kind: 'context',
    pattern: words(
      raw`\b(?:prompt|inputs?|request|messages|conversation|sequence)\b${gap(40)}${COUNT}`,
      raw`(?! ?(?:output|completion|new) tokens)${gap(30)}`,
      one(
        EXCEEDS,
        raw`\d ?>`,
        'must be (?:less|no more|at most)',
        'but (?:the |this |its )?(?:model|limit|max|configured|context)',
      ),
      raw`${gap(60)}${COUNT}`,
    ),
    besides: /\btokens?\b|\b(?:input|prompt|sequence|context) (?:length|size)\b/i,
  },
  {
    name: 'count-beside-limit',
    kind: 'context',
    onlyIfOver: true,
    pattern: words(
      raw`\b(?:prompt|inputs?|request|messages?|conversation|chat)(?:\b|_)${gap(80)}${COUNT}${gap(80)}${COUNT}`,
    ),
    besides:
      /tokens?\b[^\n]{0,200}(?:limit|max|allow|support|accept|window|context)|(?:limit|max|window|context)[^\n]{0,200}tokens?\b/i,
  },
  {
    name: 'tokens-to-keep',
    kind: 'context',
    pattern: words(
      one(
        'tokens to keep from the initial prompt is greater',
        raw`\bn_keep\b[^.\n]{0,20}>=? ?n_ctx`,
        raw`keep the first \d{1,12} tokens`,
      ),
    ),
  },
  {
    name: 'context-is-only',
    kind: 'context',
    pattern: words(
      one(
        raw`context (?:length|window|size) (?:is|of) only ${COUNT}`,
        raw`only supports? (?:a )?(?:${MAX} )?context (?:length|window|size) of ${COUNT}`,
      ),
    ),
  },
  {
    name: 'no-room-for-output',
    kind: 'context',
    pattern: /max_(?:completion_|new_|output_)?tokens must be (?:at least|greater than) \d{1,3},? (?:but )?got:? -\d/i,
  },
  {
    name: 'cache-pages',
    kind: 'context',
    withoutCounts: true,
    pattern: /\bcontext\b[^.\n]{0,40}requires \d{1,9} pages \(only \d/i,
  },
  {
    name: 'code-in-text',
    kind: 'context',
    pattern: words(
      raw`\b`,
      one(
        'context_(?:length|window|size)_exceeded',
        'model_context_window_exceeded',
        'exceed_context_size_error',
        'Context(?:Window|Length)Exceeded(?:Error)?',
      ),
      raw`\b`,
    ),
  },
  {
    name: 'chinese',
    kind: 'context',
    pattern: words(
      one(
        [
          '(?:上下文|提示词?|输入|輸入|对话|對話|prompt|(?<![_a-z]|输出 ?)tokens?)',
          raw`[^。；\n]{0,20}(?:超过|超出|超過|超长|超長|过长|過長|超限)`,
        ].join(''),
        raw`(?:超过|超出|超過)[^。；\n]{0,20}(?:上下文|最大输入|最大長度|最大长度)`,
      ),
    ),
  },
  { name: 'japanese', kind: 'context', pattern: /(?:コンテキスト|プロンプト|入力)[^。\n]{0,30}(?:超え|超過|長すぎ)/ },
  { name: 'korean', kind: 'context', pattern: /(?:컨텍스트|프롬프트|입력)[^.\n]{0,30}(?:초과|너무 길|너무 깁)/ },
  {
    name: 'european',
    kind: 'context',
    pattern: words(
      one(
        [
          '(?:exced|supera|sobrepas|ultrapass|dépass|excèd|überschr|überst[ei]|превыш)',
          raw`[^.\n]{0,60}(?:context[oe]|kontext|контекст)`,
        ].join(''),
        raw`(?:context[oe]|kontext|контекст)[^.\n]{0,60}(?:excedid|superad|ultrapassad|dépassé|überschr|превыш)`,
        raw`(?:prompt|entrada|entrée|eingabe|запрос)[^.\n]{0,20} (?:demasiado larg|trop long|zu lang|слишком длинн)`,
      ),
    ),
  },
  {
    name: 'body-size',
    kind: 'bytes',
    withoutCounts: true,
    pattern: words(
      one(
        raw`(?:request|payload|content|body|message)(?: entity| body| payload)? (?:is )?too large`,
        [
          raw`(?:request|payload|body|message)(?: entity| body| payload)?(?: size)?(?: \d{1,15})? exceeds (?:the )?`,
          raw`(?:${MAX}(?: allowed)? size|limit:? ?\d|size limit)`,
        ].join(''),
        'maximum request body size',
        'message larger than max',
        raw`string value length \(\d{1,12}\) exceeds`,
        'failed to parse request',
      ),
    ),
  },
  {
    name: 'string-size',
    kind: 'bytes',
    withoutCounts: true,
    pattern: words(
      one(
        raw`invalid '(?:messages|input)\b[^'\n]{0,80}(?:content|text|output|input|arguments|\])': string too long`,
        raw`malformed input request: expected maxLength: \d`,
      ),
    ),
  },
];
