import type { TokenCounter } from '../core/ports.js';
import type { Answer } from './answer.js';
import { jsonAnswer, refusalAnswer } from './answer.js';
import { isRecord } from './json-value.js';
import { openaiError } from './openai-errors.js';
import { hash32, seededRandom } from './seeded.js';

const DIMENSIONS = 1536;

/** Serves `POST /embeddings`: a unit vector for each input, the same for the same text; token arrays are taken as text. */
export function embeddings(body: unknown, counter: TokenCounter): Answer {
  if (!isRecord(body) || typeof body['model'] !== 'string')
    return refusalAnswer(openaiError(400, 'you must provide a model parameter'));
  const inputs = inputsOf(body['input']);
  if (inputs.length === 0) {
    return refusalAnswer(
      openaiError(400, "Missing required parameter: 'input'.", { param: 'input', code: 'missing_required_parameter' }),
    );
  }
  const dimensions = typeof body['dimensions'] === 'number' ? body['dimensions'] : DIMENSIONS;
  const asBase64 = body['encoding_format'] === 'base64';
  const promptTokens = inputs.reduce((sum, input) => sum + counter.count(input), 0);
  return jsonAnswer(200, {
    object: 'list',
    data: inputs.map((input, index) => {
      const vector = unitVector(input, dimensions);
      return {
        object: 'embedding',
        index,
        embedding: asBase64 ? Buffer.from(vector.buffer).toString('base64') : [...vector],
      };
    }),
    model: body['model'],
    usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
  });
}

/** One text for a string or a list of token numbers; several for a list of those. */
function inputsOf(input: unknown): readonly string[] {
  if (typeof input === 'string') return [input];
  if (!Array.isArray(input)) return [];
  if (input.every((entry) => typeof entry === 'number')) return input.length === 0 ? [] : [input.join(' ')];
  return input.flatMap(inputsOf);
}

function unitVector(text: string, dimensions: number): Float32Array {
  const random = seededRandom(hash32(text));
  const values = Array.from({ length: dimensions }, () => random() * 2 - 1);
  const length = Math.hypot(...values);
  return Float32Array.from(values, (value) => value / length);
}
