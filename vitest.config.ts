import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globals: false,
    // Processes, not threads: the SQLite driver is native code.
    pool: 'forks',
    maxWorkers: availableParallelism(),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    allowOnly: false,
    restoreMocks: true,
    unstubEnvs: true,
  },
});
