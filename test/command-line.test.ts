import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { commandLine } from '../src/command-line.js';
import { OVERFLOW_FORMS } from '../src/simulator/overflow-forms.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-command-line-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

interface Run {
  readonly env?: Readonly<Record<string, string>>;
  readonly untilStopped?: () => Promise<void>;
  readonly note?: (text: string) => void;
}

/** A command line with its data in `folder`; a server stops at once unless told otherwise. */
async function run(args: readonly string[], { env = {}, untilStopped, note }: Run = {}) {
  const said: string[] = [];
  const noted: string[] = [];
  const status = await commandLine(args, {
    env: { SPILLWAY_DATA_DIR: join(folder, 'data'), SPILLWAY_PORT: '0', SPILLWAY_LOG_LEVEL: 'silent', ...env },
    say: (text) => void said.push(text),
    write: (text) => Promise.resolve(void said.push(text)),
    async *input() {},
    note: note ?? ((text) => void noted.push(text)),
    untilStopped: untilStopped ?? (() => Promise.resolve()),
  });
  return { status, said: said.join('\n'), noted: noted.join('\n') };
}

/** A port that is taken until the test ends. */
async function takenPort(): Promise<string> {
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not on a port');
  return String(address.port);
}

describe('spillway serve', () => {
  it('says at the start what it is, where it forwards and where conversations are kept', async () => {
    const { status, noted } = await run(['serve', '--upstream-url', 'http://127.0.0.1:9/v1']);
    expect(status).toBe(0);
    const [first, second, ...rest] = noted.split('\n');
    expect(first).toMatch(/^Spillway \S+ listens on http:\/\/127\.0\.0\.1:\d+\/v1 and forwards to http:\S+:9\/v1$/);
    expect(first).toContain(packageJson.version);
    expect(second).toBe(`Conversations are kept in ${join(folder, 'data')}`);
    expect(rest).toEqual([expect.stringContaining('finishes what is running')]);
  });

  it('says its mode and its windows where they are not the usual ones', async () => {
    const observing = await run(['serve', '--mode=observe', '--store', 'memory', '--windows', 'a*=2000,*=8000']);
    expect(observing.noted.split('\n').slice(1, 4)).toEqual([
      'Mode: observe',
      'Conversations are kept in memory, until it ends',
      'Windows: a*=2000, *=8000',
    ]);
    const forwarding = await run(['serve', '--mode', 'no-store']);
    expect(forwarding.noted).toContain('Mode: no-store');
    expect(forwarding.noted).not.toContain('kept');
  });

  it('blames the port for a port that is taken, and the host for anything else', async () => {
    const port = await takenPort();
    const taken = await run(['serve', '--port', port]);
    expect(taken).toMatchObject({
      status: 2,
      noted: `spillway: SPILLWAY_PORT: 127.0.0.1:${port} is in use, perhaps by another Spillway`,
    });
    // An address that is reserved for documentation, so no machine's.
    const elsewhere = await run(['serve', '--host', '192.0.2.1']);
    expect(elsewhere.status).toBe(2);
    expect(elsewhere.noted).toMatch(/^spillway: SPILLWAY_HOST: 192\.0\.2\.1 is no address .*\(EADDRNOTAVAIL\)$/);
  });

  it('names the data folder and the reason of the system where it cannot be used', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    for (const env of [{}, { SPILLWAY_TENANT_SECRET: 'x'.repeat(32) }]) {
      const below = await run(['serve', '--data-dir', join(file, 'data')], { env });
      expect(below.status).toBe(1);
      expect(below.noted).toMatch(/^spillway: SPILLWAY_DATA_DIR: .*\(ENOTDIR\)/);
    }
  });

  it.runIf(existsSync('/proc/self'))('does not hang where no folder can be made', async () => {
    const { status, noted } = await run(['serve', '--data-dir', '/proc/x/y']);
    expect(status).toBe(1);
    expect(noted).toMatch(/^spillway: SPILLWAY_DATA_DIR: cannot read or make \/proc\/x\/y\/secret\.key \(E[A-Z]+\)$/);
  });

  it('says what to do about a database or a secret that is damaged', async () => {
    writeFileSync(join(folder, 'secret.key'), 'short');
    const secret = await run(['serve', '--data-dir', folder]);
    expect(secret).toMatchObject({ status: 1, noted: expect.stringMatching(/secret\.key is damaged.*Restore it; if/) });
    writeFileSync(join(folder, 'secret.key'), 'x'.repeat(43));
    writeFileSync(join(folder, 'spillway.db'), 'this is no database at all '.repeat(100));
    chmodSync(join(folder, 'spillway.db'), 0o600);
    const database = await run(['serve', '--data-dir', folder]);
    expect(database.status).toBe(1);
    expect(database.noted).toMatch(/^spillway: SPILLWAY_DATA_DIR: .*spillway\.db cannot be used.*move it away/);
  });

  it('shows its settings without the simulator’s', async () => {
    const { status, said } = await run(['serve', '--help']);
    expect(status).toBe(0);
    expect(said).toContain('--trigger, SPILLWAY_TRIGGER');
    expect(said).not.toContain('--overflow');
  });
});

