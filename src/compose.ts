import type { Config } from './config.js';
import type { Conversation, ConversationKey, Directory, Hash, Ledger, SharedCache, UniqueId } from './core/ports.js';
import { anthropicMessages } from './dialects/anthropic-messages.js';
import { chatCompletions } from './dialects/chat-completions.js';
import type { Dialect, DialectName } from './dialects/dialect.js';
import { responses } from './dialects/responses.js';
import { errorForm } from './http/errors.js';
import type { Upstreams } from './http/upstreams.js';
import { compactConversation } from './proxy/compact-conversation.js';
import type { CompactConversationRequest } from './proxy/compact-conversation.js';
import { createCompactSpine } from './proxy/compact-spine.js';
import { createCompactionSupport } from './proxy/compaction-support.js';
import { createCompactor } from './proxy/compactor.js';
import type { CompactionReport, Compactor } from './proxy/compactor.js';
import { createDeletion } from './proxy/deletion.js';
import type { Deletion } from './proxy/deletion.js';
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
import { sweep } from './proxy/retention.js';
import type { RetentionDeps, Sweep } from './proxy/retention.js';
import { createRunningTurns } from './proxy/running-turns.js';
import { createSharedInvocations } from './proxy/shared-invocations.js';
import { createSharedTurns } from './proxy/shared-turns.js';
import { sleep } from './proxy/sleep.js';
import { tenantOf } from './proxy/tenant.js';
import type { Sign } from './proxy/tenant.js';
import type { LoadCounter, PatientCounter } from './tokens/counter.js';
import { encodingFor } from './tokens/encoding.js';
import { createDiscovery } from './upstream/discovery.js';
import type { SendUpstream } from './upstream/upstream.js';
import type { ModelLimits } from './upstream/windows.js';

/** What a platform brings: a store, a way to send, digests, clocks. Everything else is the same on all of them. */
export interface PlatformPorts {
  readonly ledger: Ledger;
  readonly directory: Directory;
  /** What processes on the same store share beside it; null where this one is alone. */
  readonly sharedCache: SharedCache | null;
  /** False where a request may end and what it left undone never settles: then none waits for the work of another. */
  readonly sharesWork: boolean;
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
  readonly deletion: Deletion;
  /** Erases what is kept too long or takes too much, once (SPEC 2.6). */
  sweep(around: Pick<RetentionDeps, 'pause' | 'stopped'>): Promise<Sweep>;
  /** Resolves when no turn and no compaction runs any more, nor anything beside them. */
  drain(): Promise<void>;
}

const DAY_MS = 24 * 60 * 60_000;

const dialects: ReadonlyMap<DialectName, Dialect> = new Map(
  [chatCompletions, responses, anthropicMessages].map((dialect) => [dialect.name, dialect]),
);

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
  const loadCounter = (model: string): Promise<PatientCounter> => ports.loadCounter(encodingFor(model));
  const running = createRunningTurns();
  const sharedTurns = createSharedTurns(ports.sharedCache, sleep);
  const compactors = (): Compactor => createCompactor({ ledger, clock, uniqueId, sleep });
  const compactor = ports.sharesWork ? compactors() : apart(compactors);
  const purse = { calls: config.purseCalls, durationMs: config.purseMs };
  const { summaryModel, keepTokens, minGain: minimumGain, trigger, summaryKey, summaryPolicy: policy } = config;
  const settings = { summaryModel, keepTokens, minimumGain, trigger };
  const compactSpine = createCompactSpine({ compactor, send, hash, settings, summaryKey, belief });
  const invocations = createInvocations({
    hash,
    clock,
    settings: JSON.stringify([summaryModel, config.resultStrategy]),
    shared: ports.sharedCache === null ? null : createSharedInvocations(ports.sharedCache, hash),
  });
  const forget = (conversation: ConversationKey): void => invocations.forget(conversation);
  const reducer = createReducer({
    invocations,
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
    directory: ports.directory,
    running,
    sharedTurns,
    compactSpine,
    compactionSupport: createCompactionSupport(clock),
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
        single: config.singleTenant,
        userHeader: config.userHeader,
        sign,
      }),
    readBody: ports.readBody,
    recordCall: createRecordCall({ directory: ports.directory, hash, digest: ports.digest, clock, onGap: ports.onGap }),
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
    deletion: createDeletion({
      ledger,
      directory: ports.directory,
      running,
      forget,
      forgetWindows: (tenant) => windows.forgetTenant(tenant),
    }),
    sweep: (around) =>
      sweep({ ledger, directory: ports.directory, limits: config.retention, onErased: forget, ...around }, clock()),
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

/** Compactions that know of each other by their leases alone. */
function apart(create: () => Compactor): Compactor {
  return { run: (job, closed) => create().run(job, closed), drain: async () => undefined };
}

function routeTo(baseUrl: string, upstreams: Upstreams): UpstreamRoute | null {
  const routes = [upstreams.main, ...upstreams.byPrefix.values(), ...upstreams.byDialect.values()];
  return routes.find((route) => route.baseUrl === baseUrl) ?? null;
}
