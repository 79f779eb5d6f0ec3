import { availableParallelism } from 'node:os';
import { cloudflareTest } from '@cloudflare/vitest-pool-workers';
import { defineConfig } from 'vitest/config';

/** Tests that run inside workerd, on real Durable Objects. */
const inWorkerd = 'test/workerd/**/*.test.ts';

export default defineConfig({
  test: {
    globals: false,
    maxWorkers: availableParallelism(),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    allowOnly: false,
    restoreMocks: true,
    unstubEnvs: true,
    projects: [
      // Processes, not threads: the SQLite driver is native code.
      { extends: true, test: { name: 'node', include: ['test/**/*.test.ts'], exclude: [inWorkerd], pool: 'forks' } },
      {
        extends: true,
        plugins: [cloudflareTest({ wrangler: { configPath: 'test/workerd/wrangler.toml' } })],
        // Every run makes objects of its own, at a few milliseconds each call.
        test: {
          name: 'workerd',
          include: [inWorkerd],
          env: { LEDGER_MODEL_RUNS: process.env['LEDGER_MODEL_RUNS'] ?? '5' },
        },
      },
    ],
  },
});