describe('wrong usage ends with status 2 and', () => {
  it.each([
    [['sreve'], 'there is no command "sreve". Try spillway --help.'],
    [['serve', '--prot', '80'], '--prot: is no flag; did you mean --port? spillway serve --help lists all'],
    [['serve', '--verbose'], expect.stringMatching(/^--verbose: is no flag; did you mean --\S+\?/)],
    [
      ['serve', '--admin-token', 'secret-words-of-mine'],
      '--admin-token: is no flag, which others on this machine could read; set SPILLWAY_ADMIN_TOKEN instead',
    ],
    [['serve', '--port', '80', 'secret-words-of-mine'], 'argument 3 belongs to no flag'],
    [['serve', '--'], 'argument 1 belongs to no flag'],
    [['serve', '--port'], '--port: needs a value'],
    [['serve', '--port='], '--port: needs a value'],
    [['serve', '--port', '--host', 'localhost'], '--port: needs a value'],
    [['serve', '--trigger', '-1'], '--trigger: must be a number from 0.3 to 0.95 (got "-1")'],
    [
      ['simulate', '--widnows', '*=2000'],
      '--widnows: is no flag; did you mean --windows? spillway simulate --help lists all',
    ],
    [['simulate', '--port', 'x'], '--port: must be a whole number up to 65535 (got "x")'],
    [
      ['simulate', '--overflow', 'opnai'],
      '--overflow: "opnai" is no name; did you mean openai? --overflow list prints all',
    ],
    [['simulate', '--overflow', 'constructor'], expect.stringMatching(/^--overflow: "constructor" is no name;/)],
  ])('says so of %j', async (args, message) => {
    const { status, said, noted } = await run(args);
    expect({ status, said }).toEqual({ status: 2, said: '' });
    expect(noted.replace(/^spillway: /, '')).toEqual(message);
  });
});

describe('spillway simulate', () => {
  it('answers in the form that is named', async () => {
    let stop = (): void => undefined;
    const stopped = new Promise<void>((resolve) => (stop = resolve));
    const note = vi.fn<(text: string) => void>();
    const args = ['simulate', '--port', '0', '--windows', 'm=50', '--overflow', 'gemini'];
    const ended = run(args, { untilStopped: () => stopped, note });
    const url = await vi.waitFor(() => {
      const found = /http:\S+/.exec(note.mock.calls[0]?.[0] ?? '')?.[0];
      if (found === undefined) throw new Error('not yet');
      return found;
    });
    const response = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer any-key' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'word '.repeat(100) }] }),
    });
    expect(await response.text()).toMatch(/^\[\{"error":\{"code":400,"message":"The input token count \(\d+\) exceeds/);
    stop();
    expect((await ended).status).toBe(0);
  });

  it('lists the forms of an overflow on demand, and not in its help', async () => {
    const { status, said } = await run(['simulate', '--overflow', 'list']);
    expect(status).toBe(0);
    expect(said.split('\n')).toEqual(Object.keys(OVERFLOW_FORMS));
    expect((await run(['simulate', '--help'])).said).toContain('list prints the names');
  });

  it('blames its port for a port that is taken', async () => {
    const port = await takenPort();
    expect(await run(['simulate', '--port', port])).toMatchObject({
      status: 2,
      noted: `spillway: --port: 127.0.0.1:${port} is in use, perhaps by another Spillway`,
    });
  });
});

it('helps, and tells its version', async () => {
  for (const args of [[], ['--help'], ['help']]) {
    const { status, said } = await run(args);
    expect(status).toBe(0);
    for (const part of ['SPILLWAY_PORT', '--overflow', 'spillway serve', 'spillway export', 'spillway import'])
      expect(said).toContain(part);
  }
  expect(await run(['--version'])).toMatchObject({ status: 0, said: packageJson.version });
});
