import type { Config } from './config.js';
import type { Conversation, Directory, Hash, Ledger, TokenCounter, UniqueId } from './core/ports.js';
import { chatCompletions } from './dialects/chat-completions.js';
import type { Dialect, DialectName } from './dialects/dialect.js';
import { errorForm } from './http/errors.js';
import type { Upstreams } from './http/upstreams.js';
import { compactConversation } from './proxy/compact-conversation.js';
import type { CompactConversationRequest } from './proxy/compact-conversation.js';
import { createCompactSpine } from './proxy/compact-spine.js';
import { createCompactor } from './proxy/compactor.js';
import type { CompactionReport } from './proxy/compactor.js';
import { createInvocations } from './proxy/invocations.js';
import { createLearnedWindows } from './proxy/learned-windows.js';
import { createModelWindows } from './proxy/model-windows.js';
import type { ModelWindows } from './proxy/model-windows.js';
import { createProxy } from './proxy/proxy.js';
import type { ProxyDeps } from './proxy/proxy.js';
import { createRecordCall } from './proxy/record-call.js';
import type { RecordCallDeps } from './proxy/record-call.js';
import { createReducer } from './proxy/reduce.js';
import type { Proxy, UpstreamRoute } from './proxy/request.js';
import { createRunningTurns } from './proxy/running-turns.js';
import { tenantOf } from './proxy/tenant.js';
import type { Sign } from './proxy/tenant.js';
import type { LoadCounter } from './tokens/counter.js';
import { encodingFor } from './tokens/encoding.js';
import { createDiscovery } from './upstream/discovery.js';
import type { SendUpstream } from './upstream/upstream.js';
import type { ModelLimits } from './upstream/windows.js';

/** What a platform brings: a store, a way to send, digests, clocks. Everything else is the same on all of them. */
export interface PlatformPorts {
  readonly ledger: Ledger;
  readonly directory: Directory;
  readonly send: SendUpstream;
  readonly hash: Hash;
  readonly digest: RecordCallDeps['digest'];
  readonly sign: Sign;
  readonly uniqueId: UniqueId;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly loadCounter: LoadCounter;
  readonly limits: (model: string) => Promise<ModelLimits>;
  readonly readBody: ProxyDeps['readBody'];
  readonly writeLog: ProxyDeps['writeLog'];
  readonly onGap: RecordCallDeps['onGap'];
}

export interface Composed {
  readonly proxy: Proxy;
  compact(conversation: Conversation, request: CompactConversationRequest): Promise<CompactionReport>;
  readonly windows: Pick<ModelWindows, 'all' | 'forget'>;
  /** Resolves when no turn and no compaction runs any more, nor anything beside them. */
  drain(): Promise<void>;
}

const DAY_MS = 24 * 60 * 60_000;

const dialects: ReadonlyMap<DialectName, Dialect> = new Map([[chatCompletions.name, chatCompletions]]);

/** The proxy of a configuration on a platform. */
export function compose(config: Config, ports: PlatformPorts): Composed {
  const { ledger, hash, send, sign, uniqueId } = ports;
  const clock = Date.now;
  const asksForModels = config.mode === 'compact' && config.discoverWindows === 'on';
  const windows = createModelWindows({
    limits: ports.limits,
    learned: createLearnedWindows(ports.directory, clock),
    discovery: asksForModels ? createDiscovery({ send, clock }) : null,
    directory: ports.directory,
    hash,
    clock,
    learnedMs: config.learnedDays * DAY_MS,
  });
  const { belief } = windows;
  const loadCounter = (model: string): Promise<TokenCounter> => ports.loadCounter(encodingFor(model));
  const running = createRunningTurns();
  const compactor = createCompactor({ ledger, clock, uniqueId });
  const purse = { calls: config.purseCalls, durationMs: config.purseMs };
  const { summaryModel, keepTokens, minGain: minimumGain, trigger, summaryKey, summaryPolicy: policy } = config;
  const settings = { summaryModel, keepTokens, minimumGain, trigger };
  const compactSpine = createCompactSpine({ compactor, send, hash, settings, summaryKey, belief });
  const reducer = createReducer({
    invocations: createInvocations(hash, JSON.stringify([summaryModel, config.resultStrategy])),
    compactSpine,
    strategy: config.resultStrategy,
    policies: { agingTurns: config.agingTurns, spillTokens: config.spillTokens },
    uniqueId,
  });
  const proxy = createProxy({
    mode: config.mode,
    storeFailure: config.storeFailure,
    policy,
    trigger,
    purse,
    readsCommands: config.mode === 'compact',
    ledger,
    running,
    compactSpine,
    reducer,
    keepAliveMs: config.keepAliveSeconds * 1000,
    windows,
    dialects,
    hash,
    sign,
    uniqueId,
    clock,
    now: ports.now,
    send,
    belief,
    loadCounter,
    tenantOf: (headers, query) =>
      tenantOf(headers, query, {
        single: config.loopback && config.tenants === 'auto',
        userHeader: config.userHeader,
        sign,
      }),
    readBody: ports.readBody,
    recordCall: createRecordCall({ hash, digest: ports.digest, clock, onGap: ports.onGap }),
    writeLog: ports.writeLog,
    errorResponse(error, dialect) {
      const form = errorForm(error);
      return { status: form.status, body: (dialect ?? chatCompletions).errorBody(form) };
    },
  });
  const route = (baseUrl: string): UpstreamRoute | null => routeTo(baseUrl, config.upstreams);
  return {
    proxy,
    windows,
    compact: (conversation, request) =>
      compactConversation(conversation, request, {
        ledger,
        compactSpine,
        dialects,
        policy,
        summaryKey,
        clock,
        purse,
        route,
        belief,
        loadCounter,
      }),
    async drain() {
      await running.drain();
      await compactor.drain();
      await windows.close();
    },
  };
}

function routeTo(baseUrl: string, upstreams: Upstreams): UpstreamRoute | null {
  const routes = [upstreams.main, ...upstreams.byPrefix.values(), ...upstreams.byDialect.values()];
  return routes.find((route) => route.baseUrl === baseUrl) ?? null;
}
