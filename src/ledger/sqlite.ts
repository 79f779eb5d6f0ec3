import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { SpillwayError } from '../core/errors.js';
import type { Clock, Directory, Ledger } from '../core/ports.js';
import type { SqlDatabase, SqlValue } from './sql-database.js';
import { SqlLedger } from './sql-ledger.js';
import { migrate, migrations } from './sql-schema.js';
import { sqliteDatabase, storeUnavailable, type SqliteHandle } from './sqlite-database.js';
import { sqliteFile } from './sqlite-file.js';
import { makePrivateFolder } from './sqlite-folder.js';

export interface SqliteOptions {
  /** Path of the data file; it and a missing folder are made, for this user alone. */
  readonly file: string;
  /**
   * When a write is on the disk. `normal`: a kill of the process loses nothing, a power cut may lose the last moments but
   * breaks nothing. `full`: nor does a power cut lose anything; about a quarter of the speed.
   */
  readonly durability: 'normal' | 'full';
  /** How long a write waits for another process that holds the file. The process stands still that long. */
  readonly busyTimeoutMs: number;
  readonly clock: Clock;
}

const SETTINGS = [
  // What was erased is overwritten, not only unlinked (SPEC 2.6).
  'secure_delete = ON',
  // Pages of a busy conversation are written to the file once for many turns; a log that a large write made long is cut again.
  'wal_autocheckpoint = 4000',
  'journal_size_limit = 67108864',
];

/** By the codes of both packages. */
const DAMAGED = /SQLITE_(?:NOTADB|CORRUPT)|ERR_SQLITE_ERROR (?:26|11)\b/;
const DAMAGED_ADVICE = 'It is damaged or no database: restore it, or move it away and a new one is made.';

/** Opens a file; `SqliteHandle` is what both of Node's SQLite packages fit. */
export type OpenSqlite = (file: string) => SqliteHandle;

/**
 * The ledger in a SQLite file in WAL mode (SPEC 2.4). Rejects with `store_unavailable` of the field `file` if that cannot be
 * used: locked, no database, newer than this program. `close` folds the log back into the file. `sqlite` is the package
 * to use; by default better-sqlite3, or else Node's own.
 */
export async function openSqliteLedger(options: SqliteOptions, sqlite?: OpenSqlite): Promise<Ledger & Directory> {
  const open = sqlite ?? (await betterSqlite()) ?? nodeSqlite();
  if (open === null) {
    throw new SpillwayError(
      'store_unavailable',
      'No SQLite: better-sqlite3 is not installed, and Node is older than 24.',
    );
  }
  try {
    return new SqlLedger(
      sqliteFile(options.file, () => connect(open, options)),
      options.clock,
    );
  } catch (error) {
    const { message } = storeUnavailable(error);
    throw new SpillwayError(
      'store_unavailable',
      `The data file ${options.file} cannot be used. ${message}${DAMAGED.test(message) ? ` ${DAMAGED_ADVICE}` : ''}`,
      'file',
      error,
    );
  }
}

/** Opens the file as it is to be used, with the tables of the ledger in it. */
function connect(open: OpenSqlite, options: SqliteOptions): SqlDatabase {
  const handle = openPrivate(open, options.file);
  try {
    handle.exec(`PRAGMA busy_timeout = ${Math.trunc(options.busyTimeoutMs)}`);
    handle.exec('PRAGMA journal_mode = WAL');
    handle.exec(`PRAGMA synchronous = ${options.durability === 'full' ? 'FULL' : 'NORMAL'}`);
    for (const setting of SETTINGS) handle.exec(`PRAGMA ${setting}`);
    const db = sqliteDatabase(handle, options.busyTimeoutMs);
    migrate(db, migrations);
    return db;
  } catch (error) {
    handle.close();
    throw error;
  }
}

function openPrivate(open: OpenSqlite, file: string): SqliteHandle {
  try {
    makePrivate(file);
    return open(file);
  } catch (error) {
    throw storeUnavailable(error);
  }
}

/** Before SQLite opens it: it gives the log files the permissions of the data file. */
function makePrivate(file: string): void {
  makePrivateFolder(dirname(file));
  closeSync(openSync(file, 'a', 0o600));
  for (const path of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(path)) chmodSync(path, 0o600);
}

/** better-sqlite3, or null where it, or its compiled part, is not installed. */
export async function betterSqlite(): Promise<OpenSqlite | null> {
  try {
    const { default: Database } = await import('better-sqlite3');
    new Database(':memory:').close();
    return (file) => {
      const database = new Database(file);
      return {
        exec: (sql) => database.exec(sql),
        prepare: (sql) => database.prepare<SqlValue[]>(sql),
        close: () => database.close(),
      };
    };
  } catch {
    return null;
  }
}

/** Node's own SQLite, or null where it is not there or not stable yet. */
export function nodeSqlite(): OpenSqlite | null {
  if (Number.parseInt(process.versions.node, 10) < 24) return null;
  const module: unknown = process.getBuiltinModule('node:sqlite');
  if (!isSqliteModule(module)) return null;
  return (file) => new module.DatabaseSync(file);
}

function isSqliteModule(module: unknown): module is { readonly DatabaseSync: new (file: string) => SqliteHandle } {
  return (
    typeof module === 'object' &&
    module !== null &&
    'DatabaseSync' in module &&
    typeof module.DatabaseSync === 'function'
  );
}
