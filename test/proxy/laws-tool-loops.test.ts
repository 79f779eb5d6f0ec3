import { it } from 'vitest';
import { expectLawsToHoldInLoops, LOOP_HISTORIES } from './laws.js';

it(
  `every law holds through every step of the tool loops in ${LOOP_HISTORIES} random histories: under the limit or refused, paired, in order, frozen, paid for once, settled (SPEC 2.1, 3.1, 4.1, 4.3, 4.5, 4.6, 4.7, 7.1, 7.3, 7.4, 7.5, 7.6, 7.7)`,
  { timeout: 900_000 },
  () => expectLawsToHoldInLoops([1_536, 2_048, 4_096]),
);
