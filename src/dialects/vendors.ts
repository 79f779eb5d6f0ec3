/** The least reasoning a model can be asked for: `none` turns it off; null: nothing is known that lowers it. */
export type LeastEffort = 'none' | 'minimal' | 'low' | null;

/** What a summary request to one model at one upstream has to heed (SPEC 5.6). */
export interface ChatTraits {
  /** The field that caps the output. */
  readonly capField: 'max_tokens' | 'max_completion_tokens';
  /** Tokens of reasoning that count against the cap, on top of what is to be seen. */
  readonly reasoningTokens: number;
  /** Fields that ask for the least reasoning, for nothing to be stored, for no web search. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** False where a system message is refused. */
  readonly takesSystem: boolean;
}

interface ModelRow {
  /** Of the model's name in lower case, without the path in front of it. */
  readonly name: RegExp;
  /** Absent: the model does not reason. */
  readonly least?: LeastEffort;
  /** What asks for it, where it is not the vendor's ordinary field. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Refuses `max_tokens`. */
  readonly completionCap?: true;
  readonly refusesSystem?: true;
}

interface VendorRow {
  readonly host: RegExp;
  readonly capField?: ChatTraits['capField'];
  /** How an effort is written; absent: `reasoning_effort`. Null: the vendor takes no such field. */
  readonly effort?: ((least: string) => Readonly<Record<string, unknown>>) | null;
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Refuses two user messages in a row (SPEC 4.4). */
  readonly alternates?: true;
  /** Looked at before the models known everywhere. */
  readonly models?: readonly ModelRow[];
}

const MODELS: readonly ModelRow[] = [
  { name: /^o1-(mini|preview)/, least: null, completionCap: true, refusesSystem: true },
  { name: /^gpt-5-chat/, completionCap: true },
  { name: /^(o[134](-mini)?|gpt-5.*)-(pro|deep-research|codex|chat)/, least: null, completionCap: true },
  { name: /^o[134]($|-)/, least: 'low', completionCap: true },
  { name: /^gpt-5\.\d/, least: 'none', completionCap: true },
  { name: /^gpt-5($|-)/, least: 'minimal', completionCap: true },
  { name: /^gpt-oss/, least: 'low' },
  { name: /^gemini-(2\.5|[3-9])/, least: null },
  {
    name: /^(deepseek-(r\d|reasoner|v4)|qwq|qwen-?3|magistral|glm-(4\.[5-9]|[5-9])|minimax-m|grok-(3-mini|4))/,
    least: null,
  },
  { name: /(thinking|reasoning|reasoner)/, least: null },
];

const VENDORS: readonly VendorRow[] = [
  { host: /(^|\.)api\.openai\.com$/, capField: 'max_completion_tokens', fields: { store: false } },
  {
    host: /\.(openai\.azure|cognitiveservices\.azure|services\.ai\.azure)\.com$/,
    capField: 'max_completion_tokens',
  },
  // One field for all models behind it, and the older name of the cap.
  { host: /(^|\.)openrouter\.ai$/, capField: 'max_tokens', effort: (least) => ({ reasoning: { effort: least } }) },
  {
    host: /(^|\.)api\.groq\.com$/,
    capField: 'max_completion_tokens',
    models: [{ name: /^qwen-?3/, least: 'none' }],
  },
  { host: /(^|\.)api\.cerebras\.ai$/, capField: 'max_completion_tokens' },
  {
    host: /(^generativelanguage|aiplatform)\.googleapis\.com$/,
    models: [
      { name: /^gemini-2\.5-flash/, least: 'none' },
      { name: /^gemini-3.*-flash/, least: 'minimal' },
      { name: /^gemini-(2\.5|3).*-pro/, least: 'low' },
      { name: /^gemma/, refusesSystem: true },
    ],
  },
  {
    host: /(^|\.)api\.x\.ai$/,
    models: [{ name: /^grok-3-mini/, least: 'low' }, { name: /^grok-4\.3/, least: 'none' }, { name: /non-reasoning/ }],
  },
  {
    host: /(^|\.)api\.deepseek\.com$/,
    alternates: true,
    models: [{ name: /^deepseek-v/, least: 'none', fields: { thinking: { type: 'disabled' } } }],
  },
  {
    host: /(^|\.)dashscope[a-z-]*\.aliyuncs\.com$/,
    models: [
      { name: /thinking|^qwq/, least: null },
      { name: /^qwen/, least: 'none', fields: { enable_thinking: false } },
    ],
  },
  { host: /(^|\.)perplexity\.ai$/, alternates: true, effort: null, fields: { disable_search: true } },
  // Refuses every field it does not know.
  { host: /(^|\.)api\.mistral\.ai$/, effort: null },
];

const UNKNOWN_VENDOR: VendorRow = { host: /^/ };

/**
 * Room for reasoning beside a summary of at most 4,096 tokens. Generous, because a cap costs nothing unless it is
 * reached, but together within 16,384: the least that these models can put out.
 */
function reasoningTokens(least: LeastEffort): number {
  switch (least) {
    case 'none':
      return 0;
    case 'minimal':
      return 2_048;
    case 'low':
      return 8_192;
    case null:
      return 12_288;
  }
}

function vendorOf(upstreamHost: string): VendorRow {
  const host = upstreamHost.toLowerCase().replace(/:\d+$/, '');
  return VENDORS.find((row) => row.host.test(host)) ?? UNKNOWN_VENDOR;
}

/** What is known of a model at an upstream, by its host name (a port is ignored). The unknown gets the plainest request. */
export function chatTraits(model: string, upstreamHost: string): ChatTraits {
  const vendor = vendorOf(upstreamHost);
  const name = model.toLowerCase().replace(/^.*\//, '').replace(/^ft:/, '');
  const row = [...(vendor.models ?? []), ...MODELS].find((candidate) => candidate.name.test(name));
  const known = row?.least ?? null;
  // An effort the vendor has no field for cannot be asked for.
  const least = row?.fields === undefined && vendor.effort === null ? null : known;
  const effort = vendor.effort ?? ((value: string) => ({ reasoning_effort: value }));
  return {
    capField: vendor.capField ?? (row?.completionCap === true ? 'max_completion_tokens' : 'max_tokens'),
    reasoningTokens: row?.least === undefined ? 0 : reasoningTokens(least),
    fields: { ...vendor.fields, ...(row?.fields ?? (least === null ? {} : effort(least))) },
    takesSystem: row?.refusesSystem !== true,
  };
}

/** Whether an upstream refuses two user messages in a row (SPEC 4.4). */
export function insistsOnAlternation(upstreamHost: string): boolean {
  return vendorOf(upstreamHost).alternates === true;
}
