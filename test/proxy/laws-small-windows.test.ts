import { it } from 'vitest';
import { expectLawsToHold, HISTORIES } from './laws.js';

it(
  `every law of compaction holds through every step of ${HISTORIES} random histories in small windows (SPEC 2.1, 3.1, 3.2, 4.1, 4.3, 4.5, 4.7, 5.7, 7.1, 7.7, 8.5)`,
  { timeout: 900_000 },
  () => expectLawsToHold([1_536, 2_048]),
);
