import { CANONICAL_VERSION, chainIds, rootDigest } from '../core/canonical.js';
import type { Hash } from '../core/ports.js';
import type { WireItem } from '../dialects/dialect.js';
import { insistsOnAlternation } from '../dialects/vendors.js';
import { taggedCommands } from './command.js';
import type { Incoming } from './open-turn.js';
import type { Sign } from './tenant.js';

/**
 * The body of a request that the ledger does not know, without the commands in it and their answers, as the tags prove them
 * (SPEC 4.9). Null if it holds none, or nests too deep to be written anew: then it stays as it came.
 */
export function leaveOutCommands(
  incoming: Incoming,
  deps: { readonly hash: Hash; readonly sign: Sign },
): Uint8Array | null {
  const { dialect, read, body, request, tenant } = incoming;
  try {
    const root = rootDigest(deps.hash, tenant, dialect.name, CANONICAL_VERSION);
    const left = taggedCommands(chainIds(deps.hash, root, read.messages), read.messages, deps.sign);
    if (left.length === 0) return null;
    const leading = read.instructions.length;
    const out = new Set(left.map((index) => leading + index));
    const items = Array.from({ length: leading + read.messages.length }, (_, index): WireItem => ({
      kind: 'kept',
      index,
    }));
    const alternate = insistsOnAlternation(new URL(request.upstream.baseUrl).hostname);
    const kept = items.filter((_, index) => !out.has(index));
    return new TextEncoder().encode(dialect.write(body.text, kept, { askForUsage: false, alternate }));
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
