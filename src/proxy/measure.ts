import { messageTokens } from '../core/estimate.js';
import type { Ruler } from '../core/estimate.js';
import type { Media } from '../core/message.js';
import type { TokenCounter } from '../core/ports.js';
import type { SpineNode } from '../core/render.js';
import type { Dialect, ReadRequest } from '../dialects/dialect.js';
import { byteBound } from '../tokens/byte-bound.js';
import type { Measure } from './turn.js';

export interface MeasureInput {
  readonly dialect: Dialect;
  readonly read: ReadRequest;
  readonly spine: readonly SpineNode[];
  /** Counts the store already had, by node id. */
  readonly stored: ReadonlyMap<string, number>;
  /** Counts made while the nodes were written, by node id: in the store by now. */
  readonly written: ReadonlyMap<string, number>;
  readonly loadCounter: () => Promise<TokenCounter>;
}

export function createMeasure(input: MeasureInput): Measure {
  const fresh = new Map<string, number>();
  let ruler: Promise<Ruler> | null = null;
  let counter: Promise<TokenCounter> | null = null;
  let tokenizer: string | null = null;

  const load = (): Promise<TokenCounter> => {
    counter ??= input.loadCounter().then((loaded) => {
      tokenizer = loaded.tokenizer;
      return loaded;
    });
    return counter;
  };
  const build = async (): Promise<Ruler> => {
    const loaded = await load();
    const instructions = input.read.instructions.reduce((sum, message) => sum + messageTokens(message, loaded), 0);
    const rest = input.read.fixedJson.reduce((sum, json) => sum + loaded.count(json), 0);
    return {
      fixedTokens: instructions + rest,
      tokensAt(index) {
        const node = input.spine[index];
        if (node === undefined) return 0;
        const known = input.stored.get(node.id) ?? input.written.get(node.id) ?? fresh.get(node.id);
        if (known !== undefined) return known;
        const tokens = messageTokens(node.message, loaded);
        fresh.set(node.id, tokens);
        return tokens;
      },
      summaryTokens: (content) => messageTokens(input.dialect.summaryMessage(content), loaded),
    };
  };
  return {
    bound: (bodyBytes) => byteBound(bodyBytes, mediaOf(input)),
    counter: load,
    ruler() {
      ruler ??= build();
      return ruler;
    },
    freshCounts: () => fresh,
    tokenizer: () => tokenizer,
  };
}

function mediaOf(input: MeasureInput): readonly Media[] {
  return [...input.read.instructions, ...input.spine.map((node) => node.message)].flatMap((message) => message.media);
}
