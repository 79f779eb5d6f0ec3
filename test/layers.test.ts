import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** A rule, where a file that breaks it stands, and what is in it. */
type Offence = readonly [rule: string, path: string, text: string];

const imports = 'eslint(no-restricted-imports)';
const undefinedName = 'eslint(no-undef)';
const restrictedGlobal = 'eslint(no-restricted-globals)';
const restrictedProperty = 'eslint(no-restricted-properties)';

/** The rules that carry the layers. */
const layerRules = [imports, undefinedName, restrictedGlobal, restrictedProperty];

const siblings = ['sse', 'tokens', 'dialects', 'ledger', 'upstream'];

const offences: readonly Offence[] = [
  // The core is pure.
  [imports, 'src/core/a', "export { readFile } from 'node:fs/promises';"],
  [imports, 'src/core/a', "export { z } from 'zod';"],
  [imports, 'src/core/a', "export type { Dialect } from '../dialects/dialect.js';"],
  [imports, 'src/core/compaction/a', "export type { Dialect } from '../../dialects/dialect.js';"],
  [imports, 'src/core/compaction/deep/a', "export type { Dialect } from '../../../dialects/dialect.js';"],
  [imports, 'src/core/a', "export const later = () => import('../proxy/turn.js');"],
  ['typescript(consistent-type-imports)', 'src/core/a', "export type A = import('../proxy/turn.js').Turn;"],
  [restrictedGlobal, 'src/core/a', 'export const now = () => Date.now();'],
  [restrictedGlobal, 'src/core/a', 'export const now = () => new Date();'],
  [restrictedGlobal, 'src/core/a', "export const home = () => globalThis['process'];"],
  [restrictedProperty, 'src/core/a', 'export const chance = () => Math.random();'],
  [restrictedProperty, 'src/core/a', 'export const { random } = Math;'],
  ...[
    'process.env',
    'crypto.randomUUID()',
    "fetch('/')",
    'setTimeout(() => 1, 1)',
    'performance.now()',
    'Buffer.of(1)',
  ].map((text): Offence => [undefinedName, 'src/core/a', `export const a = () => ${text};`]),

  // Siblings know the core and not each other, nor what is built on them.
  ...siblings.flatMap((from) =>
    [...siblings, 'proxy', 'http', 'simulator']
      .filter((to) => to !== from)
      .map((to): Offence => [imports, `src/${from}/a`, `export { a } from '../${to}/b.js';`]),
  ),

  // What is above imports what is below, never the reverse.
  [imports, 'src/proxy/a', "export { a } from '../http/app.js';"],
  [imports, 'src/simulator/a', "export { a } from '../proxy/turn.js';"],
  [imports, 'src/simulator/a', "export { a } from '../dialects/chat-completions.js';"],
  [imports, 'src/proxy/a', "export { a } from '../simulator/answer.js';"],
  [imports, 'src/http/a', "export { a } from '../config.js';"],
  [imports, 'src/http/a', "export { a } from '../config/values.js';"],

  // Only composition roots choose a driver.
  [imports, 'src/proxy/a', "export { a } from '../ledger/sqlite.js';"],
  [imports, 'src/http/a', "export { a } from '../ledger/memory.js';"],
  [imports, 'src/proxy/a', "export { a } from '../upstream/node-send.js';"],
  [imports, 'src/http/routes/a', "export { a } from '../../upstream/fetch-send.js';"],
  [imports, 'src/http/node-a', "export { a } from '../upstream/node-send.js';"],

  // The environment belongs to the roots and config.ts.
  [undefinedName, 'src/proxy/a', 'export const a = process.env;'],
  [restrictedProperty, 'src/ledger/sqlite', 'export const a = process.env;'],
  [imports, 'src/ledger/sqlite', "export { env } from 'node:process';"],
  [restrictedProperty, 'src/simulator/a', 'export const { argv } = process;'],
  [restrictedGlobal, 'src/proxy/a', 'export const a = globalThis.process;'],

  // What runs in a Worker asks nothing of Node.
  [imports, 'src/proxy/a', "export { Readable } from 'node:stream';"],
  [imports, 'src/http/a', "export type { Agent } from 'undici';"],
  [imports, 'src/http/a', "export { a } from '../tokens/node-ranks.js';"],
  [imports, 'src/upstream/a', "export { a } from './node-send.js';"],
  [imports, 'src/ledger/sql', "export { default as Database } from 'better-sqlite3';"],
  [imports, 'src/worker.ts', "export { a } from './upstream/node-send.js';"],
  [imports, 'src/worker/a', "export { a } from '../upstream/decode-body.js';"],
  [imports, 'src/worker/a', "export { a } from '../ledger/sqlite.js';"],
  [imports, 'src/worker/a', "export { a } from '../node.js';"],
  [imports, 'src/worker/a', "export { a } from '../simulator/simulator.js';"],
  [imports, 'src/http/a', "export { a } from '../worker/log.js';"],
  ['unicorn(prefer-node-protocol)', 'src/proxy/a', "export { Readable } from 'stream';"],
  [undefinedName, 'src/proxy/a', "export const a = Buffer.from('a');"],

  // House rules that no type check covers.
  ['typescript(no-explicit-any)', 'src/proxy/a', 'export const a = (b: any): unknown => b;'],
  ['typescript(no-non-null-assertion)', 'src/proxy/a', 'export const a = (b: string | null): string => b!;'],
  ['typescript(no-unsafe-type-assertion)', 'src/proxy/a', 'export const a = (b: unknown): string => b as string;'],
  ['typescript(no-floating-promises)', 'src/proxy/a', 'export const a = (b: Promise<string>) => { b.then(String); };'],
  [
    'typescript(consistent-type-imports)',
    'src/proxy/a',
    "import { A } from './b.js';\nexport const a = (b: A): A => b;",
  ],
  [
    'typescript(switch-exhaustiveness-check)',
    'src/proxy/a',
    "export function a(b: 'c' | 'd'): void { switch (b) { case 'c': a('d'); } }",
  ],
  ['eslint(eqeqeq)', 'src/proxy/a', 'export const a = (b: string): boolean => b == "";'],
  ['eslint(no-unused-vars)', 'src/proxy/a', 'const a = 1;'],
  ['eslint(no-console)', 'src/proxy/a', "export const a = () => console.log('a');"],
  ['import(no-default-export)', 'src/proxy/a', 'export default 1;'],
  ['vitest(no-focused-tests)', 'test/a', "import { it } from 'vitest';\nit.only('a', () => undefined);"],
];

