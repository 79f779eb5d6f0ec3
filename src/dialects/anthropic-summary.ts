import { modelTraits } from './anthropic-models.js';
import type { SummaryCall } from './dialect.js';

/**
 * The body of a summary request (SPEC 5.6): no tools, not streamed, no cache marks, the least reasoning the model can be asked for. The
 * cap is `maxOutputTokens` and, for models that reason, room for that.
 */
export function summaryBody(call: SummaryCall, upstreamHost: string): string {
  const traits = modelTraits(call.model, upstreamHost);
  return JSON.stringify({
    ...(call.model === '' ? {} : { model: call.model }),
    max_tokens: call.maxOutputTokens + traits.reasoningTokens,
    system: call.instructions,
    messages: [{ role: 'user', content: call.input }],
    stream: false,
    ...traits.leastReasoning,
  });
}
