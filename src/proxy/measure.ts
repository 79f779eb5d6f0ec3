import { messageTokens, textsOf } from '../core/estimate.js';
import type { Ruler } from '../core/estimate.js';
import type { Media } from '../core/message.js';
import type { SpineNode } from '../core/render.js';
import type { Dialect, ReadRequest } from '../dialects/dialect.js';
import { byteBound } from '../tokens/byte-bound.js';
import type { PatientCounter } from '../tokens/counter.js';
import type { Measure } from './turn.js';

export interface MeasureInput {
  readonly dialect: Dialect;
  readonly read: ReadRequest;
  readonly spine: readonly SpineNode[];
  /** Counts the store already had, by node id. */
  readonly stored: ReadonlyMap<string, number>;
  /** Index of the first message behind the active summary; 0 without one. What is before it is seldom asked for. */
  readonly viewStart: number;
  readonly loadCounter: () => Promise<PatientCounter>;
}

export function createMeasure(input: MeasureInput): Measure {
  const fresh = new Map<string, number>();
  let ruler: Promise<Ruler> | null = null;
  let counter: Promise<PatientCounter> | null = null;
  let tokenizer: string | null = null;

  const load = (): Promise<PatientCounter> => {
    counter ??= input.loadCounter().then((loaded) => {
      tokenizer = loaded.tokenizer;
      return loaded;
    });
    return counter;
  };
  const build = async (): Promise<Ruler> => {
    const loaded = await (await load()).ahead(textsToCount(input));
    const instructions = input.read.instructions.reduce((sum, message) => sum + messageTokens(message, loaded), 0);
    const rest = input.read.fixedJson.reduce((sum, json) => sum + loaded.count(json), 0);
    return {
      fixedTokens: instructions + rest,
      tokensAt(index) {
        const node = input.spine[index];
        if (node === undefined) return 0;
        const known = input.stored.get(node.id) ?? fresh.get(node.id);
        if (known !== undefined) return known;
        const tokens = messageTokens(node.message, loaded);
        fresh.set(node.id, tokens);
        return tokens;
      },
      summaryTokens: (content) => messageTokens(input.dialect.summaryMessage(content), loaded),
    };
  };
  return {
    bound: (bodyBytes) => (input.read.selfContained ? byteBound(bodyBytes, mediaOf(input)) : null),
    counter: load,
    ruler() {
      ruler ??= build();
      return ruler;
    },
    freshCounts: () => fresh,
    tokenizer: () => tokenizer,
  };
}

/** What a ruler is sure to be asked for. */
function* textsToCount({ read, spine, stored, viewStart }: MeasureInput): Generator<string> {
  for (const message of read.instructions) yield* textsOf(message);
  yield* read.fixedJson;
  for (const { id, message } of spine.slice(viewStart)) if (!stored.has(id)) yield* textsOf(message);
}

function mediaOf(input: MeasureInput): readonly Media[] {
  return [...input.read.instructions, ...input.spine.map((node) => node.message)].flatMap((message) => message.media);
}
