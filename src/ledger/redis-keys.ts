/**
 * The names of all keys. Everything of a conversation has one hash tag, so that it lies in one slot of a Cluster and a
 * script may touch all of it; everything of a tenant's directory has another.
 */
export class RedisKeys {
  readonly #prefix: string;

  /** `prefix` begins every key; it must hold no brace, which would be a hash tag of its own. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** In the order in which every script of a conversation receives them. */
  conversation(id: string): readonly string[] {
    return CONVERSATION_KEYS.map((name) => `${this.#prefix}{${keyPart(id)}}:${name}`);
  }

  /** In the order in which every script of a directory receives them. */
  directory(tenant: string): readonly string[] {
    return DIRECTORY_KEYS.map((name) => `${this.#prefix}{t:${keyPart(tenant)}}:${name}`);
  }

  get tenants(): string {
    return `${this.#prefix}tenants`;
  }

  get schema(): string {
    return `${this.#prefix}schema`;
  }
}

/**
 * fields: what a conversation is and its counters. nodes: id → seq, header and content. places: id → where it stands.
 * order: ids by seq. counts: id → tokens. deleted: id → when. texts, textOrder: instructions and reductions by digest.
 * calls, callOrder: records by id. marks: records by kind and head. index: what was set at which node, ordered by depth.
 * leases: by head. cache: shared values that may vanish.
 */
const CONVERSATION_KEYS = [
  'fields',
  'nodes',
  'places',
  'order',
  'counts',
  'deleted',
  'texts',
  'textOrder',
  'calls',
  'callOrder',
  'marks',
  'index',
  'leases',
  'cache',
] as const;

/**
 * used: conversations by last use. known: id → last use and bytes. total: bytes of all. references, referenced: what an
 * upstream's ids lead to, and which of them go with a conversation. windows: what was learned.
 */
const DIRECTORY_KEYS = ['used', 'known', 'total', 'references', 'referenced', 'windows'] as const;

/** A name as a part of a key or of an entry in an index: no brace, no white space, different for different names. */
export function keyPart(name: string): string {
  return /^[\w.-]+$/.test(name) ? name : `~${Buffer.from(JSON.stringify(name)).toString('base64url')}`;
}
