import type { DurableObjectNamespace } from 'cloudflare:workers';
import type { ConversationMethods } from '../ledger/durable-conversation.js';
import type { DirectoryMethods } from '../ledger/durable-directory.js';
import type { DurableObjects } from '../ledger/durable-ledger.js';

/** What wrangler.toml binds; the settings stand beside it. */
export interface Bindings {
  readonly CONVERSATIONS: DurableObjectNamespace<ConversationMethods>;
  readonly DIRECTORIES: DurableObjectNamespace<DirectoryMethods>;
  readonly [setting: string]: unknown;
}

/** The name of the directory of all tenants; no tenant is called so. */
export const ALL_TENANTS = '*';

/** The objects by name: one for each conversation, one for each tenant, one for the operator. */
export function objectsOf({ CONVERSATIONS, DIRECTORIES }: Bindings): DurableObjects {
  return {
    conversation: (id) => CONVERSATIONS.getByName(id),
    directory: (tenant) => DIRECTORIES.getByName(tenant ?? ALL_TENANTS),
  };
}
