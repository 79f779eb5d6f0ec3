import { ledgerConformance } from '../ledger/conformance.js';
import { durableHarness } from './durable-store.js';

ledgerConformance('Durable Object', durableHarness);
