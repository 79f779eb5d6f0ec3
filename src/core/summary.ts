import type { Segment, Summary, SummaryPolicy } from './ports.js';

/**
 * The place of a segment on a spine, as indices `[from, to)`, or null if it does not lie wholly on it. An id
 * names a whole prefix (SPEC 1.4), so its two ends at the right distance prove every id between them.
 */
export function segmentOn(
  spine: readonly string[],
  segment: Segment,
): { readonly from: number; readonly to: number } | null {
  const last = spine.indexOf(segment.last);
  const from = last - segment.count + 1;
  if (last < 0 || from < 0 || spine[from] !== segment.first) return null;
  return { from, to: last + 1 };
}

/**
 * Which summary is active on a spine, SPEC 3.4. `session`: the one that the conversation names, if its segment lies on
 * this spine. `spine`: the one with the longest segment on it; of equals, the one written last (`summaries` is in the
 * order of writing).
 */
export function activeSummary(
  spine: readonly string[],
  summaries: readonly Summary[],
  policy: SummaryPolicy,
  named: string | null,
): Summary | null {
  const onSpine = summaries.filter((summary) => segmentOn(spine, summary) !== null);
  switch (policy) {
    case 'session':
      return onSpine.find((summary) => summary.id === named) ?? null;
    case 'spine':
      return onSpine.reduce<Summary | null>(
        (longest, summary) => (longest === null || summary.count >= longest.count ? summary : longest),
        null,
      );
  }
}
