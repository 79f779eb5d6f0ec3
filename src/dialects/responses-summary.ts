import type { SummaryCall } from './dialect.js';
import { chatTraits } from './vendors.js';

/**
 * The body of a summary request (SPEC 5.6): no tools, no earlier response, not streamed, not stored, the least reasoning the model can be
 * asked for. The cap is `maxOutputTokens` and, for models that reason, room for that.
 */
export function summaryBody(call: SummaryCall, upstreamHost: string): string {
  const traits = chatTraits(call.model, upstreamHost);
  // The one field of these that is written in another way here.
  const { reasoning_effort: effort, ...fields } = traits.fields;
  const content = traits.takesSystem ? call.input : `${call.instructions}\n\n${call.input}`;
  return JSON.stringify({
    ...(call.model === '' ? {} : { model: call.model }),
    ...(traits.takesSystem ? { instructions: call.instructions } : {}),
    input: [{ role: 'user', content }],
    max_output_tokens: call.maxOutputTokens + traits.reasoningTokens,
    stream: false,
    ...(effort === undefined ? {} : { reasoning: { effort } }),
    ...fields,
    store: false,
  });
}
