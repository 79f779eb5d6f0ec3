import { SUMMARY_HEADINGS } from '../core/compaction/headings.js';
import type { TokenCounter } from '../core/ports.js';
import { plantedFacts, plantedTags } from './facts.js';
import type { ModelRequest } from './model-request.js';

/** Share of its room and of its input that a summary fills with tags. */
const TAG_SHARE = 0.25;

/**
 * A summary with every heading that carries over the planted facts of its input for which `keeps` holds, and as many of its
 * tags as a bounded part of the room takes. It stays within the request's output limit: should even the facts exceed
 * that, the oldest go first.
 */
export function summaryText(
  request: ModelRequest,
  counter: TokenCounter,
  keeps: (fact: string) => boolean = () => true,
): string {
  const input = request.messages
    .filter(({ role }) => role !== 'system' && role !== 'developer')
    .map(({ text }) => text);
  const frame = counter.count(sections('', ''));
  const room = (request.outputCap ?? request.promptTokens) - frame;
  const facts = [...plantedFacts(input)].map(([word, value]) => `FACT-${word}=${value}`).filter(keeps);
  const factLines = within(facts.toReversed(), room * (1 - TAG_SHARE), counter).toReversed();
  const tags = within(
    plantedTags(input).toReversed(),
    Math.min(room, request.promptTokens) * TAG_SHARE,
    counter,
  ).toReversed();
  return sections(factLines.map((fact) => `- ${fact}`).join('\n'), tags.join(' '));
}

function sections(facts: string, tags: string): string {
  return SUMMARY_HEADINGS.map((heading) => {
    const content = /fact/i.test(heading) ? facts : /work done/i.test(heading) ? tags : '';
    return `${heading}\n${content === '' ? 'None.' : content}`;
  }).join('\n');
}

/** As many of the first lines as count at most `tokens`, each with its line break and mark. */
function within(lines: readonly string[], tokens: number, counter: TokenCounter): readonly string[] {
  let used = 0;
  const end = lines.findIndex((line) => (used += counter.count(`- ${line}\n`)) > tokens);
  return end < 0 ? lines : lines.slice(0, end);
}
