import type { Refusal } from './answer.js';
import { isRecord } from './json-value.js';
import { openaiError } from './openai-errors.js';

/** An item of an input or output list, in no particular shape. */
export type Item = Readonly<Record<string, unknown>>;

/** A tool that can be called by a name. */
export interface NamedTool {
  readonly name: string;
  readonly isCustom: boolean;
  /** The namespace it is listed in. */
  readonly namespace: string | null;
}

/** A Responses request whose members have the types the API wants. */
export interface ResponsesRequest {
  readonly model: string;
  readonly stream: boolean;
  /** Null if absent. */
  readonly instructions: string | null;
  /** As sent; a text is one user message. */
  readonly input: readonly Item[];
  readonly previousResponseId: string | null;
  readonly store: boolean;
  readonly include: readonly unknown[];
  readonly outputCap: number | null;
  readonly tools: readonly NamedTool[];
  /** The members of `reasoning`; null if absent. */
  readonly reasoning: Item | null;
  readonly body: Item;
}

/** Reads a parsed body; the refusal names the first member at fault, in OpenAI's words. */
export function readResponsesRequest(body: unknown): ResponsesRequest | Refusal {
  if (!isRecord(body)) return wrongType(null, 'an object');
  const { model, instructions, previous_response_id: previous, max_output_tokens: cap } = body;
  if (typeof model !== 'string' || model === '') return missing('model');
  const input = readInput(body['input'] ?? (previous == null ? undefined : []));
  if ('kind' in input) return input;
  if (instructions != null && typeof instructions !== 'string') return wrongType('instructions', 'a string');
  if (previous != null && typeof previous !== 'string') return wrongType('previous_response_id', 'a string');
  if (cap != null && (typeof cap !== 'number' || !Number.isInteger(cap)))
    return wrongType('max_output_tokens', 'an integer');
  if (cap != null && cap < 16) {
    return openaiError(
      400,
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${cap} instead.`,
      { param: 'max_output_tokens', code: 'integer_below_min_value' },
    );
  }
  return {
    model,
    stream: body['stream'] === true,
    instructions: instructions ?? null,
    input,
    previousResponseId: previous ?? null,
    store: body['store'] !== false,
    include: Array.isArray(body['include']) ? body['include'] : [],
    outputCap: cap ?? null,
    tools: namedTools(body['tools'], null),
    reasoning: isRecord(body['reasoning']) ? body['reasoning'] : null,
    body,
  };
}

function readInput(input: unknown): readonly Item[] | Refusal {
  if (input === undefined || input === null) return missing('input');
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  if (!Array.isArray(input)) return wrongType('input', 'one of an array of input items or a string');
  const stray = input.findIndex((item) => !isRecord(item));
  return stray < 0 ? input.filter(isRecord) : wrongType(`input[${stray}]`, 'an object');
}

function namedTools(tools: unknown, namespace: string | null): readonly NamedTool[] {
  if (!Array.isArray(tools)) return [];
  return tools.filter(isRecord).flatMap(({ type, name, tools: inner }): readonly NamedTool[] => {
    if (typeof name !== 'string') return [];
    if (type === 'namespace') return namedTools(inner, name);
    return type === 'function' || type === 'custom' ? [{ name, isCustom: type === 'custom', namespace }] : [];
  });
}

function missing(param: string): Refusal {
  return openaiError(400, `Missing required parameter: '${param}'.`, { param, code: 'missing_required_parameter' });
}

function wrongType(param: string | null, expected: string): Refusal {
  const where = param === null ? 'request body' : `'${param}'`;
  return openaiError(400, `Invalid type for ${where}: expected ${expected}.`, { param, code: 'invalid_type' });
}
