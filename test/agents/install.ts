import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Where the agents are kept between runs. */
const CACHE = process.env['SPILLWAY_AGENTS_DIR'] ?? join(tmpdir(), 'spillway-agents');

/**
 * Installs one version of a package with npm, outside the project's own dependencies, unless it is there; resolves to its folder.
 * `prepare` is a script of the package's own that has to run once: npm may leave it out.
 */
export async function installed(name: string, version: string, prepare: string | null): Promise<string> {
  const folder = join(CACHE, `${name.replace('/', '+')}@${version}`);
  const packageFolder = join(folder, 'node_modules', name);
  const done = join(folder, 'installed');
  if (existsSync(done)) return packageFolder;
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  await run('npm', ['install', '--no-audit', '--no-fund', `${name}@${version}`], { cwd: folder });
  if (prepare !== null) await run(process.execPath, [join(packageFolder, prepare)], { cwd: packageFolder });
  await writeFile(done, '');
  return packageFolder;
}
