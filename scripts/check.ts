/** Runs every `check:…` script of package.json, prints what each says, and ends with the names of those that failed. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

interface Result {
  readonly name: string;
  readonly passed: boolean;
  readonly output: string;
  readonly seconds: number;
}

const UPLOAD = /Total Upload: .* gzip: ([\d.]+) KiB/;
/** Compressed, well below the 3 MB that every account may upload. */
const MOST_UPLOAD_KIB = 2_500;
/** Wrangler only warns of what a Worker would miss when it runs. */
const NODE_ONLY = /built into node/;

function run(name: string): Promise<Result> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const child = spawn('npm', ['run', '--silent', name], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', (error) => chunks.push(Buffer.from(error.message)));
    child.on('close', (code) => {
      const output = Buffer.concat(chunks).toString('utf8').trim();
      const passed = code === 0 && Number(UPLOAD.exec(output)?.[1] ?? 0) <= MOST_UPLOAD_KIB && !NODE_ONLY.test(output);
      resolve({ name, passed, output, seconds: (performance.now() - startedAt) / 1000 });
    });
  });
}

/** What the dry run of a deployment says of the Worker's size; empty for every other check. */
function uploadSize(output: string): string {
  const size = UPLOAD.exec(output);
  return size === null ? '' : `: ${size[0]}`;
}

const manifest = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')));
const names = Object.keys(manifest.scripts).filter((name) => name.startsWith('check:'));
const results = await Promise.all(names.map(run));

for (const { name, passed, output, seconds } of results) {
  console.log(`${passed ? 'ok    ' : 'FAILED'} ${name} (${seconds.toFixed(1)} s)${uploadSize(output)}`);
  if (!passed) console.log(`\n${output}\n`);
}
const failed = results.filter((result) => !result.passed).map((result) => result.name);
console.log(failed.length === 0 ? `${results.length} checks passed` : `failed: ${failed.join(', ')}`);
process.exitCode = failed.length === 0 && results.length > 0 ? 0 : 1;
