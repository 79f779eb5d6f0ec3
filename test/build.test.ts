import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ENCODINGS } from '../src/tokens/encoding.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..');
let folder = '';
let program = '';

beforeAll(async () => {
  // Inside the repository, where the packages are found that are not bundled.
  mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
  folder = mkdtempSync(join(root, 'node_modules/.cache/spillway-build-'));
  program = join(folder, 'dist/cli.js');
  await run('npm', ['run', '--silent', 'build', '--', join(folder, 'dist')], { cwd: root });
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('the built program is a command that says the version of the package', async () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { stdout } = await run(program, ['--version']);
  expect(stdout.trim()).toBe(version);
});

it('the built program has its token ranks beside it', () => {
  expect(ENCODINGS.filter((encoding) => !existsSync(join(folder, 'dist', `${encoding}.ranks`)))).toEqual([]);
});

it('the built program serves with all its packages, and ends by itself when told to', async () => {
  const env = { ...process.env, SPILLWAY_PORT: '0', SPILLWAY_DATA_DIR: join(folder, 'data') };
  const server = spawn(program, ['serve'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(server, 'exit');
  try {
    const [line] = await once(createInterface(server.stderr), 'line');
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(String(line)) ?? [];
    expect(url, String(line)).toBeDefined();
    expect((await fetch(`${url}/health`)).status).toBe(200);
  } finally {
    server.kill('SIGTERM');
  }
  expect(await ended).toEqual([0, null]);
});
