/**
 * Measurements, never part of pass or fail: `npm run bench -- [--json FILE] [--only PART] [--profile FOLDER]`. Ends by
 * itself within four minutes. PART is one of `overhead`, `identity`, `ledger`, `tokens`, or a part of the name of a
 * request of `overhead`, such as `overhead:400 kB`. With --profile node writes a processor profile of Spillway there.
 */
import { writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { measureIdentity } from './identity.js';
import { measureLedger } from './ledger.js';
import { measureOverhead } from './overhead.js';
import type { Table } from './table.js';
import { measureTokens } from './tokens.js';

const { values } = parseArgs({
  options: { json: { type: 'string' }, only: { type: 'string', default: '' }, profile: { type: 'string' } },
});
const [part = '', request = ''] = values.only.split(':');

const parts: Readonly<Record<string, () => Promise<readonly Table[]>>> = {
  overhead: () => measureOverhead({ only: request, profileFolder: values.profile ?? null }),
  identity: async () => [measureIdentity()],
  ledger: async () => [await measureLedger()],
  tokens: measureTokens,
};

const tables: Table[] = [];
for (const [name, measure] of Object.entries(parts)) {
  if (part !== '' && part !== name) continue;
  for (const table of await measure()) {
    console.log(`\n${table.title}\n${table.note}`);
    console.table(table.rows);
    tables.push(table);
  }
}

const machine = { node: process.version, processors: availableParallelism(), load: loadavg()[0] ?? 0 };
console.log(`\nnode ${machine.node}, ${machine.processors} processors, load ${machine.load.toFixed(1)}.`);
if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify({ machine, tables }, null, 2)}\n`);
