import { MemoryLedger } from '../../src/ledger/memory.js';
import { ledgerConformance } from './conformance.js';

ledgerConformance('memory', async (clock) => {
  const ledger = new MemoryLedger(clock);
  return { ledger, dispose: () => ledger.close() };
});