/** What each layer is free to do: none of it is an offence against the layer rules. */
const allowed: readonly (readonly [path: string, text: string])[] = [
  ['src/core/compaction/a', "export { a } from '../message.js';\nexport type A = AbortSignal;"],
  ...siblings.map((folder) => [`src/${folder}/a`, "export { a } from '../core/message.js';"] as const),
  ['src/proxy/a', "export { a } from '../dialects/dialect.js';\nexport { b } from '../upstream/upstream.js';"],
  ['src/proxy/a', 'export const a = () => [new TextEncoder(), new AbortController(), setTimeout];'],
  ['src/http/routes/a', "export { a } from '../../proxy/request.js';\nexport { Hono } from 'hono';"],
  ['src/simulator/a', "export { a } from '../tokens/b.js';\nexport { createServer } from 'node:http';"],
  ['src/upstream/node-send', "export { Agent } from 'undici';\nexport const a = Buffer.from('a');"],
  [
    'src/ledger/sqlite',
    "export { a } from './sql.js';\nexport { join } from 'node:path';\nexport const b = process.versions;",
  ],
  [
    'src/worker/a',
    "export { a } from '../compose.js';\nexport { b } from '../config.js';\nexport { c } from '../upstream/fetch-send.js';",
  ],
  ['src/cli.ts', "export { a } from './ledger/sqlite.js';\nexport const b = process.env;\nconsole.log(b);"],
];

const report = z.object({ diagnostics: z.array(z.object({ code: z.string(), filename: z.string() })) });

const root = join(import.meta.dirname, '..');

/**
 * Lints each text as if it stood at its path in this repository, in one run with its own rules; the rules broken, text by
 * text. A path without an ending gets one that is its own, so that many texts may stand at one place.
 */
function lint(texts: readonly (readonly [path: string, text: string])[]): readonly ReadonlySet<string>[] {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-layers-'));
  try {
    for (const file of ['oxlint.config.mjs', 'tsconfig.json']) cpSync(join(root, file), join(folder, file));
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const files = texts.map(([path, text], index) => {
      const file = path.endsWith('.ts') ? path : `${path}-${index}.ts`;
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), `${text}\n`, { flag: 'wx' });
      return file;
    });
    const args = ['-c', 'oxlint.config.mjs', '--type-aware', '--format=json', 'src', 'test'];
    const run = spawnSync(join(root, 'node_modules/.bin/oxlint'), args, { cwd: folder, encoding: 'utf8' });
    const { diagnostics } = report.parse(JSON.parse(run.stdout));
    return files.map(
      (file) => new Set(diagnostics.filter(({ filename }) => filename === file).map(({ code }) => code)),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('lint', () => {
  it('names every import against the layers and every breach of a house rule', () => {
    const broken = lint(offences.map(([, path, text]) => [path, text]));
    const missed = offences.filter(([rule], index) => broken[index]?.has(rule) !== true);
    expect(missed).toEqual([]);
  });

  it('lets each layer do what is its own', () => {
    const broken = lint(allowed);
    const stopped = allowed.filter((_, index) => layerRules.some((rule) => broken[index]?.has(rule)));
    expect(stopped).toEqual([]);
  });

  it('knows every folder of src, however deep', () => {
    const folders = readdirSync(join(root, 'src'), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)));
    const broken = lint(folders.map((path) => [`${path}/a`, `export { a } from '${relative(path, 'src')}/cli.js';`]));
    expect(folders.length).toBeGreaterThan(siblings.length);
    expect(folders.filter((_, index) => broken[index]?.has(imports) !== true)).toEqual([]);
  });
});

describe('the core', () => {
  it('bundles for a platform that has nothing but the language', async () => {
    const files = readdirSync(join(root, 'src/core'), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => join(entry.parentPath, entry.name));
    const result = await build({
      entryPoints: files,
      outdir: '/',
      bundle: true,
      write: false,
      metafile: true,
      platform: 'neutral',
      format: 'esm',
      absWorkingDir: root,
      logLevel: 'silent',
    });
    const outside = Object.keys(result.metafile.inputs).filter((path) => !path.startsWith('src/core/'));
    expect(outside).toEqual([]);
    expect(files.length).toBeGreaterThan(0);
  });
});
