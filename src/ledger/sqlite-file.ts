import { statSync } from 'node:fs';
import { SpillwayError } from '../core/errors.js';
import type { SqlDatabase } from './sql-database.js';

/**
 * A database in a file that may be removed or replaced while it is open. What is written then goes where nobody can open it any more,
 * so each transaction first looks whether the file is still the one it has: if not, the database is connected to the file anew and
 * this one transaction is `store_unavailable`. `connect` opens the file, made anew if it is missing.
 */
export function sqliteFile(file: string, connect: () => SqlDatabase): SqlDatabase {
  let open: { readonly db: SqlDatabase; readonly identity: string | null } | null = null;
  let isClosed = false;
  const current = (): SqlDatabase => {
    if (open === null) {
      if (isClosed) throw new SpillwayError('store_unavailable', 'The store cannot answer (closed).');
      const db = connect();
      open = { db, identity: identityOf(file) };
    }
    return open.db;
  };
  const checked = (): SqlDatabase => {
    if (open === null || identityOf(file) === open.identity) return current();
    // Closed first: it takes its log files with it, which must not be read as those of the new file.
    const lost = open.db;
    open = null;
    lost.close();
    current();
    throw new SpillwayError(
      'store_unavailable',
      'The data file was removed or replaced while it was in use; what it held is not there any more.',
    );
  };
  current();
  return {
    run: (sql, ...values) => current().run(sql, ...values),
    all: (sql, ...values) => current().all(sql, ...values),
    transaction: (work) => checked().transaction(work),
    close() {
      isClosed = true;
      open?.db.close();
      open = null;
    },
  };
}

/** Tells a file from another of the same name; null where there is none to be seen. */
function identityOf(file: string): string | null {
  try {
    const { dev, ino } = statSync(file);
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}
