import type { Refusal } from './answer.js';
import { isRecord } from './json-value.js';
import { openaiError } from './openai-errors.js';
import { callIdOf, idOf, isAssistants, typeOf } from './response-item.js';
import type { ResponseStore } from './response-store.js';
import type { Item } from './responses-request.js';

const ROLES: ReadonlySet<unknown> = new Set(['assistant', 'system', 'developer', 'user']);

const INPUT_PARTS = ['input_text', 'input_image', 'output_text', 'refusal', 'input_file', 'computer_screenshot'];

/** What the ids of items begin with. */
const ID_STARTS: ReadonlyMap<string, string> = new Map([
  ['message', 'msg'],
  ['reasoning', 'rs'],
  ['function_call', 'fc'],
  ['custom_tool_call', 'ctc'],
  ['compaction', 'cmp'],
]);

/** What the API refuses of items as they were sent, each by itself; null if they are sound. */
export function brokenItem(input: readonly Item[]): Refusal | null {
  for (const [index, item] of input.entries()) {
    const broken = brokenId(item, index) ?? (typeOf(item) === 'message' ? brokenMessage(item, index) : null);
    if (broken !== null) return broken;
    if (typeOf(item) === 'reasoning' && !Array.isArray(item['summary'])) return missing(`input[${index}].summary`);
  }
  return null;
}

/** What it refuses of the whole list: calls without outputs and the reverse, reasoning without its item and the reverse. */
export function brokenList(items: readonly Item[], store: ResponseStore): Refusal | null {
  return brokenPairing(items) ?? brokenReasoning(items, store);
}

function brokenId(item: Item, index: number): Refusal | null {
  const id = idOf(item);
  const start = ID_STARTS.get(typeOf(item));
  if (id === null || start === undefined || id.startsWith(start)) return null;
  return openaiError(400, `Invalid 'input[${index}].id': '${id}'. Expected an ID that begins with '${start}'.`, {
    param: `input[${index}].id`,
    code: 'invalid_value',
  });
}

function brokenMessage({ role, content }: Item, index: number): Refusal | null {
  if (!ROLES.has(role)) {
    return unsupported(role, "'assistant', 'system', 'developer', and 'user'", `input[${index}].role`);
  }
  if (content === undefined || content === null) return missing(`input[${index}].content`);
  for (const [place, part] of (Array.isArray(content) ? content : []).entries()) {
    const type: unknown = isRecord(part) ? part['type'] : undefined;
    const param = `input[${index}].content[${place}]`;
    if (role === 'assistant' && type !== 'output_text' && type !== 'refusal') {
      return unsupported(type, "'output_text' and 'refusal'", param);
    }
    if (type === undefined || type === 'text') {
      return unsupported(type, `${INPUT_PARTS.map((name) => `'${name}'`).join(', ')}, and 'summary_text'`, param);
    }
  }
  return null;
}

function brokenPairing(items: readonly Item[]): Refusal | null {
  const open = new Map<string, string>();
  const called = new Set<string>();
  for (const item of items) {
    const callId = callIdOf(item);
    if (callId === null) continue;
    const kind = typeOf(item).replaceAll('_', ' ');
    if (typeOf(item).endsWith('_call')) {
      open.set(callId, kind);
      called.add(callId);
    } else if (called.has(callId)) {
      open.delete(callId);
    } else {
      return openaiError(400, `No tool call found for ${kind} with call_id ${callId}.`, { param: 'input' });
    }
  }
  for (const [callId, kind] of open) {
    return openaiError(400, `No tool output found for ${kind} ${callId}.`, { param: 'input' });
  }
  return null;
}

function brokenReasoning(items: readonly Item[], store: ResponseStore): Refusal | null {
  for (const [index, item] of items.entries()) {
    const next = items[index + 1];
    const before = items[index - 1];
    const id = idOf(item) ?? '';
    if (typeOf(item) === 'reasoning') {
      if (next !== undefined && (isAssistants(next) || typeOf(next) === 'reasoning')) continue;
      return openaiError(400, `Item '${id}' of type 'reasoning' was provided without its required following item.`, {
        param: 'input',
      });
    }
    const needed = store.item(id)?.reasoningId ?? null;
    if (needed === null || (before !== undefined && idOf(before) === needed)) continue;
    return openaiError(
      400,
      `Item '${id}' of type '${typeOf(item)}' was provided without its required 'reasoning' item: '${needed}'.`,
      { param: 'input' },
    );
  }
  return null;
}

function unsupported(value: unknown, supported: string, param: string): Refusal {
  return openaiError(400, `Invalid value: '${String(value)}'. Supported values are: ${supported}.`, {
    param,
    code: 'invalid_value',
  });
}

function missing(param: string): Refusal {
  return openaiError(400, `Missing required parameter: '${param}'.`, { param, code: 'missing_required_parameter' });
}
