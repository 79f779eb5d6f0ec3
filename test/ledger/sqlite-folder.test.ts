import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makePrivateFolder } from '../../src/ledger/sqlite-folder.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'spillway-folder-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it('a folder is made with all that is missing above it, for its owner alone, and again without complaint', () => {
  const path = join(root, 'a', 'b', 'c');
  for (let time = 0; time < 2; time++) makePrivateFolder(path);
  for (const made of [path, join(root, 'a')]) expect(statSync(made).mode & 0o777).toBe(0o700);
});

it('a folder below a file, or where a link leads nowhere, is the system’s error', () => {
  writeFileSync(join(root, 'file'), '');
  expect(() => makePrivateFolder(join(root, 'file', 'a'))).toThrow(/ENOTDIR/);
  symlinkSync(join(root, 'nowhere'), join(root, 'link'));
  expect(() => makePrivateFolder(join(root, 'link'))).toThrow(/EEXIST/);
});

it.runIf(existsSync('/proc/self'))(
  'a folder where none can be made ends in an error, not in a search without end',
  () => {
    expect(() => makePrivateFolder('/proc/x/y')).toThrow(/ENOENT/);
  },
);
