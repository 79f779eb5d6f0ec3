import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commandLine } from '../src/command-line.js';
import type { Surroundings } from '../src/surroundings.js';
import { Chat } from './support/chat.js';
import { openPair } from './support/start.js';
import { conversationsOf, nodesOf } from './support/stored.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-export-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const dataDir = (name: string): string => join(folder, name);

/** Runs a command; what it writes to standard output is `out`, its notes are `notes`. */
async function run(args: readonly string[], around: Partial<Surroundings> = {}) {
  const out: string[] = [];
  const notes: string[] = [];
  const status = await commandLine(args, {
    env: {},
    say: (text) => void out.push(`${text}\n`),
    write: (text) => Promise.resolve(void out.push(text)),
    input: () => bytesOf(''),
    note: (text) => void notes.push(text),
    untilStopped: () => Promise.resolve(),
    ...around,
  });
  return { status, out: out.join(''), notes };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

/** A proxy on a folder, with these first messages said to it. */
async function talk(name: string, ...texts: readonly string[]): Promise<void> {
  const pair = await openPair({ SPILLWAY_DATA_DIR: dataDir(name) });
  for (const text of texts) await new Chat(pair).say(text);
  await pair.close();
}

describe('spillway export and import', () => {
  it('move conversations between stores, and a client goes on where it was', async () => {
    const pair = await openPair({ SPILLWAY_DATA_DIR: dataDir('one') });
    const chat = new Chat(pair);
    for (const text of ['Hello', 'And then?']) await chat.say(text);
    // The proxy goes on using its store.
    const moved = await run(['export', '--data-dir', dataDir('one')]);
    expect(moved).toMatchObject({ status: 0, notes: ['Exported: 1 conversations, 6 records'] });
    const [before] = await conversationsOf(pair);
    await pair.close();

    writeFileSync(join(folder, 'moved.jsonl'), moved.out);
    const there = await openPair({ SPILLWAY_DATA_DIR: dataDir('two') });
    const imported = await run(['import', join(folder, 'moved.jsonl'), '--data-dir', dataDir('two')]);
    expect(imported).toMatchObject({
      status: 0,
      out: '',
      notes: ['Imported: 1 conversations, 6 records; 0 were there before, 0 were left out'],
    });
    expect(await conversationsOf(there)).toEqual([before]);
    const again = new Chat(there);
    again.messages = chat.messages;
    await again.say('Are you still there?');
    const [after] = await conversationsOf(there);
    expect(after).toMatchObject({ id: before?.id, nodes: 6 });
    expect((await nodesOf(there, after?.id ?? '')).length).toBe(6);
    await there.close();
  });

  it('is a pipe where it is wanted, by variable or flag, and the same again from the other side', async () => {
    await talk('one', 'Hello', 'Good day', 'Hi');
    const env = { SPILLWAY_DATA_DIR: dataDir('one') };
    const first = await run(['export'], { env });
    const imported = await run(['import', '-', `--data-dir=${dataDir('two')}`], {
      env,
      input: () => bytesOf(first.out),
    });
    expect(imported.status).toBe(0);
    expect((await run(['export', '--data-dir', dataDir('two')])).out).toBe(first.out);
    // Once more changes nothing.
    const repeated = await run(['import', '-', '--data-dir', dataDir('two')], { input: () => bytesOf(first.out) });
    expect(repeated).toMatchObject({
      status: 0,
      notes: ['Imported: 0 conversations, 0 records; 3 were there before, 0 were left out'],
    });
  });

  it('takes some conversations, or those of a tenant', async () => {
    await talk('one', 'Hello', 'Good day', 'Hi');
    const whole = await run(['export', '--data-dir', dataDir('one')]);
    const ids = [
      ...whole.out.matchAll(/"type":"conversation","conversation":\{"tenant":"local","id":"(c_[^"]+)"/g),
    ].map(([, id]) => id ?? '');
    expect(ids.length).toBe(3);
    const some = await run([
      'export',
      '--data-dir',
      dataDir('one'),
      '--conversation',
      ids[0] ?? '',
      `--conversation=${ids[2]}`,
    ]);
    expect(some.notes).toEqual(['Exported: 2 conversations, 6 records']);
    expect(some.out).not.toContain(ids[1]);
    const none = await run(['export', '--data-dir', dataDir('one'), '--tenant', 'somebody']);
    expect(none).toMatchObject({ status: 0, notes: ['Exported: 0 conversations, 0 records'] });
    const unknown = await run(['export', '--data-dir', dataDir('one'), '--conversation', 'c_none']);
    expect(unknown).toMatchObject({
      status: 1,
      out: '',
      notes: ['spillway: There is no conversation "c_none", or it was deleted.'],
    });
  });
});

describe('an export', () => {
  it('makes no store where there is none', async () => {
    const { status, notes } = await run(['export', '--data-dir', dataDir('mistyped')]);
    expect(status).toBe(1);
    expect(notes).toEqual([`spillway: SPILLWAY_DATA_DIR: there is no ${join(dataDir('mistyped'), 'spillway.db')}`]);
    expect(existsSync(dataDir('mistyped'))).toBe(false);
  });

  it('writes no faster than it is read, and fails when nobody reads any more', async () => {
    await talk('one', 'Hello');
    let writing = 0;
    let lines = 0;
    const write = async (): Promise<void> => {
      expect(++writing).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      writing -= 1;
      if (++lines === 3) throw Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    };
    const { status, notes } = await run(['export', '--data-dir', dataDir('one')], { write });
    expect({ status, notes, lines }).toEqual({
      status: 1,
      notes: ['spillway: the export could not be written (EPIPE)'],
      lines: 3,
    });
  });
});

describe('an import', () => {
  it('of a file that is cut off says so, and shows nothing of what it did not finish', async () => {
    await talk('one', 'Hello');
    const { out } = await run(['export', '--data-dir', dataDir('one')]);
    const lines = out.trimEnd().split('\n');
    const part = `${lines.slice(0, -2).join('\n')}\n`;
    const cut = await run(['import', '-', '--data-dir', dataDir('two')], { input: () => bytesOf(part) });
    expect(cut).toMatchObject({
      status: 1,
      notes: [`spillway: line ${lines.length - 1}: it is missing: the file is cut off before its end`],
    });
    expect((await run(['export', '--data-dir', dataDir('two')])).notes).toEqual([
      'Exported: 0 conversations, 0 records',
    ]);
    const whole = await run(['import', '-', '--data-dir', dataDir('two')], { input: () => bytesOf(out) });
    expect(whole.status).toBe(0);
    expect((await run(['export', '--data-dir', dataDir('two')])).out).toBe(out);
  });

  it('names what it left as it was, and ends with status 1', async () => {
    await talk('one', 'Hello');
    const { out } = await run(['export', '--data-dir', dataDir('one')]);
    await run(['import', '-', '--data-dir', dataDir('two')], { input: () => bytesOf(out) });
    const pair = await openPair({ SPILLWAY_DATA_DIR: dataDir('two') });
    const [{ id } = { id: '' }] = await conversationsOf(pair);
    await fetch(`${pair.spillway.url}/spillway/v1/conversations/${id}`, { method: 'DELETE' });
    await pair.close();
    const again = await run(['import', '-', '--data-dir', dataDir('two')], { input: () => bytesOf(out) });
    expect(again).toMatchObject({
      status: 1,
      notes: [
        `${id} was deleted here; restore or erase it first`,
        'Imported: 0 conversations, 0 records; 0 were there before, 1 were left out',
      ],
    });
  });

  it('says where a proxy will soon erase what it took over', async () => {
    await talk('one', 'Hello');
    const { out } = await run(['export', '--data-dir', dataDir('one')]);
    const old = out.replace(/"usedAt":\d+/, '"usedAt":1000');
    const { notes } = await run(['import', '-', '--data-dir', dataDir('two')], { input: () => bytesOf(old) });
    expect(notes[1]).toContain('more than 30 days ago');
    const kept = await run(['import', '-', '--data-dir', dataDir('three'), '--retention-days', '0'], {
      input: () => bytesOf(old),
    });
    expect(kept.notes.length).toBe(1);
  });

  it('of what is no export changes nothing', async () => {
    const file = join(folder, 'other.jsonl');
    writeFileSync(file, '{"secret":"words of a person"}\n');
    const { status, notes } = await run(['import', file, '--data-dir', dataDir('two')]);
    expect({ status, notes }).toEqual({ status: 1, notes: ['spillway: line 1: type is that of no line of an export'] });
    expect(readFileSync(file, 'utf8')).toContain('secret');
    const missing = await run(['import', join(folder, 'nowhere'), '--data-dir', dataDir('two')]);
    expect(missing).toMatchObject({ status: 1, notes: [`spillway: cannot read ${join(folder, 'nowhere')} (ENOENT)`] });
  });
});

describe('wrong usage ends with status 2 and', () => {
  it.each([
    [['import'], 'import: name the file first, or - for standard input'],
    [['import', '--data-dir', 'x'], 'import: name the file first, or - for standard input'],
    [['import', 'a', 'b'], 'argument 1 belongs to no flag'],
    [['import', 'a', '--store', 'memory'], 'SPILLWAY_STORE: memory keeps nothing to move'],
    [['export', '--store', 'memory'], 'SPILLWAY_STORE: memory keeps nothing to move'],
    [['export', 'file'], 'argument 1 belongs to no flag'],
    [['export', '--conversation'], '--conversation: needs a value'],
    [['export', '--tenant', 'a', '--tenant', 'b'], '--tenant: may be given once'],
    [['export', '--conversatoin', 'c'], expect.stringMatching(/^--conversatoin: is no flag; did you mean/)],
  ])('says so of %j', async (args, message) => {
    const { status, out, notes } = await run(args);
    expect({ status, out }).toEqual({ status: 2, out: '' });
    expect(notes.join('\n').replace(/^spillway: /, '')).toEqual(message);
  });

  it('helps', async () => {
    expect((await run(['export', '--help'])).out).toContain('--conversation id');
    expect((await run(['import', '--help'])).out).toContain('SPILLWAY_TENANT_SECRET');
  });
});
