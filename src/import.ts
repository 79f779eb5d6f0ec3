import { createReadStream } from 'node:fs';
import { readConfig } from './config.js';
import { readFlags } from './config/flags.js';
import { settingFlags } from './config/settings.js';
import { SpillwayError } from './core/errors.js';
import { requirePersistence } from './export.js';
import { importConversations } from './ledger/import-conversations.js';
import type { ImportDeps, ImportReport, LeftBecause } from './ledger/import-conversations.js';
import { linesOf } from './lines-of.js';
import { openLedger } from './open-ledger.js';
import type { Surroundings } from './surroundings.js';

export const IMPORT_HELP = `spillway import FILE takes the conversations of an export over into a store; - reads standard input.

The settings of serve say which store, as flags or environment variables (SPILLWAY_STORE, SPILLWAY_DATA_DIR, …); a proxy may use it
meanwhile. A conversation shows once all of it is there. One that is there before stays as it is, so that an import that broke off
can simply be run again. Exit status: 0, 1 if something of the file is not in the store, 2 for wrong usage.

Times are kept: what was last used longer ago than SPILLWAY_RETENTION_DAYS is erased again by a proxy on that store. Where each
credential is a tenant of its own, clients find their conversations again only under the same tenant secret: take secret.key of the
old data folder along, or set SPILLWAY_TENANT_SECRET.
`;

/** A note of the progress comes with so many records. */
const NOTE_EVERY = 10_000;

const DAY_MS = 24 * 60 * 60_000;

const WHY: Readonly<Record<LeftBecause, string>> = {
  deleted: 'was deleted here; restore or erase it first',
  another_tenant: 'belongs to another tenant here',
  older: 'is here in an earlier state; erase it first to take over that of the file',
};

/** Runs `spillway import`. Resolves to the exit status. */
export async function importCommand(args: readonly string[], around: Surroundings): Promise<number> {
  const [file, ...rest] = args;
  if (file === undefined || (file.startsWith('-') && file !== '-')) {
    throw new SpillwayError('invalid_setting', 'import: name the file first, or - for standard input');
  }
  const config = readConfig(around.env, readFlags(rest, settingFlags()));
  requirePersistence(config);
  const store = await openLedger({ ...config, mode: 'observe' });
  let noted = 0;
  const onProgress: ImportDeps['onProgress'] = ({ conversations, records }) => {
    if (records < noted + NOTE_EVERY) return;
    noted = records;
    around.note(`… ${conversations} conversations, ${records} records read`);
  };
  try {
    const lines = linesOf(file === '-' ? around.input() : bytesOf(file));
    const report = await importConversations(lines, { ledger: store, onProgress });
    for (const line of reportLines(report, config.retention.keepMs)) around.note(line);
    return report.left.length === 0 ? 0 : 1;
  } finally {
    await store.close();
  }
}

function reportLines(
  { conversations, records, skipped, left, oldestUse }: ImportReport,
  keepMs: number | null,
): readonly string[] {
  const isOld = keepMs !== null && oldestUse !== null && oldestUse < Date.now() - keepMs;
  return [
    ...left.map(({ id, because }) => `${id} ${WHY[because]}`),
    `Imported: ${conversations} conversations, ${records} records; ${skipped} were there before, ${left.length} were left out`,
    ...(isOld
      ? [
          `Some were last used more than ${keepMs / DAY_MS} days ago: a proxy erases them, unless SPILLWAY_RETENTION_DAYS is larger or 0`,
        ]
      : []),
  ];
}

async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file, { highWaterMark: 256 * 1024 });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new SpillwayError('invalid_request', `cannot read ${file} (${code})`, 'file', error);
  }
}
