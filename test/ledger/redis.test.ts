import { afterAll } from 'vitest';
import { startRedis } from '../support/redis.js';
import { ledgerConformance } from './conformance.js';
import { redisHarness } from './redis-harness.js';

const server = await startRedis();
afterAll(() => server.stop());

ledgerConformance('Redis', redisHarness(server.url));
