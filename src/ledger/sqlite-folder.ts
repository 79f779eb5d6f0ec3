import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those missing above it, for this user alone; one that is there stays as it is. Throws the system's
 * error. Step by step, because Node's `recursive` never ends in a place such as /proc, where every new name is said to be
 * missing.
 */
export function makePrivateFolder(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makePrivateFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!existsSync(path)) throw error;
  }
}
