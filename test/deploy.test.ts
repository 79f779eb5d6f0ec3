import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import * as apps from 'kubernetes-models/apps/v1';
import * as autoscaling from 'kubernetes-models/autoscaling/v2';
import * as policy from 'kubernetes-models/policy/v1';
import * as core from 'kubernetes-models/v1';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { settingsHelp } from '../src/config/settings.js';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..');
const deploy = (file: string): string => readFileSync(join(root, 'deploy', file), 'utf8');
const dockerfile = deploy('Dockerfile');
const files = ['Dockerfile', 'compose.yaml', 'kubernetes/spillway.yaml', 'spillway.service', 'README.md'];

describe('the files for deployment', () => {
  it.each(files)('%s names only settings that exist', (file) => {
    const known = new Set([...settingsHelp().values()].map((setting) => setting.name));
    const named = [...deploy(file).matchAll(/\bSPILLWAY_[A-Z_]+\b/g)].map(([name]) => name);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });

  it('the Dockerfile has no fault that its linter knows', async () => {
    const { stdout } = await run('node_modules/.bin/dockerfilelint', ['-o', 'json', 'deploy/Dockerfile'], {
      cwd: root,
    });
    expect(JSON.parse(stdout)).toMatchObject({ totalIssues: 0 });
  });

  it('the compose file has no fault that its linter knows', async () => {
    const { stdout } = await run('node_modules/.bin/dclint', ['--max-warnings', '0', 'deploy/compose.yaml'], {
      cwd: root,
    });
    expect(stdout.trim()).toBe('');
  });

  it('every Kubernetes object is valid', () => {
    const models: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
      v1: core,
      'apps/v1': apps,
      'autoscaling/v2': autoscaling,
      'policy/v1': policy,
    };
    const kinds: string[] = [];
    for (const file of parse(deploy('kubernetes/kustomization.yaml')).resources) {
      for (const document of parseAllDocuments(deploy(`kubernetes/${file}`))) {
        const object = document.toJS();
        const Model = models[object.apiVersion]?.[object.kind];
        if (typeof Model !== 'function') throw new Error(`no model for ${object.apiVersion} ${object.kind}`);
        Reflect.construct(Model, [object]).validate();
        kinds.push(object.kind);
      }
    }
    expect(kinds).toEqual(expect.arrayContaining(['Deployment', 'StatefulSet', 'HorizontalPodAutoscaler']));
  });

  it('a supervisor waits longer than running streams are given', () => {
    const byDefault = Number(settingsHelp().get('drainSeconds')?.default);
    const [, deployment] = parseAllDocuments(deploy('kubernetes/spillway.yaml')).map((document) => document.toJS());
    expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(byDefault + 5);
    expect(parse(deploy('compose.yaml')).services.spillway.stop_grace_period).toBe('10m');
    expect(deploy('spillway.service')).toContain('TimeoutStopSec=10min');
    expect(byDefault).toBeLessThan(600);
  });
});

describe('what the image holds', () => {
  let app = '';

  beforeAll(async () => {
    app = mkdtempSync(join(tmpdir(), 'spillway-image-'));
    await run('npm', ['run', '--silent', 'build', '--', join(app, 'dist')], { cwd: root });
    for (const [, from = '', to = ''] of dockerfile.matchAll(/^COPY --from=build \/build\/(\S+) (\S+)$/gm)) {
      if (from === 'dist') continue;
      const target = to.endsWith('/') ? join(app, to, basename(from)) : join(app, to);
      mkdirSync(join(target, '..'), { recursive: true });
      cpSync(join(root, from), target, { recursive: true });
    }
  }, 180_000);

  afterAll(() => rmSync(app, { recursive: true, force: true }));

  it('is enough to serve, is found healthy, and ends when told to', async () => {
    const port = await freePort();
    const environment = {
      PATH: process.env['PATH'],
      SPILLWAY_PORT: String(port),
      SPILLWAY_DATA_DIR: join(app, 'data'),
    };
    const command = z.array(z.string()).parse(JSON.parse(/^CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? 'null'));
    const entry = z.array(z.string()).parse(JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)?.[1] ?? 'null'));
    const [program = '', ...given] = [...entry, ...command];
    const server = spawn(program, given, { cwd: app, env: environment, stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = once(server, 'exit');
    const health = /^HEALTHCHECK .* CMD (.+)$/m.exec(dockerfile)?.[1] ?? 'false';
    const check = (): Promise<unknown> => run('sh', ['-c', health], { cwd: app, env: environment });
    try {
      await once(createInterface(server.stderr), 'line');
      await check();
      expect(existsSync(join(app, 'data', 'spillway.db'))).toBe(true);
    } finally {
      server.kill('SIGTERM');
    }
    expect(await ended).toEqual([0, null]);
    await expect(check()).rejects.toThrow('Command failed');
  }, 60_000);
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}
