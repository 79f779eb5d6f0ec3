import { hash as digestOf } from 'node:crypto';
import { chainIds, rootDigest } from '../src/core/canonical.js';
import { chatCompletions } from '../src/dialects/chat-completions.js';
import { createConversations } from './conversation.js';
import { median, rounded } from './statistics.js';
import type { Table } from './table.js';

const ROUNDS = 40;

/** What it costs to know a history again: bytes to text, text to values, values to messages, messages to node ids. */
export function measureIdentity(): Table {
  const scenario = { name: '', model: 'gpt-4.1', stream: false, messageChars: 195, turnChars: 100, turns: 1 };
  const bytes = createConversations({ ...scenario, messages: 2_000 }).body(1, 0);
  const hash = (text: string): string => digestOf('sha256', text, 'base64url').slice(0, 32);
  const times = { decode: [], parse: [], read: [], hash: [] } as Record<string, number[]>;
  let messages = 0;
  const timed = <T>(step: string, work: () => T): T => {
    const startedAt = performance.now();
    const result = work();
    times[step]?.push(performance.now() - startedAt);
    return result;
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const text = timed('decode', () => new TextDecoder().decode(bytes));
    const body = timed('parse', (): unknown => JSON.parse(text));
    const read = timed('read', () => chatCompletions.read(body));
    if (read === null) throw new Error('the history cannot be read');
    const root = rootDigest(hash, 'local', chatCompletions.name, 1);
    messages = timed('hash', () => chainIds(hash, root, read.messages)).length;
  }
  const parseMs = median(times['parse'] ?? []);
  return {
    title: `Identity of ${messages} messages, ${Math.round(bytes.byteLength / 1_000)} kB`,
    note: 'Medians. The parse is JSON.parse alone: the other steps beside it.',
    rows: Object.entries(times).map(([step, values]) => ({
      step,
      ms: rounded(median(values)),
      '/ parse': rounded(median(values) / parseMs),
    })),
  };
}
