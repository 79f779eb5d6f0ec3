import { existsSync } from 'node:fs';
import { readConfig } from './config.js';
import type { Config } from './config.js';
import { readFlags, takeFlags } from './config/flags.js';
import { settingFlags } from './config/settings.js';
import { SpillwayError } from './core/errors.js';
import { exportConversations } from './ledger/export-conversations.js';
import { writeExportLine } from './ledger/export-line.js';
import { openLedger, sqliteFile } from './open-ledger.js';
import type { Surroundings } from './surroundings.js';

export const EXPORT_HELP = `Options of export, which writes stored conversations to standard output as lines of JSON:

  --conversation id    only this one; may be given more than once
  --tenant tenant      only those of this tenant

and the settings of serve that say where conversations are kept, as flags or environment variables (SPILLWAY_STORE,
SPILLWAY_DATA_DIR, …). A proxy may go on using the store meanwhile: each conversation is written as it was when its turn came. Deleted
conversations are left out, and so is what was learned of windows.
`;

/** A note of the progress comes with so many lines. */
const NOTE_EVERY = 10_000;

/** Runs `spillway export`. Resolves to the exit status. */
export async function exportCommand(args: readonly string[], around: Surroundings): Promise<number> {
  const { taken, rest } = takeFlags(args, ['conversation', 'tenant']);
  const config = readConfig(around.env, readFlags(rest, settingFlags()));
  const tenants = taken.get('tenant') ?? [];
  if (tenants.length > 1) throw new SpillwayError('invalid_setting', '--tenant: may be given once', '--tenant');
  requireStore(config);
  const store = await openLedger({ ...config, mode: 'observe' });
  try {
    const selection = { ids: taken.get('conversation') ?? null, tenant: tenants[0] ?? null };
    let [conversations, lines] = [0, 0];
    for await (const line of exportConversations({ ledger: store, directory: store }, selection)) {
      await around.write(writeExportLine(line)).catch(stopWriting);
      if (line.type === 'conversation') conversations += 1;
      if (line.type === 'end') around.note(`Exported: ${line.conversations} conversations, ${line.records} records`);
      else if (++lines % NOTE_EVERY === 0) around.note(`… ${conversations} conversations, ${lines} lines`);
    }
    return 0;
  } finally {
    await store.close();
  }
}

/** A mistyped folder shall not become an empty store, and an empty export. */
function requireStore(config: Config): void {
  requirePersistence(config);
  if (config.store !== 'sqlite' || existsSync(sqliteFile(config))) return;
  throw new SpillwayError(
    'store_unavailable',
    `SPILLWAY_DATA_DIR: there is no ${sqliteFile(config)}`,
    'SPILLWAY_DATA_DIR',
  );
}

/** Throws `invalid_setting` where nothing outlives the process. */
export function requirePersistence({ store }: Pick<Config, 'store'>): void {
  if (store !== 'memory') return;
  throw new SpillwayError('invalid_setting', 'SPILLWAY_STORE: memory keeps nothing to move', 'SPILLWAY_STORE');
}

function stopWriting(error: unknown): never {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  throw new SpillwayError('store_unavailable', `the export could not be written (${code})`, null, error);
}
