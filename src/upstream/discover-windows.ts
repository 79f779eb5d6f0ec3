import { isPlausible } from '../core/windows.js';

/** Most models of one list that are kept; the largest lists known have some hundreds. */
const MOST_MODELS = 5_000;
const DEEPEST = 3;

/**
 * Names under which servers tell a model's window, the surest first: what is loaded and running, what the endpoint
 * offers, and last what only bounds it (the input alone, or what the model was trained for). Among equals the smallest
 * holds, since one that is too small compacts early and one too large is refused.
 */
const FIELDS: readonly ReadonlySet<string>[] = [
  new Set(['loaded_context_length', 'max_model_len', 'n_ctx', 'ctx_size', 'max_seq_len']),
  new Set([
    'context_length',
    'context_window',
    'contextWindow',
    'context_size',
    'max_context_length',
    'max_context_tokens',
    'max_context_window_tokens',
    'availableContextTokens',
  ]),
  new Set(['max_input_tokens', 'max_prompt_tokens', 'inputTokenLimit', 'n_ctx_train']),
];

/** Where in an entry such a field may stand. */
const CONTAINERS: ReadonlySet<string> = new Set([
  'meta',
  'metadata',
  'model_info',
  'model_spec',
  'capabilities',
  'limits',
  'top_provider',
  'providers',
  'loaded_instances',
  'config',
]);

/**
 * The windows that the answer to `GET /v1/models` tells of, in tokens by the id a client sends (SPEC 6.5). Whatever is no
 * list, no entry or no plausible number is passed over.
 */
export function discoverWindows(body: unknown): ReadonlyMap<string, number> {
  const windows = new Map<string, number>();
  for (const entry of entriesOf(body).slice(0, MOST_MODELS)) {
    const id = ['id', 'key', 'name', 'model'].map((name) => entry[name]).find((value) => typeof value === 'string');
    const tokens = windowOf(entry);
    if (typeof id !== 'string' || tokens === null) continue;
    windows.set(id, Math.min(tokens, windows.get(id) ?? tokens));
  }
  return windows;
}

type JsonObject = Readonly<Record<string, unknown>>;

function entriesOf(body: unknown): readonly JsonObject[] {
  if (Array.isArray(body)) return body.filter(isObject);
  if (!isObject(body)) return [];
  return [body['data'], body['models']].flatMap((list) => (Array.isArray(list) ? list.filter(isObject) : []));
}

function windowOf(entry: JsonObject): number | null {
  const told = fieldsOf(entry, 0);
  for (const names of FIELDS) {
    const counts = told.flatMap(([name, value]) => (names.has(name) ? (countOf(value) ?? []) : []));
    if (counts.length > 0) return Math.min(...counts);
  }
  return null;
}

function fieldsOf(value: JsonObject, depth: number): readonly (readonly [name: string, value: unknown])[] {
  return Object.entries(value).flatMap(([name, member]): readonly (readonly [string, unknown])[] => {
    if (name === 'status' && isObject(member)) return launchArguments(member['args']);
    if (!CONTAINERS.has(name) || depth >= DEEPEST) return [[name, member]];
    return (Array.isArray(member) ? member : [member]).filter(isObject).flatMap((inner) => fieldsOf(inner, depth + 1));
  });
}

/** A llama.cpp router lists the command line of each server that it starts. */
function launchArguments(args: unknown): readonly (readonly [string, unknown])[] {
  if (!Array.isArray(args)) return [];
  return args.flatMap((argument, index): readonly (readonly [string, unknown])[] =>
    argument === '--ctx-size' || argument === '-c' ? [['ctx_size', args[index + 1]]] : [],
  );
}

/** A count, written as a number or in digits. */
function countOf(value: unknown): number | null {
  const count = typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value;
  return typeof count === 'number' && isPlausible(count, null) ? count : null;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
