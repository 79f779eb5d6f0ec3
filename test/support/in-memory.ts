import { createHmac, hash as digestOf } from 'node:crypto';
import type { Clock } from '../../src/core/ports.js';
import type { ResultStrategy } from '../../src/core/request/fit.js';
import type { ViewPolicies } from '../../src/core/request/policies.js';
import { chatCompletions } from '../../src/dialects/chat-completions.js';
import { MemoryLedger } from '../../src/ledger/memory.js';
import { createCompactSpine } from '../../src/proxy/compact-spine.js';
import { createCompactor } from '../../src/proxy/compactor.js';
import { createInvocations } from '../../src/proxy/invocations.js';
import { openTurn } from '../../src/proxy/open-turn.js';
import type { OpenTurnDeps } from '../../src/proxy/open-turn.js';
import { createReducer } from '../../src/proxy/reduce.js';
import type { ProxyRequest } from '../../src/proxy/request.js';
import { createRunningTurns } from '../../src/proxy/running-turns.js';
import { createSharedTurns } from '../../src/proxy/shared-turns.js';
import { sleep } from '../../src/proxy/sleep.js';
import { readSpillwayHeaders } from '../../src/proxy/spillway-headers.js';
import type { ModelBelief, Turn } from '../../src/proxy/turn.js';
import { createCounterLoader } from '../../src/tokens/counter.js';
import { readPackedRanks } from '../../src/tokens/node-ranks.js';
import type { SendUpstream } from '../../src/upstream/upstream.js';

const counters = createCounterLoader(readPackedRanks);

export interface WorldOptions {
  readonly windowTokens: number | null;
  readonly keepTokens?: number;
  readonly trigger?: number;
  /** Stands still by default. */
  readonly clock?: Clock;
  readonly strategy?: ResultStrategy;
  readonly policies?: ViewPolicies;
  readonly send: SendUpstream;
}

/** The parts of a proxy around a memory ledger, without HTTP: for laws over very many histories. */
export function createWorld(options: WorldOptions) {
  const { keepTokens = null, trigger = 0.8, clock = () => 0 } = options;
  const ledger = new MemoryLedger(clock);
  const hash = (text: string): string => digestOf('sha256', text, 'base64url').slice(0, 32);
  const belief = (): Promise<ModelBelief> =>
    Promise.resolve({ windowTokens: options.windowTokens, source: 'configured', capability: null });
  let unique = 0;
  const uniqueId = (): string => `unique${String(++unique).padStart(10, '0')}`;
  const compactSpine = createCompactSpine({
    compactor: createCompactor({
      ledger,
      clock,
      uniqueId,
      sleep,
    }),
    send: options.send,
    hash,
    settings: { summaryModel: null, keepTokens, minimumGain: 0.1, trigger },
    summaryKey: null,
    belief,
  });
  const deps: OpenTurnDeps = {
    ledger,
    running: createRunningTurns(),
    sharedTurns: createSharedTurns(null, sleep),
    hash,
    sign: (text) => createHmac('sha256', 'test').update(text).digest('base64url').slice(0, 32),
    policy: 'auto',
    clock,
    purse: { calls: 32, durationMs: 60_000 },
    trigger,
    readsCommands: true,
    belief,
    loadCounter: () => counters('o200k_base'),
  };
  /** Opens a turn for a request body, as the proxy would. */
  async function open(
    body: Readonly<Record<string, unknown>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Turn> {
    const text = JSON.stringify(body);
    const read = chatCompletions.read(JSON.parse(text));
    if (read === null) throw new Error('unreadable');
    const original = new TextEncoder().encode(text);
    return openTurn(
      {
        request: requestOf(headers),
        dialect: chatCompletions,
        read,
        body: { original, text, textBytes: original.byteLength, rewritten: false },
        options: readSpillwayHeaders(headers),
        tenant: 'local',
        held: null,
        closed: new AbortController().signal,
      },
      deps,
    );
  }
  const reducer = createReducer({
    invocations: createInvocations({ hash, clock, settings: '', shared: null }),
    compactSpine,
    strategy: options.strategy ?? 'summarise',
    policies: options.policies ?? { agingTurns: null, spillTokens: null },
    uniqueId,
  });
  return { ledger, open, preparing: { compactSpine, reducer, trigger } };
}

function requestOf(headers: Readonly<Record<string, string>>): ProxyRequest {
  return {
    method: 'POST',
    path: '/v1/chat/completions',
    query: '',
    headers,
    body: null,
    dialect: 'chat-completions',
    upstream: { prefix: '', baseUrl: 'http://upstream.invalid/v1', apiKey: null },
    arrivedAt: 0,
  };
}
