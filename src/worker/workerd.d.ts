/** What this program asks of the Workers runtime beyond web standards, and no more of it than it asks. */

declare module 'cloudflare:workers' {
  export class DurableObject<Env = unknown> {
    constructor(ctx: DurableObjectState, env: Env);
    protected readonly ctx: DurableObjectState;
    protected readonly env: Env;
  }

  /** Keeps the current request alive, after its response too, until the promise settles; about 30 seconds at most. */
  export function waitUntil(work: Promise<unknown>): void;

  export interface DurableObjectState {
    readonly id: { readonly name?: string };
    readonly storage: DurableObjectStorage;
  }

  export interface DurableObjectStorage {
    readonly sql: { exec(query: string, ...values: readonly unknown[]): { toArray(): Record<string, unknown>[] } };
    transactionSync<T>(work: () => T): T;
    deleteAll(): Promise<void>;
    getAlarm(): Promise<number | null>;
    setAlarm(time: number): Promise<void>;
  }

  /** `Methods` are those of the object's class that the runtime lets through. */
  export interface DurableObjectNamespace<Methods> {
    getByName(name: string): Methods;
  }
}

/** A token's bytes and the like: see the rules in wrangler.toml. */
declare module '*.ranks' {
  const bytes: ArrayBuffer;
  export default bytes;
}

/** A pipe whose writer waits for its reader. */
declare class IdentityTransformStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}

/** The same for a body of a known length, which becomes its `content-length`. */
declare class FixedLengthStream extends IdentityTransformStream {
  constructor(lengthBytes: number);
}
