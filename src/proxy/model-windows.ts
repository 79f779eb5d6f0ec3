import type { Usage } from '../core/message.js';
import { CUT_PROMPT } from '../core/overflow/usage.js';
import type { Clock, Directory, Hash } from '../core/ports.js';
import { believe, windowFrom } from '../core/windows.js';
import type { BelievedWindow, LearnedWindow, WindowKey, WindowOpinions, WindowScope } from '../core/windows.js';
import type { DiscoveredWindow, Discovery, ModelListRequest } from '../upstream/discovery.js';
import { requestHeaders } from '../upstream/headers.js';
import { requestUrl } from '../upstream/request-url.js';
import type { ModelLimits } from '../upstream/windows.js';
import { credentialOf } from './credential.js';
import type { LearnedWindows } from './learned-windows.js';
import type { SeenOverflow } from './see-overflow.js';
import type { ModelBelief, Turn } from './turn.js';

/** What is believed of one model at one upstream for one tenant, and what each source says (SPEC 6.5). */
export interface ModelKnowledge extends WindowKey {
  readonly id: string;
  readonly believed: BelievedWindow;
  readonly opinions: WindowOpinions;
  readonly learned: LearnedWindow | null;
  readonly discovered: DiscoveredWindow | null;
  /** The most output the model can give, or null. */
  readonly outputTokens: number | null;
}

/** All that is known of models' windows: asked before a turn, told after it. */
export interface ModelWindows {
  belief(scope: WindowScope, model: string): Promise<ModelBelief>;
  /** Takes in an overflow that was seen; most teach nothing. Never rejects. */
  learn(turn: Turn, seen: SeenOverflow): Promise<void>;
  /** Takes in a reply that came to its end, and asks for the upstream's list of models where that can help. */
  succeeded(turn: Turn, usage: Usage | null): void;
  /**
   * Of every model met since the start, the latest first, and of all others with a learned window. Rejects as the store
   * does.
   */
  all(): Promise<readonly ModelKnowledge[]>;
  /** Drops the learned window of a model by the id of its knowledge; false if there is none. Rejects as the store does. */
  forget(id: string): Promise<boolean>;
  /** Drops all that is known of a tenant's models. Rejects as the store does. */
  forgetTenant(tenant: string): Promise<void>;
  /** Ends requests for lists of models, and waits for the store. */
  close(): Promise<void>;
}

export interface ModelWindowsDeps {
  /** What is known of a model wherever it runs. */
  limits(model: string): Promise<ModelLimits>;
  readonly learned: LearnedWindows;
  /** Null: upstreams are never asked for their models. */
  readonly discovery: Discovery | null;
  readonly directory: Pick<Directory, 'learnedWindows'>;
  readonly hash: Hash;
  readonly clock: Clock;
  /** How long a learned window is believed; 0 learns nothing. */
  readonly learnedMs: number;
}

/** Models whose knowledge is shown; the least lately asked for go first. */
const MOST_MET = 1_000;

export function createModelWindows(deps: ModelWindowsDeps): ModelWindows {
  const { learned, discovery } = deps;
  const met = new Map<string, WindowKey>();

  const meet = (key: WindowKey): void => {
    met.delete(textOf(key));
    met.set(textOf(key), key);
    const [oldest] = met.keys();
    if (met.size > MOST_MET && oldest !== undefined) met.delete(oldest);
  };
  const ask = async (key: WindowKey): Promise<Omit<ModelKnowledge, 'id'>> => {
    const [limits, window] = await Promise.all([deps.limits(key.model), learned.of(key)]);
    const { configured, catalogue, outputTokens } = limits;
    const discovered = discovery?.windowOf(key, key.model) ?? null;
    const opinions = {
      configured,
      learned: window?.tokens ?? null,
      discovered: discovered?.tokens ?? null,
      catalogue,
    };
    return { ...key, believed: believe(opinions), opinions, learned: window, discovered, outputTokens };
  };
  const all = async (): Promise<readonly ModelKnowledge[]> => {
    const stored = await deps.directory.learnedWindows(null, MOST_MET);
    const learnedOf = stored.map(keyOf).map((key) => [textOf(key), key] as const);
    const keys = new Map([...[...met].toReversed(), ...learnedOf]);
    const known = await Promise.all([...keys.values()].map(ask));
    return known.map((knowledge) => ({ ...knowledge, id: `m_${deps.hash(textOf(knowledge)).slice(0, 22)}` }));
  };
  return {
    async belief({ tenant, upstream }, model) {
      const key = { tenant, upstream, model };
      meet(key);
      const { believed, outputTokens } = await ask(key);
      return { windowTokens: believed.tokens, source: believed.source, capability: outputTokens };
    },
    async learn(turn, { overflow, refusedTokens }) {
      if (deps.learnedMs === 0) return;
      const key = keyOfTurn(turn);
      const limits = await deps.limits(key.model).catch(() => null);
      const tokens = windowFrom(overflow, refusedTokens, limits?.catalogue ?? null);
      if (tokens === null) return;
      const now = deps.clock();
      const source = overflow.reason === CUT_PROMPT ? 'usage' : 'stated';
      learned.learn({
        ...key,
        tokens,
        source,
        rule: overflow.reason,
        learnedAt: now,
        expiresAt: now + deps.learnedMs,
      });
    },
    succeeded(turn, usage) {
      const key = keyOfTurn(turn);
      const tokens = (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
      if (Number.isSafeInteger(tokens)) learned.widen(key, tokens);
      if (turn.belief.source !== 'configured') discovery?.refresh(key, () => modelListRequest(turn));
    },
    all,
    async forget(id) {
      const found = (await all()).find((knowledge) => knowledge.id === id);
      return found !== undefined && learned.forget(found);
    },
    async forgetTenant(tenant) {
      for (const [text, key] of met) if (key.tenant === tenant) met.delete(text);
      return learned.forgetTenant(tenant);
    },
    async close() {
      await discovery?.close();
      await learned.drain();
    },
  };
}

function modelListRequest({ request }: Turn): ModelListRequest {
  const { baseUrl, apiKey } = request.upstream;
  return {
    url: requestUrl(baseUrl, '/v1/models', ''),
    headers: requestHeaders(credentialOf(request.headers), { apiKey, readsReply: true, rewritten: true }),
  };
}

function keyOfTurn({ conversation, request, read }: Turn): WindowKey {
  return { tenant: conversation.tenant, upstream: request.upstream.baseUrl, model: read.model };
}

function keyOf({ tenant, upstream, model }: WindowKey): WindowKey {
  return { tenant, upstream, model };
}

function textOf({ tenant, upstream, model }: WindowKey): string {
  return JSON.stringify([tenant, upstream, model]);
}
