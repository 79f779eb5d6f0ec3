import { readConfig, type Config } from '../config.js';
import { SpillwayError } from '../core/errors.js';

export interface WorkerConfig extends Config {
  readonly tenantSecret: string;
}

/** Settings of a program on a machine of its own, which has an address and files, and is stopped. */
const NOT_HERE = /^SPILLWAY_(HOST|PORT|DATA_DIR|STORE|SQLITE_\w+|REDIS_\w+|DRAIN_SECONDS)$/;

/** What holds where nothing is set. An isolate has 128 MB for all its requests, and a body is there as bytes, as text and as values. */
const DEFAULTS = { SPILLWAY_BODY_LIMIT: '16MiB' };

/** A Worker is reached from everywhere, and listens on no port of its own. */
const FIXED = { SPILLWAY_HOST: '0.0.0.0', SPILLWAY_PORT: '0' };

/**
 * The settings among a Worker's bindings, variables and secrets alike. Throws `invalid_setting` as `readConfig` does, for a setting
 * that means nothing here, and where `SPILLWAY_TENANT_SECRET` is missing: instances that share a store share it, and there is no file
 * to keep one in.
 */
export function readWorkerConfig(bindings: Readonly<Record<string, unknown>>): WorkerConfig {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(bindings)) {
    if (name.startsWith('SPILLWAY_') && typeof value === 'string' && value.trim() !== '') given[name] = value;
  }
  const strangers = Object.keys(given).filter((name) => NOT_HERE.test(name));
  if (strangers.length > 0)
    throw invalid(strangers, 'means nothing in a Worker, whose address, store and end are the platform’s');
  const config = readConfig({ ...DEFAULTS, ...given, ...FIXED });
  const { tenantSecret } = config;
  if (tenantSecret === null) throw invalid(['SPILLWAY_TENANT_SECRET'], 'must be set, as a secret of the Worker');
  return { ...config, tenantSecret };
}

function invalid(names: readonly string[], reason: string): SpillwayError {
  return new SpillwayError('invalid_setting', names.map((name) => `${name}: ${reason}`).join('\n'), names.join(', '));
}
