import type { ErrorForm } from './dialect.js';
import { isEmpty, isJsonObject, parsedJson, type JsonObject } from './json-value.js';

/** An error in OpenAI's envelope. */
export function errorBody(form: ErrorForm): string {
  const { message, type, field, code } = form;
  return JSON.stringify({ error: { message, type, param: field, code } });
}

/** The envelope that a body is; what is none becomes the message of an error. */
export function envelopeOf(body: string): JsonObject {
  const value = parsedJson(body);
  if (isJsonObject(value) && !isEmpty(value['error'])) return value;
  return { error: { message: body, type: 'upstream_error', param: null, code: null } };
}
