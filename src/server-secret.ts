import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SpillwayError } from './core/errors.js';
import { makePrivateFolder } from './ledger/sqlite-folder.js';

const FILE = 'secret.key';
const SECRET_BYTES = 32;

/**
 * The secret that keys tenants and command tags (SPEC 1.1): made in the data folder on first start, readable by its owner
 * only. Rejects with `store_unavailable` if it can be neither read nor written, or is no secret.
 */
export async function serverSecret(dataDir: string): Promise<string> {
  const file = join(dataDir, FILE);
  try {
    makePrivateFolder(dataDir);
    // Exclusive: of two that start at once, the second reads what the first wrote.
    await writeFile(file, randomBytes(SECRET_BYTES).toString('base64url'), { mode: 0o600, flag: 'wx' }).catch(
      ignoreExisting,
    );
    const secret = (await readFile(file, 'utf8')).trim();
    if (secret.length >= 32) return secret;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw unusable(`cannot read or make ${file} (${code})`, error);
  }
  throw unusable(
    `${file} is damaged: it holds no secret of 32 characters or more. Restore it; if you remove it, a new one is made, with which credentials no longer find what they stored`,
  );
}

function unusable(reason: string, cause?: unknown): SpillwayError {
  return new SpillwayError('store_unavailable', `SPILLWAY_DATA_DIR: ${reason}`, 'SPILLWAY_DATA_DIR', cause);
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
}
