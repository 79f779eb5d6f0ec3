import type { Message } from './message.js';
import { unitsOf } from './spine.js';

/** What is wrong with a message list, as stable words that name the message's place from the end. */
export function faultsOf(messages: readonly Message[]): readonly string[] {
  const faults: string[] = [];
  for (const unit of unitsOf(messages)) {
    if (!unit.complete) faults.push(`unpaired calls at -${messages.length - unit.from}`);
  }
  const first = messages.find((message) => message.role !== 'system');
  if (first !== undefined && first.role !== 'user') faults.push(`begins with ${first.role}`);
  return faults;
}

/**
 * The last look at a list about to be sent in place of another (SPEC 4.7): the faults it has that the original lacks. Not
 * empty: the substitution is abandoned. A list that came broken is not ours to repair, so its own faults do not count.
 */
export function newFaults(original: readonly Message[], substituted: readonly Message[]): readonly string[] {
  const old = new Set(faultsOf(original));
  return faultsOf(substituted).filter((fault) => !old.has(fault));
}
