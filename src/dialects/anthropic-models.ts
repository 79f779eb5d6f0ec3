import { chatTraits } from './vendors.js';

/** What a request to one model has to heed. */
export interface ModelTraits {
  /**
   * A signed thought counts only behind the very messages it was thought behind: the model refuses it behind any other, a summary
   * among them.
   */
  readonly bindsThinking: boolean;
  /** Fields that ask for the least reasoning. */
  readonly leastReasoning: Readonly<Record<string, unknown>>;
  /** Tokens of reasoning that count against a cap, on top of what is to be seen. */
  readonly reasoningTokens: number;
}

/** Room for reasoning at the lowest effort, beside a summary of at most 4,096 tokens. */
const LOW_EFFORT_TOKENS = 8_192;

/** Where the family comes first the version does not: `claude-3-5-sonnet` is of a generation that did not think unasked. */
const CLAUDE = /claude-(?:fable|mythos|opus|sonnet|haiku)-(\d+)(?:[-.](\d{1,2})(?!\d))?/;

/**
 * By the model's name, whatever path or region stands before it. Since version 5 a Claude thinks unless it is told otherwise, most cannot
 * be told, and all of them know an effort; behind 5.0 thoughts are bound. Before, a Claude thinks only where it is asked to.
 */
export function modelTraits(model: string, upstreamHost: string): ModelTraits {
  const name = model.toLowerCase();
  if (!name.includes('claude')) return otherTraits(model, upstreamHost);
  const [, major, minor = '0'] = CLAUDE.exec(name) ?? [];
  const version = major === undefined ? (name.includes('mythos-preview') ? 5 : 0) : Number(major) + Number(minor) / 100;
  return {
    bindsThinking: version > 5,
    leastReasoning: version >= 5 ? { output_config: { effort: 'low' } } : {},
    reasoningTokens: version >= 5 ? LOW_EFFORT_TOKENS : 0,
  };
}

/** Others serve this wire format too. Of what is known of them, only the switch that is written the same here can be used. */
function otherTraits(model: string, upstreamHost: string): ModelTraits {
  const { fields, reasoningTokens } = chatTraits(model, upstreamHost);
  const thinking = fields['thinking'];
  return { bindsThinking: false, leastReasoning: thinking === undefined ? {} : { thinking }, reasoningTokens };
}
