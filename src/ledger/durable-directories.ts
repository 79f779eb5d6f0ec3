import type { Directory } from '../core/ports.js';
import { unwrap } from './durable-answer.js';
import type { DurableObjects } from './durable-ledger.js';

/**
 * The directory over the objects of all tenants, and the one in which the operator sees them together. That one is told beside
 * the tenant's own, and may lag further: a failure of it fails nothing.
 */
export function createDurableDirectories({ directory }: Pick<DurableObjects, 'directory'>): Directory {
  const everywhere = async <T>(tenant: string, tell: (of: string | null) => Promise<T>): Promise<T> => {
    const [result] = await Promise.all([tell(tenant), tell(null).catch(() => undefined)]);
    return result;
  };
  return {
    list: (tenant, limit, before) => unwrap(directory(tenant).ask('list', [tenant, limit, before])),
    oldest: (tenant, limit) => unwrap(directory(tenant).ask('oldest', [tenant, limit])),
    tenants: () => unwrap(directory(null).ask('tenants', [])),
    refer: (tenant, references) => unwrap(directory(tenant).ask('refer', [tenant, references])),
    resolve: (tenant, ids) => unwrap(directory(tenant).ask('resolve', [tenant, ids])),
    learnedWindows: (tenant, limit) => unwrap(directory(tenant).ask('learnedWindows', [tenant, limit])),
    learnWindow: (window) => everywhere(window.tenant, (of) => unwrap(directory(of).ask('learnWindow', [window]))),
    widenWindow: (key, tokens) =>
      everywhere(key.tenant, (of) => unwrap(directory(of).ask('widenWindow', [key, tokens]))),
    forgetWindow: (key) => everywhere(key.tenant, (of) => unwrap(directory(of).ask('forgetWindow', [key]))),
    forgetWindows: (tenant) => everywhere(tenant, (of) => unwrap(directory(of).ask('forgetWindows', [tenant]))),
  };
}
