import { defineConfig } from 'vitest/config';

/** The agents that people run: installed from npm when the suite begins, so no part of the ordinary test run. */
export default defineConfig({
  test: {
    include: ['test/agents/**/*.agent.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 30_000,
    hookTimeout: 600_000,
  },
});
