/** What these tests ask of vitest's pool for workerd, and no more of it than they ask. */
declare module 'cloudflare:test' {
  import type { DurableObjectState } from 'cloudflare:workers';
  import type { Bindings } from '../../src/worker/bindings.js';

  export const env: Bindings;
  /** Ends every Durable Object; what they stored stays. */
  export function abortAllDurableObjects(): Promise<void>;
  /** Runs the alarm that is set, if one is. */
  export function runDurableObjectAlarm(stub: unknown): Promise<boolean>;
  /** Runs `work` inside an object. */
  export function runInDurableObject<T>(
    stub: unknown,
    work: (instance: unknown, state: DurableObjectState) => T | Promise<T>,
  ): Promise<T>;
}
