import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

export interface Programs {
  readonly spillway: string;
  readonly passThrough: string;
  readonly upstream: string;
  /** A flag of node that loads the probe. */
  readonly probeFlag: string;
}

/** Builds what is measured as it is shipped: through a loader that compiles on the way it would be another program. */
export async function buildPrograms(): Promise<Programs> {
  // Inside the project, where native packages are found.
  const folder = join(import.meta.dirname, '../node_modules/.cache/spillway-bench');
  execFileSync(process.execPath, ['--import', 'tsx', 'scripts/build.ts', folder], {
    cwd: join(import.meta.dirname, '..'),
    stdio: 'inherit',
  });
  const servers = join(folder, 'bench');
  await build({
    entryPoints: ['upstream', 'pass-through', 'probe'].map((name) => join(import.meta.dirname, `servers/${name}.ts`)),
    outdir: servers,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
  });
  return {
    spillway: join(folder, 'cli.js'),
    passThrough: join(servers, 'pass-through.mjs'),
    upstream: join(servers, 'upstream.mjs'),
    probeFlag: `--import=${pathToFileURL(join(servers, 'probe.mjs')).href}`,
  };
}
