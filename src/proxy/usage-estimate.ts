import { calibrationOf } from '../core/budget.js';
import { estimateView } from '../core/estimate.js';
import type { Usage } from '../core/message.js';
import { tailIndices } from '../core/render.js';
import type { Dispatch } from './dispatch.js';
import type { Turn } from './turn.js';

/** Plain text has four to five bytes a token; a report of less than one in so many may be of a prompt that was cut. */
const BYTES_PER_REPORTED_TOKEN = 8;

/** Tools and schemas are rewritten before a model reads them, some to half of their JSON. */
const SHARE_OF_JSON = 0.5;

/**
 * The least that a dispatched request must have come to, by the calibrated estimate, for the rules on usage (SPEC 6.2).
 * Counted only where the reported usage, or a reply without content, makes it worth while; null otherwise.
 */
export async function usageEstimate(
  turn: Turn,
  dispatch: Dispatch,
  usage: Usage | null,
  hasContent: boolean,
): Promise<number | null> {
  const bytes = dispatch.rewritten ? dispatch.body.byteLength : turn.body.textBytes;
  const bound = turn.measure.bound(bytes) ?? bytes;
  const { windowTokens } = turn.belief;
  const mayBeCut = isReported(usage) && reportedTokens(usage) < bound / BYTES_PER_REPORTED_TOKEN;
  const mayBeOver = !hasContent && windowTokens !== null && bound > windowTokens;
  return mayBeCut || mayBeOver ? leastTokens(turn, dispatch) : null;
}

/** Zero is how some servers say that they did not count (SPEC 9.4). */
function isReported(usage: Usage | null): usage is Usage {
  return (usage?.inputTokens ?? 0) > 0;
}

/** Some servers leave cached tokens out of their count, so they are taken to have come on top. */
function reportedTokens({ inputTokens, cachedTokens }: Usage): number {
  return (inputTokens ?? 0) + (cachedTokens ?? 0);
}

/** Without what a provider may drop or price in its own way: echoed reasoning, media, a part of the tools' JSON. */
async function leastTokens(turn: Turn, { view }: Dispatch): Promise<number> {
  const [ruler, counter] = await Promise.all([turn.measure.ruler(), turn.measure.counter()]);
  const json = turn.read.fixedJson.reduce((sum, text) => sum + counter.count(text), 0);
  const uncertain = [...view.pinned, ...tailIndices(view)]
    .flatMap((index) => turn.spine[index]?.message ?? [])
    .reduce(
      (sum, { reasoning, media }) =>
        sum + counter.count(reasoning) + media.reduce((tokens, part) => tokens + counter.countMedia(part), 0),
      0,
    );
  const least = estimateView(view, ruler) - uncertain - json * (1 - SHARE_OF_JSON);
  return Math.max(0, Math.floor(least * calibrationOf(turn.opened.match)));
}
